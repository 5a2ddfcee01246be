//! Heaps: who may do what with them, their blocks, boxes, and ends.

mod common;

use std::alloc::{GlobalAlloc, Layout};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{mpsc, Arc};
use std::thread;

use common::Random;
use mimalloc_compat::{is_block, Area, DeleteHeap, Heap, HeapBox, HeapRef, MiMalloc, Visit};

#[global_allocator]
static GLOBAL: MiMalloc = MiMalloc;

// ---- which types may go to other threads ------------------------------------------------------------------------------------

/// Whether a type implements a trait, found by which of two constants the compiler chooses.
macro_rules! implements {
    ($type:ty: $trait:path) => {{
        #[allow(dead_code)]
        trait Not {
            const IS: bool = false;
        }
        impl<T: ?Sized> Not for T {}
        struct Is<T: ?Sized>(std::marker::PhantomData<T>);
        #[allow(dead_code)]
        impl<T: ?Sized + $trait> Is<T> {
            const IS: bool = true;
        }
        Is::<$type>::IS
    }};
}

#[test]
#[allow(clippy::assertions_on_constants)]
fn threads_and_types() {
    assert!(implements!(Heap: Send) && implements!(Heap: Sync));
    assert!(implements!(DeleteHeap: Send) && implements!(DeleteHeap: Sync));
    assert!(implements!(&'static HeapRef: Send) && implements!(&'static HeapRef: Sync));
    // A box is what its value is.
    assert!(implements!(HeapBox<'static, u8>: Send) && implements!(HeapBox<'static, [u8]>: Sync));
    assert!(!implements!(HeapBox<'static, Rc<u8>>: Send));
    assert!(!implements!(HeapBox<'static, Rc<u8>>: Sync));
    assert!(!implements!(HeapBox<'static, std::cell::Cell<u8>>: Sync));
    assert!(implements!(HeapBox<'static, std::cell::Cell<u8>>: Send));
    // An area is only there during a visit.
    assert!(!implements!(Area<'static>: Send) && !implements!(Visit<'static>: Sync));
}

// ---- blocks -----------------------------------------------------------------------------------------------------------------

#[test]
fn blocks_by_layout() {
    let heap = Heap::new().unwrap();
    for align in [1, 2, 8, 16, 64, 4096, 1 << 20] {
        for size in [0, 1, 8, 9, 100, 5000, 70_000, 600_000, 3 << 20] {
            let layout = Layout::from_size_align(size, align).unwrap();
            let a = heap.allocate(layout).unwrap();
            let b = heap.allocate_zeroed(layout).unwrap();
            assert!(a.as_ptr() as usize % align == 0 && b.as_ptr() as usize % align == 0);
            assert!(heap.contains(a.as_ptr()) && heap.contains(b.as_ptr()));
            unsafe {
                assert!((0..size).all(|i| *b.as_ptr().add(i) == 0));
                a.as_ptr().write_bytes(9, size);
                let a = heap.reallocate(a, layout, size + 1000).unwrap();
                assert!(a.as_ptr() as usize % align == 0 && heap.contains(a.as_ptr()));
                assert!((0..size).all(|i| *a.as_ptr().add(i) == 9));
                heap.deallocate(a, Layout::from_size_align(size + 1000, align).unwrap());
                heap.deallocate(b, layout);
            }
        }
    }
    assert_eq!(heap.stats().blocks_in_use(), 0);
    assert!(!heap.contains(&heap) && !heap.contains(Box::new(1).as_ref()));
}

#[test]
fn a_block_of_another_heap_moves_when_it_is_resized() {
    let (a, b) = (Heap::new().unwrap(), Heap::new().unwrap());
    let layout = Layout::from_size_align(100, 8).unwrap();
    for new in [1, 100, 200, 10_000] {
        let block = a.allocate(layout).unwrap();
        unsafe {
            block.as_ptr().write_bytes(1, 100);
            let block = b.reallocate(block, layout, new).unwrap();
            assert!(b.contains(block.as_ptr()) && !a.contains(block.as_ptr()));
            assert!((0..new.min(100)).all(|i| *block.as_ptr().add(i) == 1));
            a.deallocate(block, Layout::from_size_align(new, 8).unwrap()); // any heap frees any block
        }
    }
    assert_eq!((a.stats().blocks_in_use(), b.stats().blocks_in_use()), (0, 0));
}

#[test]
fn too_much_gives_none_and_the_value_back() {
    let heap = Heap::new().unwrap();
    let most = Layout::from_size_align(isize::MAX as usize, 1).unwrap();
    assert!(heap.allocate(most).is_none() && heap.allocate_zeroed(most).is_none());
    assert!(heap.boxed_slice(usize::MAX, |_| 1u64).is_none(), "no layout is that large");
    assert!(heap.boxed_slice(isize::MAX as usize / 8, |_| 1u64).is_none());
    let layout = Layout::from_size_align(10, 1).unwrap();
    let block = heap.allocate(layout).unwrap();
    unsafe {
        block.as_ptr().write_bytes(3, 10);
        assert!(heap.reallocate(block, layout, isize::MAX as usize).is_none());
        assert!((0..10).all(|i| *block.as_ptr().add(i) == 3), "it is as it was");
    }
}

// ---- boxes ------------------------------------------------------------------------------------------------------------------

/// Counts how many of it were dropped.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn boxes_drop_their_values_and_free_their_blocks() {
    let heap = Heap::new().unwrap();
    let dropped = Arc::new(AtomicUsize::new(0));
    let make = || Counted(dropped.clone());
    let one = heap.boxed(make()).ok().unwrap();
    let many = heap.boxed_slice(10, |_| make()).unwrap();
    assert!(heap.contains(&*one) && heap.contains(&*many));
    assert_eq!((heap.stats().blocks_in_use(), dropped.load(Ordering::Relaxed)), (2, 0));
    drop(many);
    assert_eq!((heap.stats().blocks_in_use(), dropped.load(Ordering::Relaxed)), (1, 10));
    let inner = one.into_inner();
    assert_eq!((heap.stats().blocks_in_use(), dropped.load(Ordering::Relaxed)), (0, 10));
    drop(inner);
    assert_eq!(dropped.load(Ordering::Relaxed), 11);
}

#[test]
fn boxes_of_all_kinds() {
    #[repr(align(256))]
    struct Aligned([u8; 3]);
    let heap = Heap::new().unwrap();
    let aligned = heap.boxed(Aligned([1, 2, 3])).ok().unwrap();
    assert_eq!((&*aligned as *const Aligned as usize % 256, aligned.0[2]), (0, 3));
    let mut text = heap.boxed_str("größer").unwrap();
    text.make_ascii_uppercase();
    assert_eq!((&*text, text.to_string().as_str()), ("GRößER", "GRößER"));
    let copy = heap.boxed_copy(&[1.5, 2.5]).unwrap();
    assert_eq!((&*copy, format!("{copy:?}").as_str()), (&[1.5, 2.5][..], "[1.5, 2.5]"));
    let squares = heap.boxed_slice(1000, |i| i * i).unwrap();
    assert_eq!((squares.len(), squares[999]), (1000, 998_001));
    // What has no size takes no block.
    let count = heap.stats().blocks_in_use();
    let (unit, empty, none) = (
        heap.boxed(()).unwrap(),
        heap.boxed_str("").unwrap(),
        heap.boxed_slice(0, |_| 1u64).unwrap(),
    );
    assert_eq!((heap.stats().blocks_in_use(), *unit, &*empty, none.len()), (count, (), "", 0));
    assert_eq!(none.as_ptr() as usize % 8, 0);
}

#[test]
fn panics_leave_nothing_behind() {
    let heap = Heap::new().unwrap();
    let dropped = Arc::new(AtomicUsize::new(0));
    let result = catch_unwind(AssertUnwindSafe(|| {
        heap.boxed_slice(
            10,
            |i| if i < 7 { Counted(dropped.clone()) } else { panic!("as planned") },
        )
    }));
    assert!(result.is_err());
    assert_eq!((heap.stats().blocks_in_use(), dropped.load(Ordering::Relaxed)), (0, 7));

    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("as planned");
        }
    }
    let boxed = heap.boxed((Panics, [0u8; 100])).ok().unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| drop(boxed))).is_err());
    assert_eq!(heap.stats().blocks_in_use(), 0, "the block is freed all the same");
}

// ---- ends -------------------------------------------------------------------------------------------------------------------

#[test]
fn a_heap_is_dropped_while_blocks_exist() {
    let heap = Heap::new().unwrap();
    let dropped = Arc::new(AtomicUsize::new(0));
    let blocks: Vec<_> =
        (0..1000).map(|i| heap.boxed([i; 100]).unwrap().leak() as *mut _).collect();
    std::mem::forget(heap.boxed(Counted(dropped.clone())).ok().unwrap());
    let large = heap.allocate(Layout::from_size_align(5 << 20, 8).unwrap()).unwrap();
    assert!(is_block(blocks[0]) && is_block(large.as_ptr()));
    drop(heap);
    assert_eq!(dropped.load(Ordering::Relaxed), 0, "values are not dropped");
}

#[test]
fn a_heap_that_is_deleted_keeps_its_blocks() {
    let heap = DeleteHeap::new().unwrap();
    let boxes: Vec<_> = (0..1000).map(|i| heap.boxed([i; 100]).unwrap()).collect();
    drop(heap);
    assert!(boxes.iter().enumerate().all(|(i, b)| **b == [i; 100]));
    assert!(HeapRef::main().contains(&*boxes[0]), "they belong to the main heap now");
    let heap = Heap::new().unwrap();
    let leaked = heap.allocate(Layout::new::<u64>()).unwrap().cast::<u64>();
    unsafe { leaked.as_ptr().write(77) };
    drop(heap.into_deleting());
    unsafe {
        assert_eq!(leaked.as_ptr().read(), 77);
        HeapRef::main().deallocate(leaked.cast(), Layout::new::<u64>());
    }
}

/// Other threads free blocks of a heap while it is deleted: boxes of such heaps do not borrow them.
#[test]
fn frees_by_other_threads_while_heaps_are_deleted() {
    type Boxes = Vec<HeapBox<'static, [usize; 8]>>;
    let (senders, receivers): (Vec<_>, Vec<_>) =
        (0..3).map(|_| mpsc::sync_channel::<Boxes>(2)).unzip();
    let threads: Vec<_> = receivers
        .into_iter()
        .map(|receiver| {
            thread::spawn(move || {
                let wrong = |i: usize, b: &HeapBox<'static, [usize; 8]>| b[7] != i;
                receiver.iter().flatten().enumerate().filter(|(i, b)| wrong(i % 300, b)).count()
            })
        })
        .collect();
    for round in 0..500 {
        let heap = DeleteHeap::new().unwrap();
        for sender in &senders {
            sender.send((0..300).map(|i| heap.boxed([i; 8]).unwrap()).collect()).unwrap();
        }
        if round % 2 == 0 {
            thread::yield_now();
        }
        drop(heap);
    }
    drop(senders);
    for thread in threads {
        assert_eq!(thread.join().unwrap(), 0, "a block was changed");
    }
}

// ---- threads ----------------------------------------------------------------------------------------------------------------

#[test]
fn threads_share_a_heap() {
    let heap = Heap::new().unwrap();
    let total: usize = thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for n in 0..4 {
            let (sender, heap) = (sender.clone(), &heap);
            scope.spawn(move || {
                let mut random = Random(5 + n);
                for _ in 0..5000 {
                    let size = 1 + random.below(400);
                    sender.send(heap.boxed_slice(size, |i| i as u8).unwrap()).unwrap();
                }
            });
        }
        drop(sender);
        receiver.iter().map(|b| b.iter().enumerate().filter(|(i, v)| *i as u8 == **v).count()).sum()
    });
    assert!(total > 20_000 * 150, "all bytes are as they were written: {total}");
    assert_eq!(heap.stats().blocks_in_use(), 0, "all were freed, by another thread");
}

