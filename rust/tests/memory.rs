//! Memory stays bounded, over many rounds of allocating and freeing, and returns.

mod common;

use std::alloc::Layout;
use std::sync::{mpsc, Mutex};
use std::thread;

use common::{resident, Random};
use mimalloc_compat::{collect, DeleteHeap, Heap, MiMalloc};

#[global_allocator]
static GLOBAL: MiMalloc = MiMalloc;

/// The tests measure the process, so they run one at a time.
static ALONE: Mutex<()> = Mutex::new(());

const MIB: usize = 1 << 20;

/// Runs `round` some times to settle, and then many times more; returns by how many bytes the process has grown.
fn growth(rounds: usize, mut round: impl FnMut(usize)) -> usize {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    (0..rounds / 10 + 3).for_each(&mut round);
    let settled = resident();
    (0..rounds).for_each(&mut round);
    resident().saturating_sub(settled)
}

#[test]
fn rounds_of_one_thread() {
    let mut random = Random(1);
    let grown = growth(100, |_| {
        let mut blocks: Vec<Vec<u8>> =
            (0..20_000).map(|_| vec![1; 1 + random.below(500)]).collect();
        for _ in 0..20_000 {
            let i = random.below(blocks.len());
            blocks[i] = vec![2; 1 + random.below(500)];
        }
    });
    assert!(grown < 8 * MIB, "grown by {grown} bytes over 100 rounds of 5 MB");
}

#[test]
fn rounds_of_large_blocks() {
    let mut random = Random(2);
    let grown = growth(200, |_| {
        let mut block = vec![1u8; MIB + random.below(8 * MIB)];
        block.resize(block.len() * 2, 2);
        block.truncate(MIB / 2);
        block.shrink_to_fit();
        assert_eq!((block[0], block.len()), (1, MIB / 2));
    });
    assert!(grown < 32 * MIB, "grown by {grown} bytes over 200 rounds of up to 18 MB");
}

#[test]
fn rounds_of_threads_that_end_with_their_blocks_alive() {
    let grown = growth(100, |_| {
        let blocks: Vec<Vec<Box<[u8; 200]>>> = (0..2)
            .map(|_| thread::spawn(|| (0..5_000).map(|_| Box::new([1; 200])).collect::<Vec<_>>()))
            .collect::<Vec<_>>()
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect();
        assert_eq!(blocks[1][4999][199], 1);
    });
    assert!(grown < 8 * MIB, "grown by {grown} bytes over 100 rounds of 2 MB");
}

/// One thread only allocates, the other only frees.
#[test]
fn rounds_of_a_producer_and_a_consumer() {
    let (sender, receiver) = mpsc::sync_channel::<Vec<Box<[u8; 100]>>>(4);
    let consumer = thread::spawn(move || receiver.into_iter().map(|blocks| blocks.len()).sum());
    let grown = growth(500, |_| {
        sender.send((0..1000).map(|_| Box::new([3; 100])).collect()).unwrap();
    });
    drop(sender);
    let consumed: usize = consumer.join().unwrap();
    assert_eq!(consumed, 1000 * (500 + 53));
    assert!(grown < 16 * MIB, "grown by {grown} bytes over 500 rounds of 100 kB");
}

/// The heap is dropped while its blocks exist, of all sizes, also boxes that were forgotten.
#[test]
fn rounds_of_heaps_with_live_blocks() {
    let mut random = Random(3);
    let grown = growth(300, |_| {
        let heap = Heap::new().unwrap();
        for _ in 0..2000 {
            let layout =
                Layout::from_size_align(1 + random.below(1000), 1 << random.below(8)).unwrap();
            let block = heap.allocate(layout).unwrap();
            unsafe { block.as_ptr().write_bytes(4, layout.size()) };
        }
        let large = heap.allocate(Layout::array::<u8>(3 * MIB).unwrap()).unwrap();
        unsafe { large.as_ptr().write_bytes(5, 3 * MIB) };
        std::mem::forget(heap.boxed([6u8; 1000]).unwrap());
    });
    assert!(grown < 16 * MIB, "grown by {grown} bytes over 300 rounds of 4 MB");
}

/// Threads allocate from a heap of another thread, and are alive or gone when it is dropped.
#[test]
fn rounds_of_heaps_with_blocks_of_other_threads() {
    let work = |heap: &Heap| {
        for i in 0..1000 {
            let block = heap.allocate(Layout::array::<u8>(100 + i).unwrap()).unwrap();
            unsafe { block.as_ptr().write_bytes(7, 100 + i) };
        }
    };
    let (sender, receiver) = mpsc::channel::<std::sync::Arc<Heap>>();
    let (done, is_done) = mpsc::channel();
    let lasting = thread::spawn(move || {
        for heap in receiver {
            work(&heap);
            drop(heap);
            done.send(()).unwrap();
        }
    });
    let grown = growth(200, |_| {
        let heap = std::sync::Arc::new(Heap::new().unwrap());
        sender.send(heap.clone()).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| work(&heap));
        });
        is_done.recv().unwrap();
    });
    drop(sender);
    lasting.join().unwrap();
    assert!(grown < 16 * MIB, "grown by {grown} bytes over 200 rounds of 1.2 MB");
}

/// Blocks of deleted heaps live on, and their memory returns when they are freed.
#[test]
fn rounds_of_deleted_heaps() {
    let grown = growth(200, |_| {
        let heap = DeleteHeap::new().unwrap();
        let boxes: Vec<_> = (0..3000).map(|i| heap.boxed([i; 60]).unwrap()).collect();
        let strings = heap.with_default(|| (0..3000).map(|i| i.to_string()).collect::<Vec<_>>());
        drop(heap);
        assert_eq!((boxes[2999][59], strings[2999].as_str()), (2999, "2999"));
    });
    assert!(grown < 16 * MIB, "grown by {grown} bytes over 200 rounds of 1.5 MB");
}

#[test]
fn free_memory_returns_to_the_system() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    collect(true);
    let before = resident();
    let blocks: Vec<Vec<u8>> = (0..100_000).map(|_| vec![8; 1000]).collect();
    assert!(resident() > before + 80 * MIB);
    drop(blocks);
    collect(true);
    let after = resident();
    assert!(after < before + 8 * MIB, "{before} bytes before, {after} after 100 MB");
}
