// Made by scripts/rust-bindings.py from the public headers: do not edit.

use super::*;

extern "C" {
    /// Heaps are sets of blocks.  Any thread may allocate from any heap at any time, and [`mi_free`](super::mi_free) frees blocks of all heaps on any
    /// thread.  No thread may use a heap while it is being deleted or destroyed, nor afterwards.
    ///
    /// Returns a new, empty heap; NULL and errno ENOMEM if there is no memory.  All functions that make heaps take constant
    /// time.
    pub fn mi_heap_new() -> *mut mi_heap_t;

    /// The same with more properties.  heap_tag, 0 to 255, appears in the areas of the heap (`mi_heap_area_t`) and has no meaning to the
    /// allocator.  Without allow_destroy, [`mi_heap_destroy`](super::mi_heap_destroy) acts as [`mi_heap_delete`](super::mi_heap_delete).  A heap in an arena allocates from that arena only.
    /// An id of no arena, such as that of a failed reservation, gives a heap without an arena.
    pub fn mi_heap_new_ex(
        heap_tag: c_int,
        allow_destroy: bool,
        arena_id: mi_arena_id_t,
    ) -> *mut mi_heap_t;

    /// See [`mi_heap_new_ex`](super::mi_heap_new_ex), with which it is described.
    pub fn mi_heap_new_in_arena(arena_id: mi_arena_id_t) -> *mut mi_heap_t;

    /// End a heap.  [`mi_heap_delete`](super::mi_heap_delete) leaves the blocks of the heap valid: they belong to the main heap of the main subprocess from then on,
    /// and so does the free memory in their pages, even in an exclusive arena.  [`mi_heap_destroy`](super::mi_heap_destroy) frees all blocks of the heap at once.
    /// A thread that had the heap as its default heap gets the main heap of its subprocess instead.  Free blocks of the ended heap that
    /// the thread had ready may still be handed out to it, and belong to the main heap of the main subprocess.  (While a heap is a
    /// default heap, the C library and others may allocate from it; destroying the heap frees those blocks as well.)  NULL is ignored.
    /// A main heap is left alone, with a warning; a heap that is not in use is reported (EINVAL).  Both functions take O(pages of the
    /// heap + threads that have used it); in builds that check blocks, [`mi_heap_destroy`](super::mi_heap_destroy) also takes O(blocks of the heap).
    pub fn mi_heap_delete(heap: *mut mi_heap_t);

    /// See [`mi_heap_delete`](super::mi_heap_delete), with which it is described.
    pub fn mi_heap_destroy(heap: *mut mi_heap_t);

    /// [`mi_collect`](super::mi_collect) for the calling thread's part of this heap, without the deferred free function.  O(pages of that part); with
    /// `force` also the additional cost of [`mi_collect`](super::mi_collect).
    pub fn mi_heap_collect(heap: *mut mi_heap_t, force: bool);

    /// Returns the heap that all threads of a subprocess begin with.  It cannot be deleted.  The second name is older.
    pub fn mi_heap_main() -> *mut mi_heap_t;

    /// See [`mi_heap_main`](super::mi_heap_main), with which it is described.
    pub fn mi_heap_get_backing() -> *mut mi_heap_t;

    /// The default heap of the calling thread, from which functions that take no heap allocate; at first the main heap.
    /// [`mi_heap_set_default`](super::mi_heap_set_default) returns the previous default heap.  It changes nothing and returns NULL if the heap is NULL, if there is no
    /// memory for the thread's part of the heap (ENOMEM), and in destructors at the very end of a thread.
    pub fn mi_heap_get_default() -> *mut mi_heap_t;

    /// See [`mi_heap_get_default`](super::mi_heap_get_default), with which it is described.
    pub fn mi_heap_set_default(heap: *mut mi_heap_t) -> *mut mi_heap_t;

    /// Takes memory for this heap from arenas of this NUMA node first, modulo the number of nodes ([`mi_manage_os_memory`](super::mi_manage_os_memory) and
    /// [`mi_reserve_huge_os_pages_at`](super::mi_reserve_huge_os_pages_at) make arenas of a node).  A negative node means any.  Where the system puts other memory is up to it.
    pub fn mi_heap_set_numa_affinity(heap: *mut mi_heap_t, numa_node: c_int);
}