/// The thread that makes a heap may end before it; another one drops it.
#[test]
fn a_heap_travels() {
    let heap = thread::spawn(|| {
        let heap = Heap::new().unwrap();
        heap.boxed_str("made there").unwrap().leak();
        heap
    })
    .join()
    .unwrap();
    assert_eq!(heap.stats().blocks_in_use(), 1);
    let text = heap.boxed_str("made here").unwrap();
    assert_eq!(&*text, "made here");
    drop(text);
    thread::spawn(move || drop(heap)).join().unwrap();
}

// ---- the default heap ---------------------------------------------------------------------------------------------------------

#[test]
fn the_default_heap() {
    let (outer, inner) = (DeleteHeap::new().unwrap(), DeleteHeap::new().unwrap());
    let (a, b, c) = outer.with_default(|| {
        let a = Box::new(1);
        let b = inner.with_default(|| Box::new(2));
        (a, b, Box::new(3))
    });
    assert!(outer.contains(&*a) && inner.contains(&*b) && outer.contains(&*c));
    assert!(HeapRef::main().contains(Box::new(4).as_ref()), "it is as before");
    let other = outer.with_default(|| thread::spawn(|| Box::new(5)).join().unwrap());
    assert!(HeapRef::main().contains(&*other), "other threads are not concerned");
    let result = catch_unwind(AssertUnwindSafe(|| outer.with_default(|| panic!("as planned"))));
    assert!(result.is_err() && HeapRef::main().contains(Box::new(6).as_ref()));
    drop((outer, inner));
    assert_eq!((*a, *b, *c), (1, 2, 3));
}

