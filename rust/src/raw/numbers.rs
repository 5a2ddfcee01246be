// Made by scripts/rust-bindings.py from the public headers: do not edit.

use super::*;

extern "C" {
    /// Fills in \*stats.  Returns false and changes nothing if it is NULL, or if its size or version is not that of the library.  For
    /// a heap, these are the blocks and pages of that heap.  For a subprocess, they are those of all its heaps and the rest that
    /// belongs to it; _exclusive leaves out its heaps.  (Everything that belongs to no heap, except threads, belongs to the main
    /// subprocess.)  O(pages of the process + threads) in each case.
    pub fn mi_stats_get(stats: *mut mi_stats_t) -> bool;

    /// See [`mi_stats_get`](super::mi_stats_get), with which it is described.
    pub fn mi_heap_stats_get(heap: *mut mi_heap_t, stats: *mut mi_stats_t) -> bool;

    /// See [`mi_stats_get`](super::mi_stats_get), with which it is described.
    pub fn mi_subproc_stats_get(subproc_id: mi_subproc_id_t, stats: *mut mi_stats_t) -> bool;

    /// See [`mi_stats_get`](super::mi_stats_get), with which it is described.
    pub fn mi_subproc_stats_get_exclusive(
        subproc_id: mi_subproc_id_t,
        stats: *mut mi_stats_t,
    ) -> bool;

    /// The same with process information, as JSON; page_faults are those that needed input, page_faults_minor all others.  If buf
    /// is NULL or buf_size is 0, the result is a block that must be freed with [`mi_free`](super::mi_free) (NULL if there is no memory).  Otherwise it
    /// is buf, and the text is cut off at buf_size - 1 bytes.  The text is always terminated, and takes less than 32 KiB.
    /// [`mi_stats_as_json`](super::mi_stats_as_json) writes the numbers in \*stats; it returns NULL if stats is NULL, or if its size or version is not that of
    /// the library.
    pub fn mi_stats_get_json(buf_size: usize, buf: *mut c_char) -> *mut c_char;

    /// See [`mi_stats_get_json`](super::mi_stats_get_json), with which it is described.
    pub fn mi_heap_stats_get_json(
        heap: *mut mi_heap_t,
        buf_size: usize,
        buf: *mut c_char,
    ) -> *mut c_char;

    /// See [`mi_stats_get_json`](super::mi_stats_get_json), with which it is described.
    pub fn mi_subproc_stats_get_json(
        subproc_id: mi_subproc_id_t,
        buf_size: usize,
        buf: *mut c_char,
    ) -> *mut c_char;

    /// See [`mi_stats_get_json`](super::mi_stats_get_json), with which it is described.
    pub fn mi_stats_as_json(
        stats: *mut mi_stats_t,
        buf_size: usize,
        buf: *mut c_char,
    ) -> *mut c_char;

    /// The largest block size in a bin; PTRDIFF_MAX for MI_BIN_HUGE, 0 if there is no such bin.
    pub fn mi_stats_get_bin_size(bin: usize) -> usize;
}
