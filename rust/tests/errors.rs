//! Errors of programs, and a lack of memory: what the handler is told, and what happens without one.

mod common;

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

use mimalloc_compat::{set_error_handler, Error, MiMalloc};

#[global_allocator]
static GLOBAL: MiMalloc = MiMalloc;

static ALONE: Mutex<()> = Mutex::new(());
#[allow(clippy::declare_interior_mutable_const)] // only to fill the array
const ZERO: AtomicUsize = AtomicUsize::new(0);
static KINDS: [AtomicUsize; 6] = [ZERO; 6];

fn index(error: Error) -> usize {
    match error {
        Error::OutOfMemory => 0,
        Error::TooLarge => 1,
        Error::Invalid => 2,
        Error::DoubleFree => 3,
        Error::Overwritten => 4,
        _ => 5,
    }
}

/// How often the handler is called while `run` runs, for each kind.
fn errors_of(run: impl FnOnce()) -> [usize; 6] {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    KINDS.iter().for_each(|kind| kind.store(0, Ordering::Relaxed));
    set_error_handler(Some(|error| {
        KINDS[index(error)].fetch_add(1, Ordering::Relaxed);
    }));
    run();
    set_error_handler(None);
    let mut counts = [0; 6];
    for (count, kind) in counts.iter_mut().zip(&KINDS) {
        *count = kind.load(Ordering::Relaxed);
    }
    counts
}

fn layout(size: usize, align: usize) -> Layout {
    Layout::from_size_align(size, align).unwrap()
}

#[test]
fn a_size_that_is_too_large() {
    let most = layout(isize::MAX as usize, 1);
    let counts = errors_of(|| assert!(unsafe { MiMalloc.alloc(most) }.is_null()));
    assert_eq!(counts[0] + counts[1], 1, "{counts:?}");
    assert_eq!(counts[2..], [0; 4]);
}

#[test]
fn a_pointer_that_is_no_block() {
    let value = 1u64;
    let address: *const u64 = &value;
    let counts =
        errors_of(|| unsafe { MiMalloc.dealloc(address as *mut u8, Layout::new::<u64>()) });
    assert_eq!(counts, [0, 0, 1, 0, 0, 0]);
}

#[test]
fn no_error_of_a_correct_program() {
    let counts = errors_of(|| {
        for align in [1, 8, 16, 64, 4096] {
            for size in [0, 1, 8, 100, 10_000, 1 << 20] {
                unsafe {
                    let block = MiMalloc.alloc(layout(size, align));
                    let block = MiMalloc.realloc(block, layout(size, align), size + 50);
                    let block = MiMalloc.realloc(block, layout(size + 50, align), size / 2);
                    MiMalloc.dealloc(block, layout(size / 2, align));
                    let block = MiMalloc.alloc_zeroed(layout(size, align));
                    MiMalloc.dealloc(block, layout(size, align));
                }
            }
        }
    });
    assert_eq!(counts, [0; 6]);
}

/// Builds that check blocks see that a layout is not the block's, and keep the block.
#[test]
#[cfg(any(feature = "secure", feature = "debug"))]
fn a_layout_that_is_not_the_blocks() {
    unsafe {
        let block = MiMalloc.alloc(layout(100, 8));
        let counts = errors_of(|| MiMalloc.dealloc(block, layout(101, 8)));
        assert_eq!(counts, [0, 0, 1, 0, 0, 0], "another size");
        block.write_bytes(1, 100);
        MiMalloc.dealloc(block, layout(100, 8));
        let odd = (0..1000).map(|_| MiMalloc.alloc(layout(48, 16))).find(|b| *b as usize % 32 != 0);
        if let Some(block) = odd {
            let counts = errors_of(|| MiMalloc.dealloc(block, layout(48, 32)));
            assert_eq!(counts, [0, 0, 1, 0, 0, 0], "an alignment that it has not");
        }
    }
}

#[test]
#[cfg(any(feature = "secure", feature = "debug"))]
fn a_block_that_is_freed_twice() {
    let counts = errors_of(|| unsafe {
        let block = MiMalloc.alloc(layout(100, 8));
        MiMalloc.dealloc(block, layout(100, 8));
        MiMalloc.dealloc(block, layout(100, 8));
    });
    assert_eq!(counts.iter().sum::<usize>(), 1, "{counts:?}");
    assert_eq!(counts[2] + counts[3], 1, "{counts:?}");
}

#[test]
#[cfg(any(feature = "secure", feature = "debug"))]
fn a_block_that_was_written_behind_its_end() {
    let counts = errors_of(|| unsafe {
        let block = MiMalloc.alloc(layout(100, 8));
        block.add(100).write(block.add(100).read() ^ 0x55);
        MiMalloc.dealloc(block, layout(100, 8));
    });
    assert_eq!(counts[4], 1, "{counts:?}");
}

/// Without a handler, checked builds end the process; others go on.
#[test]
fn without_a_handler() {
    if common::is_child() {
        let value = 1u64;
        let address: *const u64 = &value;
        unsafe { MiMalloc.dealloc(address as *mut u8, Layout::new::<u64>()) };
        println!("went on");
        return;
    }
    let output = common::run_again("without_a_handler", &[("MIMALLOC_SHOW_ERRORS", "1")]);
    let is_checked = cfg!(any(feature = "secure", feature = "debug"));
    let went_on = String::from_utf8_lossy(&output.stdout).contains("went on");
    assert_eq!((output.status.success(), went_on), (!is_checked, !is_checked), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("mimalloc"), "{output:?}");
}

/// A handler that panics must not unwind through C: the process ends.
#[test]
fn a_handler_that_panics() {
    if common::is_child() {
        set_error_handler(Some(|_| panic!("in the handler")));
        assert!(unsafe { MiMalloc.alloc(layout(isize::MAX as usize, 1)) }.is_null());
        println!("went on");
        return;
    }
    let output = common::run_again("a_handler_that_panics", &[]);
    assert!(!output.status.success(), "{output:?}");
    let (out, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!out.contains("went on") && errors.contains("in the handler"), "{output:?}");
}
