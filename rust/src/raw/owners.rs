// Made by scripts/rust-bindings.py from the public headers: do not edit.

use super::*;

extern "C" {
    /// Is p within memory of this allocator, that is, in a page with blocks?  Any pointer is allowed.  In a block that has a page of its
    /// own (over 512 KiB, guarded, aligned at an offset or to more than 64 KiB) the answer is certain only up to the first multiple of
    /// 64 KiB behind its start.  [`mi_check_owned`](super::mi_check_owned) is the oldest name.
    pub fn mi_is_in_heap_region(p: *const c_void) -> bool;

    /// See [`mi_is_in_heap_region`](super::mi_is_in_heap_region), with which it is described.
    pub fn mi_any_heap_contains(p: *const c_void) -> bool;

    /// See [`mi_is_in_heap_region`](super::mi_is_in_heap_region), with which it is described.
    pub fn mi_check_owned(p: *const c_void) -> bool;

    /// Which heap does the page of p belong to, and is it this heap?  NULL and false if p is not within memory of this allocator.
    /// The functions with _block and _owned are older; the latter also requires p to be a multiple of sizeof(void\*).
    pub fn mi_heap_of(p: *const c_void) -> *mut mi_heap_t;

    /// See [`mi_heap_of`](super::mi_heap_of), with which it is described.
    pub fn mi_heap_contains(heap: *const mi_heap_t, p: *const c_void) -> bool;

    /// See [`mi_heap_of`](super::mi_heap_of), with which it is described.
    pub fn mi_heap_contains_block(heap: *mut mi_heap_t, p: *const c_void) -> bool;

    /// See [`mi_heap_of`](super::mi_heap_of), with which it is described.
    pub fn mi_heap_check_owned(heap: *mut mi_heap_t, p: *const c_void) -> bool;

    /// Windows: does the C library of the process allocate here?  Elsewhere false.
    pub fn mi_is_redirected() -> bool;
}
