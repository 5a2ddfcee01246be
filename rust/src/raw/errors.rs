// Made by scripts/rust-bindings.py from the public headers: do not edit.

use super::*;

extern "C" {
    /// Guarded mode: one block in sample_rate (0: none, 1: every block; seed 0: random), of a size between min and max bytes, ends
    /// where memory is inaccessible.  These settings replace the options guarded_... for blocks that the calling thread allocates
    /// from this heap; NULL is the main heap.  They have no effect if there is no memory for the thread's part of the heap, nor on a
    /// part (theap) of another thread.
    pub fn mi_heap_guarded_set_sample_rate(heap: *mut mi_heap_t, sample_rate: usize, seed: usize);

    /// See [`mi_heap_guarded_set_sample_rate`](super::mi_heap_guarded_set_sample_rate), with which it is described.
    pub fn mi_heap_guarded_set_size_bound(heap: *mut mi_heap_t, min: usize, max: usize);

    /// See [`mi_heap_guarded_set_sample_rate`](super::mi_heap_guarded_set_sample_rate), with which it is described.
    pub fn mi_theap_guarded_set_sample_rate(
        theap: *mut mi_theap_t,
        sample_rate: usize,
        seed: usize,
    );

    /// See [`mi_heap_guarded_set_sample_rate`](super::mi_heap_guarded_set_sample_rate), with which it is described.
    pub fn mi_theap_guarded_set_size_bound(theap: *mut mi_theap_t, min: usize, max: usize);

    /// The next two functions are extensions of this library.
    ///
    /// Heap consistency check: checks all pages and free blocks of a heap (NULL: of all heaps), and the bytes next to guarded
    /// blocks.  Builds that check blocks (secure, debug) also find blocks in use that were written to beyond their end.  Returns
    /// true if there is no error; otherwise it reports each error (EFAULT).  During the check no other thread may use the heap.  In
    /// the child of a fork that had more threads, blocks in use are not checked.  O(pages of the process + blocks of the heap).
    pub fn mi_heap_check(heap: *mut mi_heap_t) -> bool;

    /// Prints the blocks in use: for each block size the number of blocks and their bytes, and the large blocks.  At the end of a
    /// program these are the blocks that it did not free.  (In the child of a fork, what was free in the pages of threads that the
    /// child does not have counts as in use; for visits and statistics, too.)  NULL `out`: the registered output.  O(pages and
    /// blocks of the process).
    pub fn mi_leaks_print_out(out: Option<mi_output_fun>, arg: *mut c_void);
}
