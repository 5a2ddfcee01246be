//! The global allocator: sizes, alignments, contents, bad input, threads.

mod common;

use std::alloc::{GlobalAlloc, Layout};
use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc;
use std::thread;

use common::Random;
use mimalloc_compat::{good_size, is_block, usable_size, version, MiMalloc};

#[global_allocator]
static GLOBAL: MiMalloc = MiMalloc;

fn layout(size: usize, align: usize) -> Layout {
    Layout::from_size_align(size, align).unwrap()
}

/// Sizes around all that is special: 0, words, size classes, the limit of large blocks, OS pages, huge pages.
fn sizes() -> Vec<usize> {
    let mut sizes = vec![0, 1, 2, 3, 5, 6, 7, 9, 15, 17, 23, 24, 25, 100, 1000];
    for shift in 3..24 {
        sizes.extend([(1 << shift) - 1, 1 << shift, (1 << shift) + 1]);
    }
    sizes
}

const ALIGNS: [usize; 15] =
    [1, 2, 4, 8, 16, 32, 64, 128, 256, 1024, 4096, 16384, 65536, 1 << 20, 4 << 20];

unsafe fn fill(block: *mut u8, size: usize, seed: usize) {
    for i in [0, 1, size / 2, size.saturating_sub(2), size.saturating_sub(1)] {
        if i < size {
            block.add(i).write((seed + i) as u8);
        }
    }
}

unsafe fn is_filled(block: *const u8, size: usize, seed: usize) -> bool {
    // The last writes win where the places coincide, which are the same then.
    [0, 1, size / 2, size.saturating_sub(2), size.saturating_sub(1)]
        .iter()
        .all(|i| *i >= size || *block.add(*i) == (seed + *i) as u8)
}

#[test]
fn every_layout_is_served_and_aligned() {
    for align in ALIGNS {
        for (seed, size) in sizes().into_iter().enumerate() {
            let layout = layout(size, align);
            // Several at once: a single block may be aligned by chance.
            let blocks: Vec<_> = (0..3).map(|_| unsafe { MiMalloc.alloc(layout) }).collect();
            for block in &blocks {
                assert!(!block.is_null(), "size {size}, alignment {align}");
                assert_eq!(*block as usize % align, 0, "size {size}, alignment {align}");
                assert!(unsafe { usable_size(*block) } >= size);
                unsafe { fill(*block, size, seed) };
            }
            for block in blocks {
                assert!(unsafe { is_filled(block, size, seed) });
                unsafe { MiMalloc.dealloc(block, layout) };
            }
        }
    }
}

#[test]
fn zeroed_blocks_are_zero_also_when_memory_is_reused() {
    for align in [1, 16, 64, 4096] {
        for size in sizes() {
            let layout = layout(size, align);
            for _ in 0..2 {
                unsafe {
                    let dirty = MiMalloc.alloc(layout);
                    dirty.write_bytes(0xA5, size);
                    MiMalloc.dealloc(dirty, layout);
                    let block = MiMalloc.alloc_zeroed(layout);
                    assert_eq!(block as usize % align, 0);
                    let bytes = std::slice::from_raw_parts(block, size);
                    assert!(bytes.iter().all(|b| *b == 0), "size {size}, alignment {align}");
                    block.write_bytes(0xA5, size);
                    MiMalloc.dealloc(block, layout);
                }
            }
        }
    }
}

#[test]
fn reallocation_keeps_alignment_and_contents() {
    let sizes = sizes();
    for align in ALIGNS {
        let mut random = Random(0x1234_5678 + align as u64);
        let mut size = 1;
        unsafe {
            let mut block = MiMalloc.alloc(layout(size, align));
            fill(block, size, 7);
            for round in 0..200 {
                let new = sizes[random.below(sizes.len())].max(1);
                let old = block;
                block = MiMalloc.realloc(block, layout(size, align), new);
                assert!(!block.is_null(), "from {size} to {new}, alignment {align}");
                assert_eq!(block as usize % align, 0, "from {size} to {new}, alignment {align}");
                let kept = size.min(new);
                let places = [0, 1, size / 2, size.saturating_sub(2), size - 1];
                for i in places.into_iter().filter(|i| *i < kept) {
                    assert_eq!(*block.add(i), (7 + round + i) as u8, "byte {i}, {size} to {new}");
                }
                let _ = old;
                size = new;
                fill(block, size, 7 + round + 1);
            }
            MiMalloc.dealloc(block, layout(size, align));
        }
    }
}

