//! Containers of the standard library in heaps, by the trait `Allocator`.
#![cfg(feature = "allocator_api")]
#![feature(allocator_api, btreemap_alloc)]

mod common;

use std::alloc::{Allocator, Layout};
use std::collections::{BTreeMap, VecDeque};

use mimalloc_compat::{is_block, DeleteHeap, Heap, HeapRef, MiMalloc};

#[test]
fn containers_in_a_heap() {
    let heap = Heap::new().unwrap();
    let mut numbers = Vec::new_in(&heap);
    numbers.extend(0..10_000);
    let boxed = Box::new_in([1u8; 100], &heap);
    let mut tree = BTreeMap::new_in(&heap);
    tree.extend((0..1000).map(|i| (i, i * i)));
    let deque: VecDeque<u8, &Heap> = VecDeque::with_capacity_in(100, &heap);
    assert!(
        heap.contains(numbers.as_ptr()) && heap.contains(&*boxed) && heap.contains(&tree[&500])
    );
    assert_eq!((numbers[9999], tree[&999], deque.len()), (9999, 998_001, 0));
    numbers.truncate(10);
    numbers.shrink_to_fit();
    assert_eq!(numbers, (0..10).collect::<Vec<_>>());
    drop((numbers, boxed, tree, deque));
    assert_eq!(heap.stats().blocks_in_use(), 0);
}

#[test]
fn a_container_owns_its_heap() {
    let mut text = Vec::new_in(Heap::new().unwrap());
    text.extend_from_slice(b"its own");
    assert!(text.allocator().contains(text.as_ptr()) && is_block(text.as_ptr()));
    let mut text = Vec::new_in(DeleteHeap::new().unwrap());
    text.extend_from_slice(b"its own");
    assert!(text.allocator().contains(text.as_ptr()));
    let mut text = Vec::new_in(HeapRef::main());
    text.push(1);
    assert!(HeapRef::main().contains(text.as_ptr()));
}

#[test]
fn sizes_of_0_and_alignments() {
    let heap = Heap::new().unwrap();
    let layout = |size, align| Layout::from_size_align(size, align).unwrap();
    for align in [1, 8, 16, 64, 4096] {
        // The heap's own method of this name gives a block.
        assert!(HeapRef::allocate(&heap, layout(0, align)).is_some());
        let block = Allocator::allocate(&heap, layout(0, align)).unwrap();
        assert_eq!((block.len(), block.cast::<u8>().as_ptr() as usize % align), (0, 0));
        unsafe {
            let block = heap.grow(block.cast(), layout(0, align), layout(100, 128)).unwrap();
            assert_eq!(block.cast::<u8>().as_ptr() as usize % 128, 0);
            block.cast::<u8>().as_ptr().write_bytes(7, 100);
            let block =
                heap.grow_zeroed(block.cast(), layout(100, 128), layout(300, 4096)).unwrap();
            assert_eq!(block.cast::<u8>().as_ptr() as usize % 4096, 0);
            let bytes = block.as_ref();
            assert!(bytes[..100].iter().all(|b| *b == 7) && bytes[100..].iter().all(|b| *b == 0));
            let block = heap.shrink(block.cast(), layout(300, 4096), layout(10, 1)).unwrap();
            assert_eq!(block.as_ref(), [7; 10]);
            let block = heap.shrink(block.cast(), layout(10, 1), layout(0, 1)).unwrap();
            Allocator::deallocate(&heap, block.cast(), layout(0, 1));
        }
    }
    assert_eq!(heap.stats().blocks_in_use(), 5);
}

/// A guarded block that ends with an OS page is aligned to what its layout wants, and no more.
#[test]
fn a_larger_alignment_of_guarded_blocks() {
    if !common::is_child() {
        let variables = [("MIMALLOC_GUARDED_SAMPLE_RATE", "1"), ("MIMALLOC_GUARDED_PRECISE", "1")];
        let output = common::run_again("a_larger_alignment_of_guarded_blocks", &variables);
        assert!(output.status.success(), "{output:?}");
        return;
    }
    let layout = |size, align| Layout::from_size_align(size, align).unwrap();
    let block = MiMalloc.allocate(layout(300_008, 8)).unwrap();
    unsafe {
        block.cast::<u8>().as_ptr().write_bytes(7, 300_008);
        let block = MiMalloc.grow(block.cast(), layout(300_008, 8), layout(300_016, 16)).unwrap();
        assert_eq!((block.cast::<u8>().as_ptr() as usize % 16, block.as_ref()[300_007]), (0, 7));
        MiMalloc.deallocate(block.cast(), layout(300_016, 16));
    }
}

#[test]
fn errors_and_the_global_allocator() {
    let most = Layout::from_size_align(isize::MAX as usize, 1).unwrap();
    let heap = Heap::new().unwrap();
    assert!(Allocator::allocate(&heap, most).is_err() && MiMalloc.allocate(most).is_err());
    assert!(Allocator::allocate_zeroed(&heap, most).is_err());
    let mut numbers: Vec<u64, MiMalloc> = Vec::new_in(MiMalloc);
    numbers.resize(1000, 1);
    assert!(is_block(numbers.as_ptr()));
    assert!(numbers.try_reserve(isize::MAX as usize / 8).is_err());
    assert_eq!(numbers.iter().sum::<u64>(), 1000);
}
