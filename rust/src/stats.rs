//! The statistics of the allocator.
//!
//! They are exact if no other thread allocates or frees meanwhile; otherwise parts of them may be of different moments. They are
//! counted on request, in time in proportion to the pages and threads of the process, never to its blocks.
//!
//! ```
//! let before = mimalloc_compat::stats::process();
//! let heap = mimalloc_compat::Heap::new().unwrap();
//! let _block = heap.boxed_slice(3 << 20, |_| 0u8).unwrap();
//! let after = mimalloc_compat::stats::process();
//! assert!(after.malloc_huge.current - before.malloc_huge.current >= 3 << 20);
//!
//! println!("{}", mimalloc_compat::stats::Table);
//! println!("{}", mimalloc_compat::stats::json().unwrap());
//! ```

use core::fmt;
use core::ops::Deref;
use core::ptr::{self, NonNull};

use crate::callback::{bytes_of, print_to};
use crate::raw::{self, c_char, mi_stats_t};

pub use crate::raw::{
    mi_stat_count_t as Count, mi_stat_counter_t as Counter, mi_stats_t as Numbers,
};

/// The last index of `malloc_bins` and `page_bins`, for blocks with a page of their own.
pub const LAST_BIN: usize = raw::MI_BIN_HUGE;

/// The statistics as numbers: of the process ([`process()`]), or of a heap ([`HeapRef::stats`](crate::HeapRef::stats)). All fields
/// are those of [`Numbers`].
#[derive(Clone, Copy, Debug)]
pub struct Stats(mi_stats_t);

impl Deref for Stats {
    type Target = Numbers;
    fn deref(&self) -> &Numbers {
        &self.0
    }
}

impl Stats {
    pub(crate) fn fill(get: impl FnOnce(*mut mi_stats_t) -> bool) -> Self {
        let mut stats = mi_stats_t::default();
        let is_filled = get(&mut stats);
        debug_assert!(is_filled, "the library knows another layout of the statistics");
        Self(stats)
    }

    /// Blocks in use, also those of other threads and those that were allocated by C code.
    pub fn blocks_in_use(&self) -> usize {
        (self.0.malloc_normal_count.total + self.0.malloc_bins[LAST_BIN].current) as usize
    }

    /// Bytes of the blocks in use.
    pub fn bytes_in_use(&self) -> usize {
        (self.0.malloc_normal.current + self.0.malloc_huge.current) as usize
    }

    /// The largest block size in a bin, an index of `malloc_bins` and `page_bins`; `isize::MAX` for the last bin.
    pub fn bin_size(bin: usize) -> Option<usize> {
        // Safety: any number is allowed.
        Some(unsafe { raw::mi_stats_get_bin_size(bin) }).filter(|size| *size != 0)
    }
}

/// The statistics of the process.
pub fn process() -> Stats {
    // Safety: any thread may call it at any time.
    Stats::fill(|stats| unsafe { raw::mi_stats_get(stats) })
}

/// The statistics of the process and information about it, as JSON; `None` if there is no memory for the text.
pub fn json() -> Option<Json> {
    // Safety: the text is a block of its own.
    unsafe { Json::from_raw(raw::mi_stats_get_json(0, ptr::null_mut())) }
}

/// Resets the statistics: totals and peaks become the current values, and counters become 0.
pub fn reset() {
    // Safety: any thread may call it at any time.
    unsafe { raw::mi_stats_reset() }
}

/// The statistics of the process as a table, for people: `println!("{}", stats::Table)`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Table;

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Safety: the output function gets the argument that it expects.
        print_to(f, |out, arg| unsafe { raw::mi_stats_print_out(Some(out), arg) })
    }
}

/// The blocks in use by size, as a table: at the end of a program, those that it did not free. Takes time in proportion to the
/// blocks of the process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Leaks;

impl fmt::Display for Leaks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Safety: the output function gets the argument that it expects.
        print_to(f, |out, arg| unsafe { raw::mi_leaks_print_out(Some(out), arg) })
    }
}

/// A JSON text, in a block of this allocator.
pub struct Json(NonNull<c_char>);

// Safety: it owns its text, and any thread may free it.
unsafe impl Send for Json {}
// Safety: the text does not change.
unsafe impl Sync for Json {}

impl Json {
    /// # Safety
    /// NULL, or a text in a block of its own.
    pub(crate) unsafe fn from_raw(text: *mut c_char) -> Option<Self> {
        NonNull::new(text).map(Self)
    }
}

impl Deref for Json {
    type Target = str;
    fn deref(&self) -> &str {
        // Safety: the text is terminated, and lives as long as this does.
        let bytes = unsafe { bytes_of(self.0.as_ptr()) };
        core::str::from_utf8(bytes).expect("JSON of numbers is ASCII")
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl Drop for Json {
    fn drop(&mut self) {
        // Safety: the block is this one's own.
        unsafe { raw::mi_free(self.0.as_ptr().cast()) }
    }
}
