//! What concerns the whole process, or single blocks.

use core::time::Duration;

use crate::raw;

/// The version of the C interface, major * 10000 + minor * 100 + patch: 2.4 and later, or 3.4 and later with the feature
/// `level3`.
pub fn version() -> u32 {
    // Safety: it only returns a number.
    unsafe { raw::mi_version() as u32 }
}

/// How many bytes of a block the program may use: at least the size of its layout, and exactly that in builds that check blocks
/// (`secure`, `debug`). 0 for NULL.
///
/// Containers of the standard library do not know of the bytes beyond their layout. They may be written to, but a reallocation
/// copies only the bytes of the layout.
///
/// # Safety
/// `block` is NULL or a live block of this allocator.
pub unsafe fn usable_size(block: *const u8) -> usize {
    // Safety: by the caller.
    unsafe { raw::mi_usable_size(block.cast()) }
}

/// The least usable size of a block of `size` bytes; in builds that check blocks, with what is added to each block. `size` itself
/// if it is too large for any block. A buffer that grows wastes nothing if it grows to good sizes.
pub fn good_size(size: usize) -> usize {
    // Safety: any size is allowed.
    unsafe { raw::mi_good_size(size) }
}

/// Is `address` within memory with blocks of this allocator? Any pointer is allowed. Of a block over 512 KiB only the first
/// 64 KiB count.
pub fn is_block<T: ?Sized>(address: *const T) -> bool {
    // Safety: any pointer is allowed.
    unsafe { raw::mi_is_in_heap_region(address.cast()) }
}

/// Empties the caches of the calling thread. With `force` all memory that is not in use also returns to the system. It is never
/// needed: without it that happens after some time. Takes time in proportion to the pages of the thread; with `force`, also to
/// the free memory of the process.
pub fn collect(force: bool) {
    // Safety: any thread may call it at any time.
    unsafe { raw::mi_collect(force) }
}

/// `collect(true)` that stops when the process holds no more than `target` bytes for its blocks, including free memory that has
/// not returned to the system.
pub fn trim_to(target: usize) {
    // Safety: any thread may call it at any time.
    unsafe { raw::mi_collect_reduce(target) }
}

/// What [`process_info`] tells. Memory is in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessInfo {
    /// Time since the process was started.
    pub elapsed: Duration,
    /// CPU time of the program.
    pub user: Duration,
    /// CPU time that the system took for it.
    pub system: Duration,
    /// Resident memory.
    pub rss: usize,
    /// The largest resident memory so far.
    pub peak_rss: usize,
    /// Memory that the allocator has made usable.
    pub committed: usize,
    /// The largest such amount so far.
    pub peak_committed: usize,
    /// Page faults that needed input.
    pub page_faults: usize,
}

/// Time and memory of the process.
pub fn process_info() -> ProcessInfo {
    let mut numbers = [0usize; 8];
    let [elapsed, user, system, rss, peak_rss, committed, peak_committed, faults] = &mut numbers;
    // Safety: all pointers are valid.
    unsafe {
        raw::mi_process_info(
            elapsed,
            user,
            system,
            rss,
            peak_rss,
            committed,
            peak_committed,
            faults,
        )
    }
    let [elapsed, user, system, rss, peak_rss, committed, peak_committed, page_faults] = numbers;
    let time = |ms: usize| Duration::from_millis(ms as u64);
    let (elapsed, user, system) = (time(elapsed), time(user), time(system));
    ProcessInfo { elapsed, user, system, rss, peak_rss, committed, peak_committed, page_faults }
}