#[test]
fn the_default_heap_that_is_destroyed() {
    let heap = Heap::new().unwrap();
    // Safety: nothing of it is left when the heap goes.
    let sum = unsafe {
        heap.with_default_unbound(|| {
            let numbers: Vec<u64> = (0..1000).collect();
            assert!(heap.contains(numbers.as_ptr()));
            let sum: u64 = numbers.iter().sum();
            std::mem::forget(numbers); // the heap frees it
            sum
        })
    };
    assert_eq!(sum, 499_500);
    assert_eq!(heap.stats().bytes_in_use(), MiMallocSize::of(8000));
}

/// What a block of this size takes.
struct MiMallocSize;
impl MiMallocSize {
    fn of(size: usize) -> usize {
        let layout = Layout::from_size_align(size, 8).unwrap();
        unsafe {
            let block = MiMalloc.alloc(layout);
            let heap = Heap::new().unwrap();
            let moved = heap.reallocate(NonNull::new(block).unwrap(), layout, size).unwrap();
            let bytes = heap.stats().bytes_in_use();
            heap.deallocate(moved, layout);
            bytes
        }
    }
}

// ---- visits and checks ----------------------------------------------------------------------------------------------------------

#[test]
fn visits_and_checks() {
    let mut heap = Heap::new().unwrap();
    let sizes = [10, 10, 100, 1000, 100_000, 2 << 20];
    let blocks: Vec<_> = sizes
        .iter()
        .map(|s| heap.allocate(Layout::from_size_align(*s, 1).unwrap()).unwrap())
        .collect();
    let (mut areas, mut seen, mut bytes) = (0, Vec::new(), 0);
    // Safety: nobody uses the heap meanwhile; the vector is in the main heap.
    let is_complete = unsafe {
        heap.visit(true, |what| {
            match what {
                Visit::Area(area) => {
                    areas += 1;
                    assert!(area.used() > 0 && area.block_size() <= area.full_block_size());
                    assert!(area.committed() <= area.reserved() && !area.start().is_null());
                }
                Visit::Block(area, block, size) => {
                    assert!(block >= area.start() && size == area.block_size());
                    seen.push(block as usize);
                    bytes += size;
                }
            }
            true
        })
    };
    let mut expected: Vec<_> = blocks.iter().map(|b| b.as_ptr() as usize).collect();
    expected.sort_unstable();
    seen.sort_unstable();
    assert!(is_complete && seen == expected);
    assert!(areas == 5 && bytes >= sizes.iter().sum(), "{areas} areas, {bytes} bytes");
    assert!(heap.check());
}

#[test]
fn a_visit_ends_when_the_visitor_says_so() {
    let heap = Heap::new().unwrap();
    for size in [10, 100, 1000] {
        assert!(heap.allocate(Layout::from_size_align(size, 1).unwrap()).is_some());
    }
    let mut count = 0;
    // Safety: nobody uses the heap meanwhile.
    let is_complete = unsafe {
        heap.visit(false, |_| {
            count += 1;
            count < 2
        })
    };
    assert!(!is_complete && count == 2, "{count}");
}
