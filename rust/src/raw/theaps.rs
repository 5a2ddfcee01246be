// Made by scripts/rust-bindings.py from the public headers: do not edit.

use super::*;

extern "C" {
    /// Returns the calling thread's part of a heap, which the first call makes.  Only this thread may use the part, until the heap or
    /// the thread ends.  Returns NULL if there is no memory for the part, and in destructors that run after the thread has given its
    /// parts back, where the functions with _heap still allocate.
    pub fn mi_heap_theap(heap: *mut mi_heap_t) -> *mut mi_theap_t;

    /// The calling thread's part of its default heap.  Setting it returns the previous one.  NULL, and a part that belongs to another
    /// thread, changes nothing and gives NULL.
    pub fn mi_theap_get_default() -> *mut mi_theap_t;

    /// See [`mi_theap_get_default`](super::mi_theap_get_default), with which it is described.
    pub fn mi_theap_set_default(theap: *mut mi_theap_t) -> *mut mi_theap_t;

    /// The functions with _heap, for this part of the heap.
    pub fn mi_theap_collect(theap: *mut mi_theap_t, force: bool);

    /// The functions with _heap, for this part of the heap.
    pub fn mi_theap_malloc(theap: *mut mi_theap_t, size: usize) -> *mut c_void;

    /// The functions with _heap, for this part of the heap.
    pub fn mi_theap_zalloc(theap: *mut mi_theap_t, size: usize) -> *mut c_void;

    /// The functions with _heap, for this part of the heap.
    pub fn mi_theap_calloc(theap: *mut mi_theap_t, count: usize, size: usize) -> *mut c_void;

    /// The functions with _heap, for this part of the heap.
    pub fn mi_theap_malloc_small(theap: *mut mi_theap_t, size: usize) -> *mut c_void;

    /// The functions with _heap, for this part of the heap.
    pub fn mi_theap_zalloc_small(theap: *mut mi_theap_t, size: usize) -> *mut c_void;

    /// The functions with _heap, for this part of the heap.
    pub fn mi_theap_malloc_aligned(
        theap: *mut mi_theap_t,
        size: usize,
        alignment: usize,
    ) -> *mut c_void;

    /// The functions with _heap, for this part of the heap.
    pub fn mi_theap_realloc(theap: *mut mi_theap_t, p: *mut c_void, newsize: usize) -> *mut c_void;
}
