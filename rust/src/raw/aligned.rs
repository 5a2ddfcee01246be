// Made by scripts/rust-bindings.py from the public headers: do not edit.

use super::*;

extern "C" {
    /// The alignment is a power of two; otherwise the result is NULL with errno EINVAL.  The size need not be a multiple of it.
    /// The functions with _at align p + offset instead of p; the offset may be beyond the block.  Blocks of all kinds are freed
    /// with [`mi_free`](super::mi_free).
    ///
    /// A reallocation keeps the block in place only if it has the requested alignment.  In a reallocation without an offset, an
    /// alignment of less than sizeof(void\*) that is not a power of two is ignored.
    pub fn mi_malloc_aligned(size: usize, alignment: usize) -> *mut c_void;

    /// See [`mi_malloc_aligned`](super::mi_malloc_aligned), with which it is described.
    pub fn mi_malloc_aligned_at(size: usize, alignment: usize, offset: usize) -> *mut c_void;

    /// See [`mi_malloc_aligned`](super::mi_malloc_aligned), with which it is described.
    pub fn mi_realloc_aligned(p: *mut c_void, newsize: usize, alignment: usize) -> *mut c_void;

    /// See [`mi_malloc_aligned`](super::mi_malloc_aligned), with which it is described.
    pub fn mi_realloc_aligned_at(
        p: *mut c_void,
        newsize: usize,
        alignment: usize,
        offset: usize,
    ) -> *mut c_void;

    /// The same, zero initialised.  rezalloc and recalloc are only for blocks that always were zero initialised, as above.
    pub fn mi_zalloc_aligned(size: usize, alignment: usize) -> *mut c_void;

    /// See [`mi_zalloc_aligned`](super::mi_zalloc_aligned), with which it is described.
    pub fn mi_zalloc_aligned_at(size: usize, alignment: usize, offset: usize) -> *mut c_void;

    /// See [`mi_zalloc_aligned`](super::mi_zalloc_aligned), with which it is described.
    pub fn mi_calloc_aligned(count: usize, size: usize, alignment: usize) -> *mut c_void;

    /// See [`mi_zalloc_aligned`](super::mi_zalloc_aligned), with which it is described.
    pub fn mi_calloc_aligned_at(
        count: usize,
        size: usize,
        alignment: usize,
        offset: usize,
    ) -> *mut c_void;

    /// See [`mi_zalloc_aligned`](super::mi_zalloc_aligned), with which it is described.
    pub fn mi_rezalloc_aligned(p: *mut c_void, newsize: usize, alignment: usize) -> *mut c_void;

    /// See [`mi_zalloc_aligned`](super::mi_zalloc_aligned), with which it is described.
    pub fn mi_rezalloc_aligned_at(
        p: *mut c_void,
        newsize: usize,
        alignment: usize,
        offset: usize,
    ) -> *mut c_void;

    /// See [`mi_zalloc_aligned`](super::mi_zalloc_aligned), with which it is described.
    pub fn mi_recalloc_aligned(
        p: *mut c_void,
        newcount: usize,
        size: usize,
        alignment: usize,
    ) -> *mut c_void;

    /// See [`mi_zalloc_aligned`](super::mi_zalloc_aligned), with which it is described.
    pub fn mi_recalloc_aligned_at(
        p: *mut c_void,
        newcount: usize,
        size: usize,
        alignment: usize,
        offset: usize,
    ) -> *mut c_void;
}