/// Guarded blocks that end with an OS page have odd addresses, unless the layout wants another one.
#[test]
fn guarded_blocks_are_aligned_as_their_layout_says() {
    let variables = [("MIMALLOC_GUARDED_SAMPLE_RATE", "1"), ("MIMALLOC_GUARDED_PRECISE", "1")];
    for test in [
        "every_layout_is_served_and_aligned",
        "reallocation_keeps_alignment_and_contents",
        "a_layout_of_size_0_gives_a_block",
    ] {
        let output = common::run_again(test, &variables);
        assert!(output.status.success(), "{test}: {output:?}");
    }
}

/// As it grows, a block passes from a size whose blocks have its alignment anyway to others, and back.
#[test]
fn reallocation_of_small_blocks_with_a_larger_alignment() {
    for align in [16, 32, 64] {
        for from in 1..40 {
            for to in 1..40 {
                unsafe {
                    let blocks: Vec<_> = (0..4)
                        .map(|n| {
                            let block = MiMalloc.alloc(layout(from, align));
                            block.write_bytes(n, from);
                            MiMalloc.realloc(block, layout(from, align), to)
                        })
                        .collect();
                    for (n, block) in blocks.into_iter().enumerate() {
                        assert_eq!(block as usize % align, 0, "from {from} to {to}, {align}");
                        for i in 0..from.min(to) {
                            assert_eq!(*block.add(i), n as u8);
                        }
                        MiMalloc.dealloc(block, layout(to, align));
                    }
                }
            }
        }
    }
}

#[test]
fn what_no_system_can_serve_gives_null() {
    let most = isize::MAX as usize;
    for (size, align) in [
        (most, 1),
        (most - 7, 8),
        (most - 15, 16),
        (most - 63, 64),
        (most - 4095, 4096),
        (most / 2 + 1, 1),
        (1, 1 << (usize::BITS - 2)),
        (most / 2, 1 << (usize::BITS - 3)),
    ] {
        let layout = layout(size, align);
        unsafe {
            assert!(MiMalloc.alloc(layout).is_null(), "size {size}, alignment {align}");
            assert!(MiMalloc.alloc_zeroed(layout).is_null(), "size {size}, alignment {align}");
        }
    }
    // A reallocation that fails leaves the block as it was.
    for align in [8, 16, 64, 8192] {
        let small = layout(100, align);
        unsafe {
            let block = MiMalloc.alloc(small);
            block.write_bytes(0x3C, 100);
            assert!(MiMalloc.realloc(block, small, most - (align - 1)).is_null());
            assert!((0..100).all(|i| *block.add(i) == 0x3C));
            MiMalloc.dealloc(block, small);
        }
    }
    // And the standard library turns it into an error.
    assert!(Vec::<u8>::new().try_reserve(most).is_err());
}

/// `GlobalAlloc` leaves layouts of size 0 undefined; here they give a block of its own.
#[test]
fn a_layout_of_size_0_gives_a_block() {
    for align in ALIGNS {
        let none = layout(0, align);
        unsafe {
            let a = MiMalloc.alloc(none);
            let b = MiMalloc.alloc_zeroed(none);
            assert!(!a.is_null() && !b.is_null() && a != b);
            assert_eq!((a as usize % align, b as usize % align), (0, 0));
            let a = MiMalloc.realloc(a, none, 100);
            assert!(!a.is_null() && a as usize % align == 0);
            a.write_bytes(1, 100);
            let a = MiMalloc.realloc(a, layout(100, align), 0);
            assert!(!a.is_null() && a as usize % align == 0);
            MiMalloc.dealloc(a, none);
            MiMalloc.dealloc(b, none);
        }
    }
}

