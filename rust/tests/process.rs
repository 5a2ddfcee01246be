//! What features do to the whole process.

use mimalloc_compat::{is_block, MiMalloc, Opt};

#[global_allocator]
static GLOBAL: MiMalloc = MiMalloc;

extern "C" {
    fn malloc(size: usize) -> *mut u8;
    fn free(block: *mut u8);
    fn strdup(text: *const std::os::raw::c_char) -> *mut u8;
}

/// With `override`, malloc and what the C library allocates itself are ours; without it, they are not.
#[test]
fn malloc_of_c() {
    let text = std::ffi::CString::new("text").unwrap();
    // Safety: the blocks are freed by who has made them.
    unsafe {
        let (block, copy) = (malloc(100), strdup(text.as_ptr()));
        let is_ours = (is_block(block), is_block(copy));
        free(block);
        free(copy);
        assert_eq!(is_ours, (cfg!(feature = "override"), cfg!(feature = "override")));
    }
}

#[test]
fn defaults_of_features() {
    assert_eq!(Opt::AllowThp.get(), if cfg!(feature = "no_thp") { 0 } else { 1 });
    if !cfg!(feature = "debug") {
        let rate = if cfg!(feature = "guarded") { 4000 } else { 0 };
        assert_eq!(Opt::GuardedSampleRate.get(), rate);
    }
    assert_eq!(Opt::PurgeDelay.get(), if cfg!(feature = "level3") { 1000 } else { 10 });
}

/// With `background_thread` the library's own thread is there once the program has started one, and gives back what an idle
/// thread holds.
#[test]
#[cfg(all(target_os = "linux", feature = "background_thread"))]
fn memory_of_idle_threads_returns() {
    use mimalloc_compat::stats;
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    let (sender, receiver) = mpsc::channel::<()>();
    let (ready, is_ready) = mpsc::channel();
    let idle = std::thread::spawn(move || {
        let blocks: Vec<Vec<u8>> = (0..50_000).map(|_| vec![1; 1000]).collect();
        drop(blocks);
        ready.send(stats::process().page_committed.current).unwrap();
        receiver.recv().ok(); // sleeps, without a call of the allocator
    });
    let held: i64 = is_ready.recv().unwrap();
    let names = || -> Vec<String> {
        std::fs::read_dir("/proc/self/task")
            .unwrap()
            .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok())
            .collect()
    };
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(100));
        if stats::process().page_committed.current < held / 2 + (1 << 20) {
            break;
        }
    }
    let kept = stats::process().page_committed.current;
    assert!(kept < held / 2 + (1 << 20), "{held} bytes in pages, and then {kept}; {:?}", names());
    drop(sender);
    idle.join().unwrap();
}
