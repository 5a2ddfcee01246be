// Made by scripts/rust-bindings.py from the public headers: do not edit.

use super::*;

extern "C" {
    /// Visits the areas of a heap and, with visit_blocks, its blocks.  Returns false if the visitor ended the visit or is NULL.
    /// During the visit no other thread may allocate from the heap or free its blocks, nor may the visitor.  O(pages of the
    /// process + blocks of the heap, free ones included); other visits take as long.
    #[cfg(not(feature = "level3"))]
    pub fn mi_heap_visit_blocks(
        heap: *const mi_heap_t,
        visit_blocks: bool,
        visitor: Option<mi_block_visit_fun>,
        arg: *mut c_void,
    ) -> bool;
    /// Visits the areas of a heap and, with visit_blocks, its blocks.  Returns false if the visitor ended the visit or is NULL.
    /// During the visit no other thread may allocate from the heap or free its blocks, nor may the visitor.  O(pages of the
    /// process + blocks of the heap, free ones included); other visits take as long.
    #[cfg(feature = "level3")]
    pub fn mi_heap_visit_blocks(
        heap: *mut mi_heap_t,
        visit_blocks: bool,
        visitor: Option<mi_block_visit_fun>,
        arg: *mut c_void,
    ) -> bool;

    /// Visits only the calling thread's part of a heap.
    pub fn mi_theap_visit_blocks(
        theap: *const mi_theap_t,
        visit_blocks: bool,
        visitor: Option<mi_block_visit_fun>,
        arg: *mut c_void,
    ) -> bool;

    /// Visit only areas that belong to no thread: those of a heap, or of all heaps of a subprocess that have this tag (-1: any).  The
    /// second function needs `mi_option_visit_abandoned`, which must be set before the first thread ends; otherwise it reports an error
    /// (EFAULT) and returns false.
    pub fn mi_heap_visit_abandoned_blocks(
        heap: *mut mi_heap_t,
        visit_blocks: bool,
        visitor: Option<mi_block_visit_fun>,
        arg: *mut c_void,
    ) -> bool;

    /// See [`mi_heap_visit_abandoned_blocks`](super::mi_heap_visit_abandoned_blocks), with which it is described.
    pub fn mi_abandoned_visit_blocks(
        subproc_id: mi_subproc_id_t,
        heap_tag: c_int,
        visit_blocks: bool,
        visitor: Option<mi_block_visit_fun>,
        arg: *mut c_void,
    ) -> bool;

    /// For programs that defragment their data: should the blocks of the page of p move to other pages?  True if the page
    /// belongs to this heap (NULL: to any), at most perc_threshold percent of it are in use, and allocation does not take from it
    /// at present.  False for NULL p.
    pub fn mi_unsafe_heap_page_is_under_utilized(
        heap: *mut mi_heap_t,
        p: *mut c_void,
        perc_threshold: usize,
    ) -> bool;
}
