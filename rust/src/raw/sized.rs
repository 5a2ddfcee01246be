// Made by scripts/rust-bindings.py from the public headers: do not edit.

use super::*;

extern "C" {
    /// The functions of the same names without the u, but they also store the size of the block.  That may be larger than the usable
    /// size of an aligned pointer into the block.  Pointers to sizes may be NULL.  Nothing is stored on failure, nor by [`mi_ufree`](super::mi_ufree)(NULL).
    /// [`mi_urealloc`](super::mi_urealloc) stores the size before the call (0 for NULL p) and the size after it.
    pub fn mi_umalloc(size: usize, block_size: *mut usize) -> *mut c_void;

    /// See [`mi_umalloc`](super::mi_umalloc), with which it is described.
    pub fn mi_ucalloc(count: usize, size: usize, block_size: *mut usize) -> *mut c_void;

    /// See [`mi_umalloc`](super::mi_umalloc), with which it is described.
    pub fn mi_urealloc(
        p: *mut c_void,
        newsize: usize,
        block_size_pre: *mut usize,
        block_size_post: *mut usize,
    ) -> *mut c_void;

    /// See [`mi_umalloc`](super::mi_umalloc), with which it is described.
    pub fn mi_ufree(p: *mut c_void, block_size: *mut usize);

    /// See [`mi_umalloc`](super::mi_umalloc), with which it is described.
    pub fn mi_umalloc_small(size: usize, block_size: *mut usize) -> *mut c_void;

    /// See [`mi_umalloc`](super::mi_umalloc), with which it is described.
    pub fn mi_uzalloc_small(size: usize, block_size: *mut usize) -> *mut c_void;

    /// See [`mi_umalloc`](super::mi_umalloc), with which it is described.
    pub fn mi_umalloc_aligned(size: usize, alignment: usize, block_size: *mut usize)
        -> *mut c_void;

    /// See [`mi_umalloc`](super::mi_umalloc), with which it is described.
    pub fn mi_uzalloc_aligned(size: usize, alignment: usize, block_size: *mut usize)
        -> *mut c_void;
}