/// Values of size 0 take no block: the standard library does not ask for one.
#[test]
fn values_of_size_0_take_no_block() {
    assert!(!is_block(Box::into_raw(Box::new(()))));
    let units: Vec<()> = std::iter::repeat(()).take(1 << 20).collect();
    assert!(!is_block(units.as_ptr()));
    assert_eq!(units.len(), 1 << 20);
}

#[test]
fn the_standard_library_allocates_here() {
    #[repr(align(512))]
    struct Aligned(u8);
    let aligned = Box::new(Aligned(1));
    assert!(is_block(&*aligned) && &*aligned as *const _ as usize % 512 == 0 && aligned.0 == 1);
    let mut map = HashMap::new();
    let mut tree = BTreeMap::new();
    for i in 0..100_000u64 {
        *map.entry(i % 1000).or_insert(0) += i;
        tree.insert(i, vec![i; (i % 5) as usize]);
    }
    assert_eq!(map[&7], (0..100).map(|n| n * 1000 + 7).sum());
    assert!(is_block(tree[&99_999].as_ptr()));
    let mut text = String::new();
    for _ in 0..100_000 {
        text.push_str("abcdefghij");
    }
    assert!(is_block(text.as_ptr()));
    assert_eq!(text.len(), 1_000_000);
    assert!(!is_block(&0), "the stack is not ours");
}

#[test]
fn sizes_and_version() {
    assert!(good_size(1) >= 1 && good_size(1000) >= 1000);
    unsafe {
        assert_eq!(usable_size(std::ptr::null()), 0);
        let block = MiMalloc.alloc(layout(100, 1));
        assert!(usable_size(block) >= 100);
        if cfg!(any(feature = "secure", feature = "debug", feature = "valgrind")) {
            assert_eq!(usable_size(block), 100);
        } else {
            assert_eq!(usable_size(block), good_size(100));
            block.write_bytes(1, usable_size(block));
        }
        MiMalloc.dealloc(block, layout(100, 1));
    }
    assert_eq!(version() / 10000, if cfg!(feature = "level3") { 3 } else { 2 });
    assert_eq!(MiMalloc.version(), version());
}

/// Blocks travel in a ring: each thread frees or resizes what another one has allocated.
#[test]
fn threads_free_and_resize_blocks_of_others() {
    const THREADS: usize = 4;
    let (senders, receivers): (Vec<_>, Vec<_>) =
        (0..THREADS).map(|_| mpsc::sync_channel::<(Vec<u8>, u8)>(1000)).unzip();
    let threads: Vec<_> = receivers
        .into_iter()
        .enumerate()
        .map(|(n, receiver)| {
            let next = senders[(n + 1) % THREADS].clone();
            thread::spawn(move || {
                let mut random = Random(99 + n as u64);
                let mut waiting = Vec::new();
                for i in 0..20_000 {
                    let byte = i as u8;
                    let sent =
                        vec![byte; 1 + random.below(if i % 100 == 0 { 100_000 } else { 300 })];
                    let _ = next.try_send((sent, byte));
                    while let Ok((mut block, byte)) = receiver.try_recv() {
                        assert!(block.iter().all(|b| *b == byte));
                        if block.len() % 3 == 0 {
                            block.resize(block.len() * 2, byte);
                            block.shrink_to_fit();
                            waiting.push((block, byte));
                        }
                    }
                    if waiting.len() > 100 {
                        let (block, byte) = waiting.swap_remove(random.below(100));
                        assert!(block.iter().all(|b| *b == byte));
                    }
                }
            })
        })
        .collect();
    drop(senders);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// A program without threads stays one: the library starts none of its own.
#[test]
#[cfg(all(target_os = "linux", not(feature = "background_thread")))]
fn the_library_starts_no_thread() {
    if !common::is_child() {
        let output = common::run_again("the_library_starts_no_thread", &[]);
        assert!(output.status.success(), "{output:?}");
        return;
    }
    // The test runs in a thread of the harness, beside its main thread.
    let count = || std::fs::read_dir("/proc/self/task").unwrap().count();
    let before = count();
    let blocks: Vec<Vec<u8>> = (0..10_000).map(|i| vec![1; i]).collect();
    drop(blocks);
    thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(count(), before);
}
