// Made by scripts/rust-bindings.py from the public headers: do not edit.

use super::*;

extern "C" {
    /// Frees p if it is a block of this allocator ([`mi_is_in_heap_region`](super::mi_is_in_heap_region)); ignores any other pointer.
    pub fn mi_cfree(p: *mut c_void);

    /// [`mi_expand`](super::mi_expand), which also sets errno to ENOMEM when it returns NULL.
    pub fn mi__expand(p: *mut c_void, newsize: usize) -> *mut c_void;

    /// Other names of [`mi_usable_size`](super::mi_usable_size) and [`mi_good_size`](super::mi_good_size).
    pub fn mi_malloc_size(p: *const c_void) -> usize;

    /// Other names of [`mi_usable_size`](super::mi_usable_size) and [`mi_good_size`](super::mi_good_size).
    pub fn mi_malloc_usable_size(p: *const c_void) -> usize;

    /// Other names of [`mi_usable_size`](super::mi_usable_size) and [`mi_good_size`](super::mi_good_size).
    pub fn mi_malloc_good_size(size: usize) -> usize;

    /// Stores an aligned block in \*p and returns 0.  On failure it returns EINVAL (p is NULL, or the alignment is not a power of
    /// two that is a multiple of sizeof(void\*)) or ENOMEM, and leaves \*p alone.  Never changes errno.
    pub fn mi_posix_memalign(p: *mut *mut c_void, alignment: usize, size: usize) -> c_int;

    /// [`mi_malloc_aligned`](super::mi_malloc_aligned) with the arguments in the usual order.
    pub fn mi_memalign(alignment: usize, size: usize) -> *mut c_void;

    /// [`mi_malloc_aligned`](super::mi_malloc_aligned) with the arguments in the usual order.
    pub fn mi_aligned_alloc(alignment: usize, size: usize) -> *mut c_void;

    /// Return a block that begins at an OS page.  [`mi_pvalloc`](super::mi_pvalloc) also rounds its size up to whole OS pages.
    pub fn mi_valloc(size: usize) -> *mut c_void;

    /// See [`mi_valloc`](super::mi_valloc), with which it is described.
    pub fn mi_pvalloc(size: usize) -> *mut c_void;

    /// [`mi_reallocn`](super::mi_reallocn) under its BSD name; a count \* size that overflows sets errno to EOVERFLOW.
    pub fn mi_reallocarray(p: *mut c_void, count: usize, size: usize) -> *mut c_void;

    /// reallocarr of NetBSD: `ptrp` is the address of a pointer to a block or of a NULL pointer, and the reallocated block
    /// replaces that pointer.  A count of 0 frees the block and stores NULL.  Returns 0, EINVAL (ptrp is NULL, size is 0, or the
    /// pointer is not a block), EOVERFLOW or ENOMEM.  A failure also sets errno and leaves the pointer alone.
    pub fn mi_reallocarr(ptrp: *mut c_void, count: usize, size: usize) -> c_int;

    /// [`mi_recalloc_aligned`](super::mi_recalloc_aligned) and [`mi_recalloc_aligned_at`](super::mi_recalloc_aligned_at) under other names.
    pub fn mi_aligned_recalloc(
        p: *mut c_void,
        newcount: usize,
        size: usize,
        alignment: usize,
    ) -> *mut c_void;

    /// See [`mi_aligned_recalloc`](super::mi_aligned_recalloc), with which it is described.
    pub fn mi_aligned_offset_recalloc(
        p: *mut c_void,
        newcount: usize,
        size: usize,
        alignment: usize,
        offset: usize,
    ) -> *mut c_void;

    /// [`mi_free`](super::mi_free) with the size that was requested for the block, and its alignment.  Release builds ignore both.  Builds that check
    /// blocks (debug, secure) report a different size, or a block without that alignment (EINVAL), and do not free it.
    pub fn mi_free_size(p: *mut c_void, size: usize);

    /// See [`mi_free_size`](super::mi_free_size), with which it is described.
    pub fn mi_free_size_aligned(p: *mut c_void, size: usize, alignment: usize);

    /// See [`mi_free_size`](super::mi_free_size), with which it is described.
    pub fn mi_free_aligned(p: *mut c_void, alignment: usize);

    /// Return a copy of a string of wide characters or of bytes.  NULL gives NULL.
    pub fn mi_wcsdup(s: *const wchar_t) -> *mut wchar_t;

    /// See [`mi_wcsdup`](super::mi_wcsdup), with which it is described.
    pub fn mi_mbsdup(s: *const u8) -> *mut u8;

    /// Store a copy of the value of an environment variable in \*buf, and its length with the terminator in \*size, which may be
    /// NULL.  They store NULL and 0 if there is no such variable.  They return 0, EINVAL (buf or name is NULL) or ENOMEM.  The
    /// wide function is for Windows; elsewhere it stores NULL and returns EINVAL.
    pub fn mi_dupenv_s(buf: *mut *mut c_char, size: *mut usize, name: *const c_char) -> c_int;

    /// See [`mi_dupenv_s`](super::mi_dupenv_s), with which it is described.
    pub fn mi_wdupenv_s(buf: *mut *mut wchar_t, size: *mut usize, name: *const wchar_t) -> c_int;
}
