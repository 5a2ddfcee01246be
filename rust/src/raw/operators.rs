// Made by scripts/rust-bindings.py from the public headers: do not edit.

use super::*;

extern "C" {
    /// When memory is missing these functions call the handler of std::set_new_handler and try again, as long as there is a
    /// handler.  After that, or at once if the alignment or the pointer is invalid (EINVAL) or count \* size overflows, those without
    /// _nothrow throw std::bad_alloc, or abort if there is no C++ runtime; the others return NULL.
    pub fn mi_new(size: usize) -> *mut c_void;

    /// See [`mi_new`](super::mi_new), with which it is described.
    pub fn mi_new_aligned(size: usize, alignment: usize) -> *mut c_void;

    /// See [`mi_new`](super::mi_new), with which it is described.
    pub fn mi_new_nothrow(size: usize) -> *mut c_void;

    /// See [`mi_new`](super::mi_new), with which it is described.
    pub fn mi_new_aligned_nothrow(size: usize, alignment: usize) -> *mut c_void;

    /// See [`mi_new`](super::mi_new), with which it is described.
    pub fn mi_new_n(count: usize, size: usize) -> *mut c_void;

    /// See [`mi_new`](super::mi_new), with which it is described.
    pub fn mi_new_realloc(p: *mut c_void, newsize: usize) -> *mut c_void;

    /// See [`mi_new`](super::mi_new), with which it is described.
    pub fn mi_new_reallocn(p: *mut c_void, newcount: usize, size: usize) -> *mut c_void;
}
