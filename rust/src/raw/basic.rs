// Made by scripts/rust-bindings.py from the public headers: do not edit.

use super::*;

extern "C" {
    /// Returns a block of at least `size` bytes.
    pub fn mi_malloc(size: usize) -> *mut c_void;

    /// Returns a block of count \* size bytes, all zero.
    pub fn mi_calloc(count: usize, size: usize) -> *mut c_void;

    /// Returns a block of `newsize` bytes with the contents of p up to the smaller of both sizes, and frees p unless p itself is
    /// the result.  With p NULL it acts as [`mi_malloc`](super::mi_malloc).  The block stays in place if the new size fits and uses at least half of it.
    /// Large blocks (over 512 KiB) also grow in place, or are moved without a copy, where that is possible and cheaper.  A smaller
    /// block that grows by less than a quarter may get up to a quarter more than it had ([`mi_usable_size`](super::mi_usable_size) tells).  newsize 0 gives a
    /// block of size 0 (whose first byte is zero where blocks are not padded).  At level 2 a block that stays in place stays in its
    /// heap.  At level 3 a block of another heap than the default heap of the thread is moved to that heap.  All this holds for all
    /// functions that resize.  A pointer that is not a block is reported as by [`mi_free`](super::mi_free), and the result is NULL with errno EINVAL.
    pub fn mi_realloc(p: *mut c_void, newsize: usize) -> *mut c_void;

    /// [`mi_realloc`](super::mi_realloc) without moving: returns p if newsize bytes fit into its block, otherwise NULL, and the block stays as it was.
    /// NULL p gives NULL.  Leaves errno alone.  Always returns NULL in builds where blocks are padded (debug, secure); if they check
    /// blocks, a pointer that is no block any more is reported, as by [`mi_usable_size`](super::mi_usable_size).
    pub fn mi_expand(p: *mut c_void, newsize: usize) -> *mut c_void;

    /// Frees a block.  NULL is ignored.  A pointer that is not a block of this allocator is reported (EINVAL) and ignored, and
    /// so is a block that is found to be free already (EAGAIN).  Leaves errno alone.
    pub fn mi_free(p: *mut c_void);

    /// Returns a copy of the string s, or of its first n characters; always terminated.  NULL s gives NULL.  O(length).
    pub fn mi_strdup(s: *const c_char) -> *mut c_char;

    /// See [`mi_strdup`](super::mi_strdup), with which it is described.
    pub fn mi_strndup(s: *const c_char, n: usize) -> *mut c_char;

    /// realpath of the C library.  With resolved_name NULL the result is a block of this allocator, otherwise resolved_name,
    /// which must have space for PATH_MAX characters.  Failure gives NULL and the errno of realpath (ENOENT, ...).
    pub fn mi_realpath(fname: *const c_char, resolved_name: *mut c_char) -> *mut c_char;

    /// [`mi_malloc`](super::mi_malloc) and [`mi_zalloc`](super::mi_zalloc) for sizes of at most MI_SMALL_SIZE_MAX.  A larger size is an error of the caller.
    pub fn mi_malloc_small(size: usize) -> *mut c_void;

    /// See [`mi_malloc_small`](super::mi_malloc_small), with which it is described.
    pub fn mi_zalloc_small(size: usize) -> *mut c_void;

    /// [`mi_free`](super::mi_free), only for blocks that came from a function with _small in its name.
    pub fn mi_free_small(p: *mut c_void);

    /// [`mi_malloc`](super::mi_malloc) and [`mi_realloc`](super::mi_realloc) with a size of count \* size.
    pub fn mi_mallocn(count: usize, size: usize) -> *mut c_void;

    /// [`mi_malloc`](super::mi_malloc) and [`mi_realloc`](super::mi_realloc) with a size of count \* size.
    pub fn mi_reallocn(p: *mut c_void, count: usize, size: usize) -> *mut c_void;

    /// As [`mi_realloc`](super::mi_realloc), but a failure frees p.
    pub fn mi_reallocf(p: *mut c_void, newsize: usize) -> *mut c_void;

    /// Returns how many bytes from p on the program may use: at least the requested size, and exactly that in builds where blocks
    /// are padded.  0 for NULL and for pointers that do not come from this allocator.  Builds that check blocks report a pointer to a
    /// block that was freed, or into a block.
    pub fn mi_usable_size(p: *const c_void) -> usize;

    /// Returns the least usable size of a block that is requested with this size; in builds where blocks are padded, with the padding.
    /// (A guarded block may have no more than was requested.)  Returns `size` itself if it is too large for any block.
    pub fn mi_good_size(size: usize) -> usize;

    /// Empties the caches of the calling thread, and runs the deferred free function.  With `force` all memory that is not in
    /// use also returns to the system, except what other threads keep for their next requests.  Never needed for correctness.
    /// O(pages of the thread); with `force` also O(free memory of the process that has not returned to the system yet).
    pub fn mi_collect(force: bool);

    /// An older function.  As [`mi_collect`](super::mi_collect)(true), but stops when the process holds at most `target` bytes for its blocks, including
    /// free memory that has not returned to the system.  If it holds no more than that already, nothing happens; with 0 all free
    /// memory returns.
    pub fn mi_collect_reduce(target: usize);

    /// Returns MI_MALLOC_VERSION of the library, which may differ from that of this header.
    pub fn mi_version() -> c_int;

    /// [`mi_malloc`](super::mi_malloc) with zeroed contents.
    pub fn mi_zalloc(size: usize) -> *mut c_void;

    /// [`mi_realloc`](super::mi_realloc) and [`mi_reallocn`](super::mi_reallocn) with added bytes that are zero.  Only for NULL, and for blocks that were zero initialised when
    /// they were allocated and at each reallocation: the bytes between the requested size and the usable size are assumed to be
    /// zero.  A block that shrinks in place is not cleared: if it grows there again, its old bytes are back, unless blocks are
    /// padded.
    pub fn mi_rezalloc(p: *mut c_void, newsize: usize) -> *mut c_void;

    /// See [`mi_rezalloc`](super::mi_rezalloc), with which it is described.
    pub fn mi_recalloc(p: *mut c_void, newcount: usize, size: usize) -> *mut c_void;
}
