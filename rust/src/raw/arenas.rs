// Made by scripts/rust-bindings.py from the public headers: do not edit.

use super::*;

extern "C" {
    /// An arena is address space that the program has reserved or provided, in addition to the address space that the allocator
    /// reserves itself.  All heaps take memory from an arena, unless it is `exclusive`: such an arena serves only heaps that were made
    /// for it.  An arena stays until the process ends.  Making one takes O(size), which is little unless it is committed or has large
    /// OS pages; asking about one takes constant time.  A function that stores an id stores -1 (level 2) or NULL (level 3) on failure;
    /// the pointer to the id may be NULL.
    ///
    /// The following two reserve an arena of at least `size` bytes, and return 0 or ENOMEM.  `commit`: make it usable at once.
    /// allow_large: use large OS pages if the system has some; these never return to the system.
    pub fn mi_reserve_os_memory(size: usize, commit: bool, allow_large: bool) -> c_int;

    /// See [`mi_reserve_os_memory`](super::mi_reserve_os_memory), with which it is described.
    pub fn mi_reserve_os_memory_ex(
        size: usize,
        commit: bool,
        allow_large: bool,
        exclusive: bool,
        arena_id: *mut mi_arena_id_t,
    ) -> c_int;

    /// Make an arena of memory that the program provides, and that must stay mapped until the process ends.  The result is false
    /// if the aligned part of it ([`mi_arena_min_alignment`](super::mi_arena_min_alignment)) is too small ([`mi_arena_min_size`](super::mi_arena_min_size)), or if it has addresses of more than 48
    /// bits, as systems give those who ask for them.
    /// ```text
    ///   is_committed  it can be used as it is            is_zero    it reads as zero
    ///   is_pinned     it must never be purged            numa_node  its node, -1 if that is not known
    /// ```
    /// With a commit_fun ([`mi_manage_memory`](super::mi_manage_memory)) the library calls that function, instead of the system, to make a part usable (commit true)
    /// or to give up the contents of a part (commit false).  If is_zero is not NULL, the function stores there whether a usable part
    /// reads as zero.  It returns whether it succeeded.  Any thread may call it, within any function of this library.  So it must not
    /// allocate from this allocator or wait for a thread that does, and must take no lock under which the program allocates or frees.
    pub fn mi_manage_os_memory(
        start: *mut c_void,
        size: usize,
        is_committed: bool,
        is_pinned: bool,
        is_zero: bool,
        numa_node: c_int,
    ) -> bool;

    /// See [`mi_manage_os_memory`](super::mi_manage_os_memory), with which it is described.
    pub fn mi_manage_os_memory_ex(
        start: *mut c_void,
        size: usize,
        is_committed: bool,
        is_pinned: bool,
        is_zero: bool,
        numa_node: c_int,
        exclusive: bool,
        arena_id: *mut mi_arena_id_t,
    ) -> bool;

    /// See [`mi_manage_os_memory`](super::mi_manage_os_memory), with which it is described.
    pub fn mi_manage_memory(
        start: *mut c_void,
        size: usize,
        is_committed: bool,
        is_pinned: bool,
        is_zero: bool,
        numa_node: c_int,
        exclusive: bool,
        commit_fun: Option<mi_commit_fun_t>,
        commit_fun_arg: *mut c_void,
        arena_id: *mut mi_arena_id_t,
    ) -> bool;

    /// Reserve `pages` OS pages of 1 GiB as arenas: on one NUMA node (-1: any), or spread over numa_nodes of them (0: all).  They
    /// stop after timeout_msecs milliseconds (0: never).  The result is 0 if at least one page was reserved, or if `pages` is 0;
    /// otherwise it is ENOMEM.  A warning tells of pages that are missing, and [`mi_arena_area`](super::mi_arena_area) the size that an arena has.
    pub fn mi_reserve_huge_os_pages_interleave(
        pages: usize,
        numa_nodes: usize,
        timeout_msecs: usize,
    ) -> c_int;

    /// See [`mi_reserve_huge_os_pages_interleave`](super::mi_reserve_huge_os_pages_interleave), with which it is described.
    pub fn mi_reserve_huge_os_pages_at(
        pages: usize,
        numa_node: c_int,
        timeout_msecs: usize,
    ) -> c_int;

    /// See [`mi_reserve_huge_os_pages_interleave`](super::mi_reserve_huge_os_pages_interleave), with which it is described.
    pub fn mi_reserve_huge_os_pages_at_ex(
        pages: usize,
        numa_node: c_int,
        timeout_msecs: usize,
        exclusive: bool,
        arena_id: *mut mi_arena_id_t,
    ) -> c_int;

    /// An older function: [`mi_reserve_huge_os_pages_interleave`](super::mi_reserve_huge_os_pages_interleave) over all nodes, with a warning.  max_secs is in seconds.  Stores the number
    /// of pages that were reserved in \*pages_reserved, which may be NULL.
    pub fn mi_reserve_huge_os_pages(
        pages: usize,
        max_secs: f64,
        pages_reserved: *mut usize,
    ) -> c_int;

    /// Returns the start of an arena, and stores its size in \*size, which may be NULL.  NULL and 0 for an arena that does not
    /// exist.
    pub fn mi_arena_area(arena_id: mi_arena_id_t, size: *mut usize) -> *mut c_void;

    /// Is p within this arena?  Any pointer is allowed.
    pub fn mi_arena_contains(arena_id: mi_arena_id_t, p: *const c_void) -> bool;

    /// The least alignment and size of memory for [`mi_manage_os_memory`](super::mi_manage_os_memory), in bytes.
    pub fn mi_arena_min_alignment() -> usize;

    /// See [`mi_arena_min_alignment`](super::mi_arena_min_alignment), with which it is described.
    pub fn mi_arena_min_size() -> usize;

    /// Print which parts of each arena are in use.  Two names of one function.  O(memory of the process).
    pub fn mi_arenas_print();

    /// See [`mi_arenas_print`](super::mi_arenas_print), with which it is described.
    pub fn mi_debug_show_arenas();
}
