// Made by scripts/rust-bindings.py from the public headers: do not edit.

use super::*;

extern "C" {
    /// The functions of the same names without _heap, allocating from this heap.  A resize moves a block of another heap to this one.
    pub fn mi_heap_malloc(heap: *mut mi_heap_t, size: usize) -> *mut c_void;

    /// See [`mi_heap_malloc`](super::mi_heap_malloc), with which it is described.
    pub fn mi_heap_zalloc(heap: *mut mi_heap_t, size: usize) -> *mut c_void;

    /// See [`mi_heap_malloc`](super::mi_heap_malloc), with which it is described.
    pub fn mi_heap_calloc(heap: *mut mi_heap_t, count: usize, size: usize) -> *mut c_void;

    /// See [`mi_heap_malloc`](super::mi_heap_malloc), with which it is described.
    pub fn mi_heap_mallocn(heap: *mut mi_heap_t, count: usize, size: usize) -> *mut c_void;

    /// See [`mi_heap_malloc`](super::mi_heap_malloc), with which it is described.
    pub fn mi_heap_malloc_small(heap: *mut mi_heap_t, size: usize) -> *mut c_void;

    /// See [`mi_heap_malloc`](super::mi_heap_malloc), with which it is described.
    pub fn mi_heap_zalloc_small(heap: *mut mi_heap_t, size: usize) -> *mut c_void;

    /// See [`mi_heap_malloc`](super::mi_heap_malloc), with which it is described.
    pub fn mi_heap_realloc(heap: *mut mi_heap_t, p: *mut c_void, newsize: usize) -> *mut c_void;

    /// See [`mi_heap_malloc`](super::mi_heap_malloc), with which it is described.
    pub fn mi_heap_reallocf(heap: *mut mi_heap_t, p: *mut c_void, newsize: usize) -> *mut c_void;

    /// See [`mi_heap_malloc`](super::mi_heap_malloc), with which it is described.
    pub fn mi_heap_rezalloc(heap: *mut mi_heap_t, p: *mut c_void, newsize: usize) -> *mut c_void;

    /// See [`mi_heap_malloc`](super::mi_heap_malloc), with which it is described.
    pub fn mi_heap_reallocn(
        heap: *mut mi_heap_t,
        p: *mut c_void,
        count: usize,
        size: usize,
    ) -> *mut c_void;

    /// See [`mi_heap_malloc`](super::mi_heap_malloc), with which it is described.
    pub fn mi_heap_recalloc(
        heap: *mut mi_heap_t,
        p: *mut c_void,
        newcount: usize,
        size: usize,
    ) -> *mut c_void;

    /// See [`mi_heap_malloc`](super::mi_heap_malloc), with which it is described.
    pub fn mi_heap_strdup(heap: *mut mi_heap_t, s: *const c_char) -> *mut c_char;

    /// See [`mi_heap_malloc`](super::mi_heap_malloc), with which it is described.
    pub fn mi_heap_strndup(heap: *mut mi_heap_t, s: *const c_char, n: usize) -> *mut c_char;

    /// See [`mi_heap_malloc`](super::mi_heap_malloc), with which it is described.
    pub fn mi_heap_realpath(
        heap: *mut mi_heap_t,
        fname: *const c_char,
        resolved_name: *mut c_char,
    ) -> *mut c_char;

    /// See [`mi_heap_malloc`](super::mi_heap_malloc), with which it is described.
    pub fn mi_heap_malloc_aligned(
        heap: *mut mi_heap_t,
        size: usize,
        alignment: usize,
    ) -> *mut c_void;

    /// See [`mi_heap_malloc`](super::mi_heap_malloc), with which it is described.
    pub fn mi_heap_malloc_aligned_at(
        heap: *mut mi_heap_t,
        size: usize,
        alignment: usize,
        offset: usize,
    ) -> *mut c_void;

    /// See [`mi_heap_malloc`](super::mi_heap_malloc), with which it is described.
    pub fn mi_heap_zalloc_aligned(
        heap: *mut mi_heap_t,
        size: usize,
        alignment: usize,
    ) -> *mut c_void;

    /// See [`mi_heap_malloc`](super::mi_heap_malloc), with which it is described.
    pub fn mi_heap_zalloc_aligned_at(
        heap: *mut mi_heap_t,
        size: usize,
        alignment: usize,
        offset: usize,
    ) -> *mut c_void;

    /// See [`mi_heap_malloc`](super::mi_heap_malloc), with which it is described.
    pub fn mi_heap_calloc_aligned(
        heap: *mut mi_heap_t,
        count: usize,
        size: usize,
        alignment: usize,
    ) -> *mut c_void;

    /// See [`mi_heap_malloc`](super::mi_heap_malloc), with which it is described.
    pub fn mi_heap_calloc_aligned_at(
        heap: *mut mi_heap_t,
        count: usize,
        size: usize,
        alignment: usize,
        offset: usize,
    ) -> *mut c_void;

    /// See [`mi_heap_malloc`](super::mi_heap_malloc), with which it is described.
    pub fn mi_heap_realloc_aligned(
        heap: *mut mi_heap_t,
        p: *mut c_void,
        newsize: usize,
        alignment: usize,
    ) -> *mut c_void;

    /// See [`mi_heap_malloc`](super::mi_heap_malloc), with which it is described.
    pub fn mi_heap_realloc_aligned_at(
        heap: *mut mi_heap_t,
        p: *mut c_void,
        newsize: usize,
        alignment: usize,
        offset: usize,
    ) -> *mut c_void;

    /// See [`mi_heap_malloc`](super::mi_heap_malloc), with which it is described.
    pub fn mi_heap_rezalloc_aligned(
        heap: *mut mi_heap_t,
        p: *mut c_void,
        newsize: usize,
        alignment: usize,
    ) -> *mut c_void;

    /// See [`mi_heap_malloc`](super::mi_heap_malloc), with which it is described.
    pub fn mi_heap_rezalloc_aligned_at(
        heap: *mut mi_heap_t,
        p: *mut c_void,
        newsize: usize,
        alignment: usize,
        offset: usize,
    ) -> *mut c_void;

    /// See [`mi_heap_malloc`](super::mi_heap_malloc), with which it is described.
    pub fn mi_heap_recalloc_aligned(
        heap: *mut mi_heap_t,
        p: *mut c_void,
        newcount: usize,
        size: usize,
        alignment: usize,
    ) -> *mut c_void;

    /// See [`mi_heap_malloc`](super::mi_heap_malloc), with which it is described.
    pub fn mi_heap_recalloc_aligned_at(
        heap: *mut mi_heap_t,
        p: *mut c_void,
        newcount: usize,
        size: usize,
        alignment: usize,
        offset: usize,
    ) -> *mut c_void;

    /// [`mi_new`](super::mi_new) and [`mi_new_n`](super::mi_new_n), allocating from this heap.
    pub fn mi_heap_alloc_new(heap: *mut mi_heap_t, size: usize) -> *mut c_void;

    /// [`mi_new`](super::mi_new) and [`mi_new_n`](super::mi_new_n), allocating from this heap.
    pub fn mi_heap_alloc_new_n(heap: *mut mi_heap_t, count: usize, size: usize) -> *mut c_void;

    /// [`mi_heap_alloc_new`](super::mi_heap_alloc_new); with `nothrow` it returns NULL, as [`mi_new_nothrow`](super::mi_new_nothrow) does, instead of throwing.
    pub fn mi_heap_try_new(heap: *mut mi_heap_t, size: usize, nothrow: bool) -> *mut c_void;
}
