// Made by scripts/rust-bindings.py from mimalloc-stats.h: do not edit.

use super::*;

/// The statistics, as numbers. The functions that fill it in want `size` and `version` to be set, as `Default` does.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct mi_stats_t {
    /// The size of this structure in bytes.
    pub size: usize,
    /// `MI_STAT_VERSION`.
    pub version: usize,
    /// Pages: runs of memory with blocks of one size.
    pub pages: mi_stat_count_t,
    /// Bytes of address space for pages and blocks.
    pub reserved: mi_stat_count_t,
    /// Bytes of these that may be backed with memory.
    pub committed: mi_stat_count_t,
    /// Bytes that the system may take back when it needs them.
    pub reset: mi_stat_counter_t,
    /// Bytes given back but not unmapped, whether they were backed or not.
    pub purged: mi_stat_counter_t,
    /// Bytes in pages.
    pub page_committed: mi_stat_count_t,
    /// Pages that belong to no thread and have free blocks; peak: at most.
    pub pages_abandoned: mi_stat_count_t,
    /// Threads that have allocated.
    pub threads: mi_stat_count_t,
    /// Bytes in blocks of the size classes; only the current value.
    pub malloc_normal: mi_stat_count_t,
    /// bytes in blocks with a page of their own: larger ones, guarded ones ...
    pub malloc_huge: mi_stat_count_t,
    /// Bytes in all blocks; only the current value.
    pub malloc_requested: mi_stat_count_t,
    /// system calls: mmap, ...
    pub mmap_calls: mi_stat_counter_t,
    /// ... mprotect or the program's function, to make memory usable ...
    pub commit_calls: mi_stat_counter_t,
    /// ... madvise, to offer it to the system ...
    pub reset_calls: mi_stat_counter_t,
    /// ... madvise or the program's function, to give it back
    pub purge_calls: mi_stat_counter_t,
    /// Ranges of address space, with arenas of the program.
    pub arena_count: mi_stat_counter_t,
    /// Blocks of the size classes that are in use now.
    pub malloc_normal_count: mi_stat_counter_t,
    /// These blocks, all that were allocated; of a heap, those in use now.
    pub malloc_huge_count: mi_stat_counter_t,
    /// Blocks with a guard page.
    pub malloc_guarded_count: mi_stat_counter_t,
    /// Always 0: memory taken from an arena is always used.
    pub arena_rollback_count: mi_stat_counter_t,
    /// Periodic rounds that found memory to give back.
    pub arena_purges: mi_stat_counter_t,
    /// How often more of a page was put to use.
    pub pages_extended: mi_stat_counter_t,
    /// Pages that became empty and were given back.
    pub pages_retire: mi_stat_counter_t,
    /// pages checked by threads that know no page with free blocks ...
    pub page_searches: mi_stat_counter_t,
    /// ... and the number of such searches
    pub page_searches_count: mi_stat_counter_t,
    /// Always 0: pages lie in arenas, without segments between.
    pub segments: mi_stat_count_t,
    /// Always 0: there are no segments.
    pub segments_abandoned: mi_stat_count_t,
    /// Always 0: there are no segments.
    pub segments_cache: mi_stat_count_t,
    /// Always 0: there are no segments.
    pub _segments_reserved: mi_stat_count_t,
    /// Heaps.
    #[cfg(feature = "level3")]
    pub heaps: mi_stat_count_t,
    /// Parts of heaps that belong to a thread, or wait for one.
    #[cfg(feature = "level3")]
    pub theaps: mi_stat_count_t,
    /// pages of no thread, taken over by a thread that allocates ...
    pub pages_reclaim_on_alloc: mi_stat_counter_t,
    /// ... or, also full ones, by their former thread, by a free
    pub pages_reclaim_on_free: mi_stat_counter_t,
    /// Full pages that a thread has released, for others to make available.
    pub pages_reabandon_full: mi_stat_counter_t,
    /// Always 0: a page is taken over by one atomic operation.
    pub pages_unabandon_busy_wait: mi_stat_counter_t,
    /// Always 0: deleting a heap never waits for a thread.
    #[cfg(feature = "level3")]
    pub heaps_delete_wait: mi_stat_counter_t,
    /// Always 0: for fields to come.
    pub _stat_reserved: [mi_stat_count_t; 4],
    /// Always 0: for fields to come.
    pub _stat_counter_reserved: [mi_stat_counter_t; 4],
    /// Blocks by size.
    pub malloc_bins: [mi_stat_count_t; MI_BIN_HUGE + 1],
    /// Pages by the size of their blocks.
    pub page_bins: [mi_stat_count_t; MI_BIN_HUGE + 1],
    /// Always 0: all ranges take pages of all sizes.
    #[cfg(feature = "level3")]
    pub chunk_bins: [mi_stat_count_t; MI_CBIN_COUNT],
}
