//! What features do to the whole process.

mod common;

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
    let is_debug = cfg!(any(feature = "debug", feature = "debug_in_debug"));
    assert_eq!(Opt::ShowErrors.get(), i64::from(is_debug));
    if !is_debug {
        let rate = if cfg!(feature = "guarded") { 4000 } else { 0 };
        assert_eq!(Opt::GuardedSampleRate.get(), rate);
    }
    assert_eq!(Opt::PurgeDelay.get(), if cfg!(feature = "level3") { 1000 } else { 10 });
}

/// With `xmalloc` a lack of memory ends the process; otherwise the result is NULL.
#[test]
fn a_lack_of_memory() {
    use std::alloc::{GlobalAlloc, Layout};

    if common::is_child() {
        let layout = Layout::from_size_align(isize::MAX as usize, 1).unwrap();
        // Safety: nothing is in the block, if there is one.
        println!("went on: {}", unsafe { MiMalloc.alloc(layout) }.is_null());
        return;
    }
    let output = common::run_again("a_lack_of_memory", &[]);
    let went_on = String::from_utf8_lossy(&output.stdout).contains("went on: true");
    let is_fatal = cfg!(feature = "xmalloc");
    assert_eq!((output.status.success(), went_on), (!is_fatal, !is_fatal), "{output:?}");
}

/// With `background_thread` the library has a thread of its own once the program has started one. It gives back what idle
/// threads hold: here pages of many sizes, in which they have freed all blocks.
#[test]
#[cfg(all(target_os = "linux", feature = "background_thread"))]
fn memory_of_idle_threads_returns() {
    use mimalloc_compat::stats;
    use std::fs;
    use std::sync::{Arc, Barrier};
    use std::time::{Duration, Instant};

    const THREADS: usize = 8;
    let (ready, end) = (Arc::new(Barrier::new(THREADS + 1)), Arc::new(Barrier::new(THREADS + 1)));
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let (ready, end) = (ready.clone(), end.clone());
            std::thread::spawn(move || {
                let blocks: Vec<Vec<u8>> = (1..400).map(|i| vec![1; i * i]).collect();
                drop(blocks);
                ready.wait();
                end.wait(); // without a call of the allocator
            })
        })
        .collect();
    ready.wait();
    let held = stats::process().page_committed.current;
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let names: Vec<_> =
        tasks.map(|task| fs::read_to_string(task.unwrap().path().join("comm")).unwrap()).collect();
    assert!(names.iter().any(|name| name == "mimalloc\n"), "{names:?}");
    let start = Instant::now();
    while stats::process().page_committed.current > held / 4 {
        let kept = stats::process().page_committed.current;
        assert!(start.elapsed() < Duration::from_secs(60), "{held} bytes in pages, then {kept}");
        std::thread::sleep(Duration::from_millis(50));
    }
    end.wait();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
