/* A general purpose memory allocator: the public interface and its manual.

   The interface has two levels, 2 (2.4, the default) and 3.  A library has the level that it was compiled with.  To use a
   library of level 3, define MI_API_LEVEL as 3 before the inclusion, in every source.  Both levels have all functions.
   They differ in the version, the numbers of some options (mi_option_t), the order of arguments of the typed macros, the
   types mi_arena_id_t and mi_subproc_id_t, the last field of mi_heap_area_t, mi_theap_t, and the layout of the statistics;
   each difference is described at its declaration.

   Conventions, which hold unless the description of a function says otherwise:

   - Sizes, offsets and alignments are in bytes.
   - Any thread may call any function at any time, and any thread may free any block.
   - A size of 0 gives a block like any other size: the result is not NULL, and must be freed once.
   - A function that fails returns NULL, sets errno to ENOMEM, and reports the error to the handler of mi_register_error
     (ENOMEM, or EOVERFLOW for a size over PTRDIFF_MAX, which no system could serve).  A count * size that overflows fails
     in the same way, but is reported (EOVERFLOW) only in debug builds and in those with MI_XMALLOC.  A failed
     reallocation leaves its block as it was.
   - A function that succeeds leaves errno alone.
   - Blocks of up to 8 bytes are aligned to 8 bytes, larger ones to at least 16.  (Builds with MI_MIN_ALIGN_8 align blocks of
     up to 56 bytes to at least 8.)
   - The contents of a new block are undefined, unless the name of the function has a z (zalloc, rezalloc) or contains
     calloc or recalloc.
   - A function that takes a heap takes NULL for the main heap.  A function that takes none allocates from the default
     heap of the calling thread.

   A function whose description names no cost takes constant time.  In costs, n is the size of the block in bytes, and pages are
   the runs of memory, of 64 KiB and more, that hold blocks of one size.  The time that the system needs to make memory usable, or
   to take it back, comes on top.  No cost depends on the number of blocks, threads or heaps, unless the description says so.

   - Up to 512 KiB, allocating and freeing take constant time on average: some calls look for a page or give one back.
     Larger blocks, and blocks of unusual alignment, take O(log m), where m is the number of such blocks and of the gaps
     between them.
   - Zeroing memory takes at most O(n): memory that is fresh from the system is zero already.
   - A resize that copies takes O(n).  If the system can move memory without a copy and that is cheaper, blocks of more than
     512 KiB are moved that way, which takes a small part of the time of a copy.
   - The first call of a thread, or its first call with a heap, takes constant time.  The end of a thread takes O(pages of the
     thread).

   A C compiler needs <stdbool.h> and `long long`; C++98 and later work as well. */
#pragma once
#ifndef MIMALLOC_H
#define MIMALLOC_H

#if !defined(MI_API_LEVEL)
#define MI_API_LEVEL 2
#endif

/* major * 10000 + minor * 100 + patch */
#if MI_API_LEVEL < 3
#define MI_MALLOC_VERSION 20401
#else
#define MI_MALLOC_VERSION 30403
#endif

#include <stddef.h>
#include <stdint.h>
#if !defined(__cplusplus)
  #include <stdbool.h>
#endif

/* ---- attributes of the functions, for the compiler --------------------------------------------------------------- */

#if !defined(__cplusplus)
  #define mi_attr_noexcept
#elif (__cplusplus >= 201103L) || (defined(_MSC_VER) && _MSC_VER >= 1900)
  #define mi_attr_noexcept noexcept
#else
  #define mi_attr_noexcept throw()
#endif

#if defined(__cplusplus) && (__cplusplus >= 201703L)
  #define mi_decl_nodiscard [[nodiscard]]
#elif defined(__GNUC__) || defined(__clang__)
  #define mi_decl_nodiscard __attribute__((warn_unused_result))
#elif defined(_HAS_NODISCARD)
  #define mi_decl_nodiscard _NODISCARD
#elif defined(_MSC_VER) && (_MSC_VER >= 1700)
  #define mi_decl_nodiscard _Check_return_
#else
  #define mi_decl_nodiscard
#endif

/* Windows: define MI_SHARED_LIB where the library is used as a DLL.  MI_SHARED_LIB_EXPORT is for its own build. */
#if defined(_MSC_VER) || defined(__MINGW32__)
  #if !defined(MI_SHARED_LIB)
    #define mi_decl_export
  #elif defined(MI_SHARED_LIB_EXPORT)
    #define mi_decl_export __declspec(dllexport)
  #else
    #define mi_decl_export __declspec(dllimport)
  #endif
#elif defined(__GNUC__) && defined(MI_SHARED_LIB) && defined(MI_SHARED_LIB_EXPORT)
  #define mi_decl_export __attribute__((visibility("default")))
#else
  #define mi_decl_export
#endif

#if defined(_MSC_VER) && (_MSC_VER >= 1900) && !defined(__clang__)
  #define mi_decl_restrict __declspec(allocator) __declspec(restrict)
#elif defined(_MSC_VER)
  #define mi_decl_restrict __declspec(restrict)
#else
  #define mi_decl_restrict
#endif

/* C90 has neither `inline` nor `long long`, but its compilers have both. */
#if !defined(__cplusplus) && (!defined(__STDC_VERSION__) || __STDC_VERSION__ < 199901L)
  #define mi_decl_inline static __inline
#else
  #define mi_decl_inline static inline
#endif
#if defined(__GNUC__) || defined(__clang__)
  #define mi_decl_extension __extension__
#else
  #define mi_decl_extension
#endif

#if defined(_WIN32)
  #define mi_cdecl __cdecl
#else
  #define mi_cdecl
#endif

#if defined(__GNUC__) || defined(__clang__)
  #define mi_attr_malloc __attribute__((malloc))
#else
  #define mi_attr_malloc
#endif
#if (defined(__clang_major__) && (__clang_major__ >= 4)) || \
    (!defined(__clang__) && defined(__GNUC__) && (__GNUC__ >= 5))
  #define mi_attr_alloc_size(s)       __attribute__((alloc_size(s)))
  #define mi_attr_alloc_size2(s1, s2) __attribute__((alloc_size(s1, s2)))
  #define mi_attr_alloc_align(p)      __attribute__((alloc_align(p)))
#else
  #define mi_attr_alloc_size(s)
  #define mi_attr_alloc_size2(s1, s2)
  #define mi_attr_alloc_align(p)
#endif

/* Functions that differ between the levels have the level in the name of their symbol.  So a program that uses such a function
   neither links with a library of the other level nor loads it.  The library also has these functions under their plain names,
   for programs that declare them without this header.  An mi_arena_id_t of one level means the same arena to a library of the
   other level, but an id of level 3 takes the space of a pointer. */
#if defined(MI_LIBRARY_BUILD) || !defined(__ELF__) || !defined(__GNUC__)
  #define mi_decl_level(name)
#elif MI_API_LEVEL < 3
  #define mi_decl_level(name) __asm__(#name "_level2")
#else
  #define mi_decl_level(name) __asm__(#name "_level3")
#endif

#if defined(__cplusplus)
extern "C" {
#endif

/* ---- types ------------------------------------------------------------------------------------------------------- */

/* A set of blocks that can be visited, or freed at once. */
typedef struct mi_heap_s mi_heap_t;

/* The part of a heap that belongs to one thread.  Level 2 does not distinguish it from the heap itself: there the functions
   are macros for those of heaps.  (A library of level 2 has the functions too, for bindings that declare them.) */
#if MI_API_LEVEL >= 3 || defined(MI_LIBRARY_BUILD)
typedef struct mi_theap_s mi_theap_t;
#else
typedef mi_heap_t mi_theap_t;
#endif

/* An arena: a range of address space that a program has reserved or provided.  0 or NULL means no arena. */
#if MI_API_LEVEL < 3
typedef int mi_arena_id_t;
#else
typedef void* mi_arena_id_t;
#endif

/* A subprocess: threads and heaps that share no memory with those of other subprocesses. */
#if MI_API_LEVEL < 3
typedef void* mi_subproc_id_t;
#else
typedef struct mi_subproc_id_s {
  void* _mi_subproc_id;
} mi_subproc_id_t;
#endif

/* ---- basic ------------------------------------------------------------------------------------------------------- */

/* Returns a block of at least `size` bytes. */
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_malloc(size_t size)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(1);

/* Returns a block of count * size bytes, all zero. */
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_calloc(size_t count, size_t size)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size2(1, 2);

/* Returns a block of `newsize` bytes with the contents of p up to the smaller of both sizes, and frees p unless p itself is
   the result.  With p NULL it acts as mi_malloc.  The block stays in place if the new size fits and uses at least half of it.
   Large blocks (over 512 KiB) also grow in place, or are moved without a copy, where that is possible and cheaper.  A smaller
   block that grows by less than a quarter may get up to a quarter more than it had (mi_usable_size tells).  newsize 0 gives a
   block of size 0 (whose first byte is zero where blocks are not padded).  At level 2 a block that stays in place stays in its
   heap.  At level 3 a block of another heap than the default heap of the thread is moved to that heap.  All this holds for all
   functions that resize.  A pointer that is not a block is reported as by mi_free, and the result is NULL with errno EINVAL. */
mi_decl_nodiscard mi_decl_export void* mi_realloc(void* p, size_t newsize) mi_attr_noexcept mi_attr_alloc_size(2);

/* mi_realloc without moving: returns p if newsize bytes fit into its block, otherwise NULL, and the block stays as it was.
   NULL p gives NULL.  Leaves errno alone.  Always returns NULL in builds where blocks are padded (debug, secure); if they check
   blocks, a pointer that is no block any more is reported, as by mi_usable_size. */
mi_decl_export void* mi_expand(void* p, size_t newsize) mi_attr_noexcept mi_attr_alloc_size(2);

/* Frees a block.  NULL is ignored.  A pointer that is not a block of this allocator is reported (EINVAL) and ignored, and
   so is a block that is found to be free already (EAGAIN).  Leaves errno alone. */
mi_decl_export void mi_free(void* p) mi_attr_noexcept;

/* Returns a copy of the string s, or of its first n characters; always terminated.  NULL s gives NULL.  O(length). */
mi_decl_nodiscard mi_decl_export mi_decl_restrict char* mi_strdup(const char* s) mi_attr_noexcept mi_attr_malloc;
mi_decl_nodiscard mi_decl_export mi_decl_restrict char* mi_strndup(const char* s, size_t n)
  mi_attr_noexcept mi_attr_malloc;

/* realpath of the C library.  With resolved_name NULL the result is a block of this allocator, otherwise resolved_name,
   which must have space for PATH_MAX characters.  Failure gives NULL and the errno of realpath (ENOENT, ...). */
mi_decl_nodiscard mi_decl_export mi_decl_restrict char* mi_realpath(const char* fname, char* resolved_name)
  mi_attr_noexcept;

/* ---- extended ---------------------------------------------------------------------------------------------------- */

/* The largest size for the functions with _small in their names: 1 KiB on 64-bit systems, 512 bytes on 32-bit ones. */
#define MI_SMALL_WSIZE_MAX 128
#define MI_SMALL_SIZE_MAX  (MI_SMALL_WSIZE_MAX * sizeof(void*))

/* mi_malloc and mi_zalloc for sizes of at most MI_SMALL_SIZE_MAX.  A larger size is an error of the caller. */
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_malloc_small(size_t size)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(1);
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_zalloc_small(size_t size)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(1);

/* mi_free, only for blocks that came from a function with _small in its name. */
mi_decl_export void mi_free_small(void* p) mi_attr_noexcept;

/* mi_malloc and mi_realloc with a size of count * size. */
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_mallocn(size_t count, size_t size)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size2(1, 2);
mi_decl_nodiscard mi_decl_export void* mi_reallocn(void* p, size_t count, size_t size)
  mi_attr_noexcept mi_attr_alloc_size2(2, 3);

/* As mi_realloc, but a failure frees p. */
mi_decl_nodiscard mi_decl_export void* mi_reallocf(void* p, size_t newsize) mi_attr_noexcept mi_attr_alloc_size(2);

/* Returns how many bytes from p on the program may use: at least the requested size, and exactly that in builds where blocks
   are padded.  0 for NULL and for pointers that do not come from this allocator.  Builds that check blocks report a pointer to a
   block that was freed, or into a block. */
mi_decl_nodiscard mi_decl_export size_t mi_usable_size(const void* p) mi_attr_noexcept;

/* Returns the least usable size of a block that is requested with this size; in builds where blocks are padded, with the padding.
   (A guarded block may have no more than was requested.)  Returns `size` itself if it is too large for any block. */
mi_decl_nodiscard mi_decl_export size_t mi_good_size(size_t size) mi_attr_noexcept;

/* Empties the caches of the calling thread, and runs the deferred free function.  With `force` all memory that is not in
   use also returns to the system, except what other threads keep for their next requests.  Never needed for correctness.
   O(pages of the thread); with `force` also O(free memory of the process that has not returned to the system yet). */
mi_decl_export void mi_collect(bool force) mi_attr_noexcept;

/* An older function.  As mi_collect(true), but stops when the process holds at most `target` bytes for its blocks, including
   free memory that has not returned to the system.  If it holds no more than that already, nothing happens; with 0 all free
   memory returns. */
mi_decl_export void mi_collect_reduce(size_t target) mi_attr_noexcept;

/* Returns MI_MALLOC_VERSION of the library, which may differ from that of this header. */
mi_decl_export int mi_version(void) mi_attr_noexcept;

/* ---- zero initialised -------------------------------------------------------------------------------------------- */

/* mi_malloc with zeroed contents. */
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_zalloc(size_t size)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(1);

/* mi_realloc and mi_reallocn with added bytes that are zero.  Only for NULL, and for blocks that were zero initialised when
   they were allocated and at each reallocation: the bytes between the requested size and the usable size are assumed to be
   zero.  A block that shrinks in place is not cleared: if it grows there again, its old bytes are back, unless blocks are
   padded. */
mi_decl_nodiscard mi_decl_export void* mi_rezalloc(void* p, size_t newsize) mi_attr_noexcept mi_attr_alloc_size(2);
mi_decl_nodiscard mi_decl_export void* mi_recalloc(void* p, size_t newcount, size_t size)
  mi_attr_noexcept mi_attr_alloc_size2(2, 3);

/* ---- aligned ----------------------------------------------------------------------------------------------------- */

/* The alignment is a power of two; otherwise the result is NULL with errno EINVAL.  The size need not be a multiple of it.
   The functions with _at align p + offset instead of p; the offset may be beyond the block.  Blocks of all kinds are freed
   with mi_free.

   A reallocation keeps the block in place only if it has the requested alignment.  In a reallocation without an offset, an
   alignment of less than sizeof(void*) that is not a power of two is ignored. */
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_malloc_aligned(size_t size, size_t alignment)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(1) mi_attr_alloc_align(2);
mi_decl_nodiscard mi_decl_export mi_decl_restrict void*
  mi_malloc_aligned_at(size_t size, size_t alignment, size_t offset)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(1);
mi_decl_nodiscard mi_decl_export void* mi_realloc_aligned(void* p, size_t newsize, size_t alignment)
  mi_attr_noexcept mi_attr_alloc_size(2) mi_attr_alloc_align(3);
mi_decl_nodiscard mi_decl_export void* mi_realloc_aligned_at(void* p, size_t newsize, size_t alignment, size_t offset)
  mi_attr_noexcept mi_attr_alloc_size(2);

/* The same, zero initialised.  rezalloc and recalloc are only for blocks that always were zero initialised, as above. */
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_zalloc_aligned(size_t size, size_t alignment)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(1) mi_attr_alloc_align(2);
mi_decl_nodiscard mi_decl_export mi_decl_restrict void*
  mi_zalloc_aligned_at(size_t size, size_t alignment, size_t offset)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(1);
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_calloc_aligned(size_t count, size_t size, size_t alignment)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size2(1, 2) mi_attr_alloc_align(3);
mi_decl_nodiscard mi_decl_export mi_decl_restrict void*
  mi_calloc_aligned_at(size_t count, size_t size, size_t alignment, size_t offset)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size2(1, 2);
mi_decl_nodiscard mi_decl_export void* mi_rezalloc_aligned(void* p, size_t newsize, size_t alignment)
  mi_attr_noexcept mi_attr_alloc_size(2) mi_attr_alloc_align(3);
mi_decl_nodiscard mi_decl_export void* mi_rezalloc_aligned_at(void* p, size_t newsize, size_t alignment, size_t offset)
  mi_attr_noexcept mi_attr_alloc_size(2);
mi_decl_nodiscard mi_decl_export void* mi_recalloc_aligned(void* p, size_t newcount, size_t size, size_t alignment)
  mi_attr_noexcept mi_attr_alloc_size2(2, 3) mi_attr_alloc_align(4);
mi_decl_nodiscard mi_decl_export void*
  mi_recalloc_aligned_at(void* p, size_t newcount, size_t size, size_t alignment, size_t offset)
  mi_attr_noexcept mi_attr_alloc_size2(2, 3);

/* ---- with the size of the block ---------------------------------------------------------------------------------- */

/* The functions of the same names without the u, but they also store the size of the block.  That may be larger than the usable
   size of an aligned pointer into the block.  Pointers to sizes may be NULL.  Nothing is stored on failure, nor by mi_ufree(NULL).
   mi_urealloc stores the size before the call (0 for NULL p) and the size after it. */
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_umalloc(size_t size, size_t* block_size)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(1);
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_ucalloc(size_t count, size_t size, size_t* block_size)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size2(1, 2);
mi_decl_nodiscard mi_decl_export void*
  mi_urealloc(void* p, size_t newsize, size_t* block_size_pre, size_t* block_size_post)
  mi_attr_noexcept mi_attr_alloc_size(2);
mi_decl_export void mi_ufree(void* p, size_t* block_size) mi_attr_noexcept;
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_umalloc_small(size_t size, size_t* block_size)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(1);
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_uzalloc_small(size_t size, size_t* block_size)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(1);
mi_decl_nodiscard mi_decl_export mi_decl_restrict void*
  mi_umalloc_aligned(size_t size, size_t alignment, size_t* block_size)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(1) mi_attr_alloc_align(2);
mi_decl_nodiscard mi_decl_export mi_decl_restrict void*
  mi_uzalloc_aligned(size_t size, size_t alignment, size_t* block_size)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(1) mi_attr_alloc_align(2);

/* ---- heaps ------------------------------------------------------------------------------------------------------- */

/* Heaps are sets of blocks.  Any thread may allocate from any heap at any time, and mi_free frees blocks of all heaps on any
   thread.  No thread may use a heap while it is being deleted or destroyed, nor afterwards.

   Returns a new, empty heap; NULL and errno ENOMEM if there is no memory.  All functions that make heaps take constant
   time. */
mi_decl_nodiscard mi_decl_export mi_heap_t* mi_heap_new(void);

/* The same with more properties.  heap_tag, 0 to 255, appears in the areas of the heap (mi_heap_area_t) and has no meaning to the
   allocator.  Without allow_destroy, mi_heap_destroy acts as mi_heap_delete.  A heap in an arena allocates from that arena only.
   An id of no arena, such as that of a failed reservation, gives a heap without an arena. */
mi_decl_nodiscard mi_decl_export mi_heap_t* mi_heap_new_ex(int heap_tag, bool allow_destroy, mi_arena_id_t arena_id)
  mi_decl_level(mi_heap_new_ex);
mi_decl_nodiscard mi_decl_export mi_heap_t* mi_heap_new_in_arena(mi_arena_id_t arena_id)
  mi_decl_level(mi_heap_new_in_arena);

/* End a heap.  mi_heap_delete leaves the blocks of the heap valid: they belong to the main heap of the main subprocess from then on,
   and so does the free memory in their pages, even in an exclusive arena.  mi_heap_destroy frees all blocks of the heap at once.
   A thread that had the heap as its default heap gets the main heap of its subprocess instead.  Free blocks of the ended heap that
   the thread had ready may still be handed out to it, and belong to the main heap of the main subprocess.  (While a heap is a
   default heap, the C library and others may allocate from it; destroying the heap frees those blocks as well.)  NULL is ignored.
   A main heap is left alone, with a warning; a heap that is not in use is reported (EINVAL).  Both functions take O(pages of the
   heap + threads that have used it); in builds that check blocks, mi_heap_destroy also takes O(blocks of the heap). */
mi_decl_export void mi_heap_delete(mi_heap_t* heap);
mi_decl_export void mi_heap_destroy(mi_heap_t* heap);

/* mi_collect for the calling thread's part of this heap, without the deferred free function.  O(pages of that part); with
   `force` also the additional cost of mi_collect. */
mi_decl_export void mi_heap_collect(mi_heap_t* heap, bool force) mi_attr_noexcept;

/* Returns the heap that all threads of a subprocess begin with.  It cannot be deleted.  The second name is older. */
mi_decl_nodiscard mi_decl_export mi_heap_t* mi_heap_main(void);
mi_decl_export mi_heap_t* mi_heap_get_backing(void);

/* The default heap of the calling thread, from which functions that take no heap allocate; at first the main heap.
   mi_heap_set_default returns the previous default heap.  It changes nothing and returns NULL if the heap is NULL, if there is no
   memory for the thread's part of the heap (ENOMEM), and in destructors at the very end of a thread. */
mi_decl_export mi_heap_t* mi_heap_get_default(void);
mi_decl_export mi_heap_t* mi_heap_set_default(mi_heap_t* heap);

/* Takes memory for this heap from arenas of this NUMA node first, modulo the number of nodes (mi_manage_os_memory and
   mi_reserve_huge_os_pages_at make arenas of a node).  A negative node means any.  Where the system puts other memory is up to it. */
mi_decl_export void mi_heap_set_numa_affinity(mi_heap_t* heap, int numa_node);

/* ---- from a heap ------------------------------------------------------------------------------------------------- */

/* The functions of the same names without _heap, allocating from this heap.  A resize moves a block of another heap to this one. */
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_heap_malloc(mi_heap_t* heap, size_t size)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(2);
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_heap_zalloc(mi_heap_t* heap, size_t size)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(2);
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_heap_calloc(mi_heap_t* heap, size_t count, size_t size)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size2(2, 3);
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_heap_mallocn(mi_heap_t* heap, size_t count, size_t size)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size2(2, 3);
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_heap_malloc_small(mi_heap_t* heap, size_t size)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(2);
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_heap_zalloc_small(mi_heap_t* heap, size_t size)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(2);

mi_decl_nodiscard mi_decl_export void* mi_heap_realloc(mi_heap_t* heap, void* p, size_t newsize)
  mi_attr_noexcept mi_attr_alloc_size(3);
mi_decl_nodiscard mi_decl_export void* mi_heap_reallocf(mi_heap_t* heap, void* p, size_t newsize)
  mi_attr_noexcept mi_attr_alloc_size(3);
mi_decl_nodiscard mi_decl_export void* mi_heap_rezalloc(mi_heap_t* heap, void* p, size_t newsize)
  mi_attr_noexcept mi_attr_alloc_size(3);
mi_decl_nodiscard mi_decl_export void* mi_heap_reallocn(mi_heap_t* heap, void* p, size_t count, size_t size)
  mi_attr_noexcept mi_attr_alloc_size2(3, 4);
mi_decl_nodiscard mi_decl_export void* mi_heap_recalloc(mi_heap_t* heap, void* p, size_t newcount, size_t size)
  mi_attr_noexcept mi_attr_alloc_size2(3, 4);

mi_decl_nodiscard mi_decl_export mi_decl_restrict char* mi_heap_strdup(mi_heap_t* heap, const char* s)
  mi_attr_noexcept mi_attr_malloc;
mi_decl_nodiscard mi_decl_export mi_decl_restrict char* mi_heap_strndup(mi_heap_t* heap, const char* s, size_t n)
  mi_attr_noexcept mi_attr_malloc;
mi_decl_nodiscard mi_decl_export mi_decl_restrict char*
  mi_heap_realpath(mi_heap_t* heap, const char* fname, char* resolved_name) mi_attr_noexcept;

mi_decl_nodiscard mi_decl_export mi_decl_restrict void*
  mi_heap_malloc_aligned(mi_heap_t* heap, size_t size, size_t alignment)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(2) mi_attr_alloc_align(3);
mi_decl_nodiscard mi_decl_export mi_decl_restrict void*
  mi_heap_malloc_aligned_at(mi_heap_t* heap, size_t size, size_t alignment, size_t offset)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(2);
mi_decl_nodiscard mi_decl_export mi_decl_restrict void*
  mi_heap_zalloc_aligned(mi_heap_t* heap, size_t size, size_t alignment)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(2) mi_attr_alloc_align(3);
mi_decl_nodiscard mi_decl_export mi_decl_restrict void*
  mi_heap_zalloc_aligned_at(mi_heap_t* heap, size_t size, size_t alignment, size_t offset)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(2);
mi_decl_nodiscard mi_decl_export mi_decl_restrict void*
  mi_heap_calloc_aligned(mi_heap_t* heap, size_t count, size_t size, size_t alignment)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size2(2, 3) mi_attr_alloc_align(4);
mi_decl_nodiscard mi_decl_export mi_decl_restrict void*
  mi_heap_calloc_aligned_at(mi_heap_t* heap, size_t count, size_t size, size_t alignment, size_t offset)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size2(2, 3);
mi_decl_nodiscard mi_decl_export void*
  mi_heap_realloc_aligned(mi_heap_t* heap, void* p, size_t newsize, size_t alignment)
  mi_attr_noexcept mi_attr_alloc_size(3) mi_attr_alloc_align(4);
mi_decl_nodiscard mi_decl_export void*
  mi_heap_realloc_aligned_at(mi_heap_t* heap, void* p, size_t newsize, size_t alignment, size_t offset)
  mi_attr_noexcept mi_attr_alloc_size(3);
mi_decl_nodiscard mi_decl_export void*
  mi_heap_rezalloc_aligned(mi_heap_t* heap, void* p, size_t newsize, size_t alignment)
  mi_attr_noexcept mi_attr_alloc_size(3) mi_attr_alloc_align(4);
mi_decl_nodiscard mi_decl_export void*
  mi_heap_rezalloc_aligned_at(mi_heap_t* heap, void* p, size_t newsize, size_t alignment, size_t offset)
  mi_attr_noexcept mi_attr_alloc_size(3);
mi_decl_nodiscard mi_decl_export void*
  mi_heap_recalloc_aligned(mi_heap_t* heap, void* p, size_t newcount, size_t size, size_t alignment)
  mi_attr_noexcept mi_attr_alloc_size2(3, 4) mi_attr_alloc_align(5);
mi_decl_nodiscard mi_decl_export void*
  mi_heap_recalloc_aligned_at(mi_heap_t* heap, void* p, size_t newcount, size_t size, size_t alignment, size_t offset)
  mi_attr_noexcept mi_attr_alloc_size2(3, 4);

/* mi_new and mi_new_n, allocating from this heap. */
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_heap_alloc_new(mi_heap_t* heap, size_t size)
  mi_attr_malloc mi_attr_alloc_size(2);
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_heap_alloc_new_n(mi_heap_t* heap, size_t count, size_t size)
  mi_attr_malloc mi_attr_alloc_size2(2, 3);

/* mi_heap_alloc_new; with `nothrow` it returns NULL, as mi_new_nothrow does, instead of throwing. */
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_heap_try_new(mi_heap_t* heap, size_t size, bool nothrow)
  mi_attr_malloc mi_attr_alloc_size(2);

/* ---- heaps of one thread ----------------------------------------------------------------------------------------- */

#if MI_API_LEVEL >= 3 || defined(MI_LIBRARY_BUILD)

/* Returns the calling thread's part of a heap, which the first call makes.  Only this thread may use the part, until the heap or
   the thread ends.  Returns NULL if there is no memory for the part, and in destructors that run after the thread has given its
   parts back, where the functions with _heap still allocate. */
mi_decl_export mi_theap_t* mi_heap_theap(mi_heap_t* heap);

/* The calling thread's part of its default heap.  Setting it returns the previous one.  NULL, and a part that belongs to another
   thread, changes nothing and gives NULL. */
mi_decl_export mi_theap_t* mi_theap_get_default(void);
mi_decl_export mi_theap_t* mi_theap_set_default(mi_theap_t* theap);

/* The functions with _heap, for this part of the heap. */
mi_decl_export void mi_theap_collect(mi_theap_t* theap, bool force) mi_attr_noexcept;
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_theap_malloc(mi_theap_t* theap, size_t size)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(2);
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_theap_zalloc(mi_theap_t* theap, size_t size)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(2);
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_theap_calloc(mi_theap_t* theap, size_t count, size_t size)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size2(2, 3);
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_theap_malloc_small(mi_theap_t* theap, size_t size)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(2);
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_theap_zalloc_small(mi_theap_t* theap, size_t size)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(2);
mi_decl_nodiscard mi_decl_export mi_decl_restrict void*
  mi_theap_malloc_aligned(mi_theap_t* theap, size_t size, size_t alignment)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(2) mi_attr_alloc_align(3);
mi_decl_nodiscard mi_decl_export void* mi_theap_realloc(mi_theap_t* theap, void* p, size_t newsize)
  mi_attr_noexcept mi_attr_alloc_size(3);

#else

#define mi_heap_theap(hp)                      (hp)
#define mi_theap_get_default()                 mi_heap_get_default()
#define mi_theap_set_default(hp)               mi_heap_set_default(hp)
#define mi_theap_collect(hp, force)            mi_heap_collect(hp, force)
#define mi_theap_malloc(hp, sz)                mi_heap_malloc(hp, sz)
#define mi_theap_zalloc(hp, sz)                mi_heap_zalloc(hp, sz)
#define mi_theap_calloc(hp, cnt, sz)           mi_heap_calloc(hp, cnt, sz)
#define mi_theap_malloc_small(hp, sz)          mi_heap_malloc_small(hp, sz)
#define mi_theap_zalloc_small(hp, sz)          mi_heap_zalloc_small(hp, sz)
#define mi_theap_malloc_aligned(hp, sz, a)     mi_heap_malloc_aligned(hp, sz, a)
#define mi_theap_realloc(hp, p, newsz)         mi_heap_realloc(hp, p, newsz)
#define mi_theap_visit_blocks(hp, all, f, arg) mi_heap_visit_blocks(hp, all, f, arg)
#define mi_theap_guarded_set_sample_rate(hp, rate, seed) mi_heap_guarded_set_sample_rate(hp, rate, seed)
#define mi_theap_guarded_set_size_bound(hp, min, max)    mi_heap_guarded_set_size_bound(hp, min, max)

#endif

/* ---- as in POSIX and other C libraries --------------------------------------------------------------------------- */

/* Frees p if it is a block of this allocator (mi_is_in_heap_region); ignores any other pointer. */
mi_decl_export void  mi_cfree(void* p) mi_attr_noexcept;

/* mi_expand, which also sets errno to ENOMEM when it returns NULL. */
mi_decl_export void* mi__expand(void* p, size_t newsize) mi_attr_noexcept;

/* Other names of mi_usable_size and mi_good_size. */
mi_decl_nodiscard mi_decl_export size_t mi_malloc_size(const void* p) mi_attr_noexcept;
mi_decl_nodiscard mi_decl_export size_t mi_malloc_usable_size(const void* p) mi_attr_noexcept;
mi_decl_nodiscard mi_decl_export size_t mi_malloc_good_size(size_t size) mi_attr_noexcept;

/* Stores an aligned block in *p and returns 0.  On failure it returns EINVAL (p is NULL, or the alignment is not a power of
   two that is a multiple of sizeof(void*)) or ENOMEM, and leaves *p alone.  Never changes errno. */
mi_decl_export int mi_posix_memalign(void** p, size_t alignment, size_t size);

/* mi_malloc_aligned with the arguments in the usual order. */
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_memalign(size_t alignment, size_t size)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(2) mi_attr_alloc_align(1);
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_aligned_alloc(size_t alignment, size_t size)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(2) mi_attr_alloc_align(1);

/* Return a block that begins at an OS page.  mi_pvalloc also rounds its size up to whole OS pages. */
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_valloc(size_t size)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(1);
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_pvalloc(size_t size)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(1);

/* mi_reallocn under its BSD name; a count * size that overflows sets errno to EOVERFLOW. */
mi_decl_nodiscard mi_decl_export void* mi_reallocarray(void* p, size_t count, size_t size)
  mi_attr_noexcept mi_attr_alloc_size2(2, 3);

/* reallocarr of NetBSD: `ptrp` is the address of a pointer to a block or of a NULL pointer, and the reallocated block
   replaces that pointer.  A count of 0 frees the block and stores NULL.  Returns 0, EINVAL (ptrp is NULL, size is 0, or the
   pointer is not a block), EOVERFLOW or ENOMEM.  A failure also sets errno and leaves the pointer alone. */
mi_decl_nodiscard mi_decl_export int mi_reallocarr(void* ptrp, size_t count, size_t size) mi_attr_noexcept;

/* mi_recalloc_aligned and mi_recalloc_aligned_at under other names. */
mi_decl_nodiscard mi_decl_export void* mi_aligned_recalloc(void* p, size_t newcount, size_t size, size_t alignment)
  mi_attr_noexcept;
mi_decl_nodiscard mi_decl_export void*
  mi_aligned_offset_recalloc(void* p, size_t newcount, size_t size, size_t alignment, size_t offset) mi_attr_noexcept;

/* mi_free with the size that was requested for the block, and its alignment.  Release builds ignore both.  Builds that check
   blocks (debug, secure) report a different size, or a block without that alignment (EINVAL), and do not free it. */
mi_decl_export void mi_free_size(void* p, size_t size) mi_attr_noexcept;
mi_decl_export void mi_free_size_aligned(void* p, size_t size, size_t alignment) mi_attr_noexcept;
mi_decl_export void mi_free_aligned(void* p, size_t alignment) mi_attr_noexcept;

/* Return a copy of a string of wide characters or of bytes.  NULL gives NULL. */
mi_decl_nodiscard mi_decl_export mi_decl_restrict wchar_t* mi_wcsdup(const wchar_t* s) mi_attr_noexcept mi_attr_malloc;
mi_decl_nodiscard mi_decl_export mi_decl_restrict unsigned char* mi_mbsdup(const unsigned char* s)
  mi_attr_noexcept mi_attr_malloc;

/* Store a copy of the value of an environment variable in *buf, and its length with the terminator in *size, which may be
   NULL.  They store NULL and 0 if there is no such variable.  They return 0, EINVAL (buf or name is NULL) or ENOMEM.  The
   wide function is for Windows; elsewhere it stores NULL and returns EINVAL. */
mi_decl_export int mi_dupenv_s(char** buf, size_t* size, const char* name) mi_attr_noexcept;
mi_decl_export int mi_wdupenv_s(wchar_t** buf, size_t* size, const wchar_t* name) mi_attr_noexcept;

/* ---- as operator new --------------------------------------------------------------------------------------------- */

/* When memory is missing these functions call the handler of std::set_new_handler and try again, as long as there is a
   handler.  After that, or at once if the alignment or the pointer is invalid (EINVAL) or count * size overflows, those without
   _nothrow throw std::bad_alloc, or abort if there is no C++ runtime; the others return NULL. */
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_new(size_t size) mi_attr_malloc mi_attr_alloc_size(1);
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_new_aligned(size_t size, size_t alignment)
  mi_attr_malloc mi_attr_alloc_size(1) mi_attr_alloc_align(2);
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_new_nothrow(size_t size)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(1);
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_new_aligned_nothrow(size_t size, size_t alignment)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(1) mi_attr_alloc_align(2);
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_new_n(size_t count, size_t size)
  mi_attr_malloc mi_attr_alloc_size2(1, 2);
mi_decl_nodiscard mi_decl_export void* mi_new_realloc(void* p, size_t newsize) mi_attr_alloc_size(2);
mi_decl_nodiscard mi_decl_export void* mi_new_reallocn(void* p, size_t newcount, size_t size) mi_attr_alloc_size2(2, 3);

/* ---- hooks ------------------------------------------------------------------------------------------------------- */

/* A process has one function of each kind.  Registering a function replaces the previous one, and NULL restores the default.
   `arg` is passed to the function.  Functions may be called on any thread, and by several threads at once.  They have to return,
   or end the thread or the process: if one is left by longjmp or by an exception, that thread never calls one of its kind again. */

/* The deferred free function, for programs that free step by step.  It is called by mi_collect (with its `force`), and from time to
   time by an allocation on a slow path.  `heartbeat` never decreases.  The function may allocate and free; its own calls do not call
   it again. */
mi_decl_extension typedef void (mi_cdecl mi_deferred_free_fun)(bool force, unsigned long long heartbeat, void* arg);
mi_decl_export void mi_register_deferred_free(mi_deferred_free_fun* deferred_free, void* arg) mi_attr_noexcept;

/* Receives everything that the allocator prints, in place of stderr.  Up to 16 KiB of earlier output are delivered at
   registration.  The text is terminated, and may be a part of a line or several lines.  Output that the function itself
   causes is not delivered to it. */
typedef void (mi_cdecl mi_output_fun)(const char* msg, void* arg);
mi_decl_export void mi_register_output(mi_output_fun* out, void* arg) mi_attr_noexcept;

/* Called with each error, after its message: EAGAIN double free, EFAULT memory was overwritten, EINVAL not a valid
   pointer, ENOMEM out of memory, EOVERFLOW size too large.  Without a function, EFAULT, EAGAIN and EINVAL abort the process in
   debug and secure builds and under the address sanitizer, and ENOMEM and EOVERFLOW abort it in builds with MI_XMALLOC.  If
   the function returns, the program continues: an invalid pointer is ignored, and of an overwritten block the intact parts
   are used.  Errors that the function itself causes are not delivered to it.  It must return or end the process: after it has
   left by longjmp or an exception, no further error of that thread is delivered. */
typedef void (mi_cdecl mi_error_fun)(int err, void* arg);
mi_decl_export void mi_register_error(mi_error_fun* fun, void* arg);

/* ---- arenas ------------------------------------------------------------------------------------------------------ */

/* An arena is address space that the program has reserved or provided, in addition to the address space that the allocator
   reserves itself.  All heaps take memory from an arena, unless it is `exclusive`: such an arena serves only heaps that were made
   for it.  An arena stays until the process ends.  Making one takes O(size), which is little unless it is committed or has large
   OS pages; asking about one takes constant time.  A function that stores an id stores -1 (level 2) or NULL (level 3) on failure;
   the pointer to the id may be NULL.

   The following two reserve an arena of at least `size` bytes, and return 0 or ENOMEM.  `commit`: make it usable at once.
   allow_large: use large OS pages if the system has some; these never return to the system. */
mi_decl_export int mi_reserve_os_memory(size_t size, bool commit, bool allow_large) mi_attr_noexcept;
mi_decl_export int mi_reserve_os_memory_ex(size_t size, bool commit, bool allow_large, bool exclusive,
                                           mi_arena_id_t* arena_id) mi_attr_noexcept
                                           mi_decl_level(mi_reserve_os_memory_ex);

/* Make an arena of memory that the program provides, and that must stay mapped until the process ends.  The result is false
   if the aligned part of it (mi_arena_min_alignment) is too small (mi_arena_min_size), or if it has addresses of more than 48
   bits, as systems give those who ask for them.
     is_committed  it can be used as it is            is_zero    it reads as zero
     is_pinned     it must never be purged            numa_node  its node, -1 if that is not known
   With a commit_fun (mi_manage_memory) the library calls that function, instead of the system, to make a part usable (commit true)
   or to give up the contents of a part (commit false).  If is_zero is not NULL, the function stores there whether a usable part
   reads as zero.  It returns whether it succeeded.  Any thread may call it, within any function of this library.  So it must not
   allocate from this allocator or wait for a thread that does, and must take no lock under which the program allocates or frees. */
typedef bool (mi_cdecl mi_commit_fun_t)(bool commit, void* start, size_t size, bool* is_zero, void* user_arg);
mi_decl_export bool mi_manage_os_memory(void* start, size_t size, bool is_committed, bool is_pinned, bool is_zero,
                                        int numa_node) mi_attr_noexcept;
mi_decl_export bool mi_manage_os_memory_ex(void* start, size_t size, bool is_committed, bool is_pinned, bool is_zero,
                                           int numa_node, bool exclusive, mi_arena_id_t* arena_id) mi_attr_noexcept
                                           mi_decl_level(mi_manage_os_memory_ex);
mi_decl_export bool mi_manage_memory(void* start, size_t size, bool is_committed, bool is_pinned, bool is_zero,
                                     int numa_node, bool exclusive, mi_commit_fun_t* commit_fun, void* commit_fun_arg,
                                     mi_arena_id_t* arena_id) mi_attr_noexcept mi_decl_level(mi_manage_memory);

/* Reserve `pages` OS pages of 1 GiB as arenas: on one NUMA node (-1: any), or spread over numa_nodes of them (0: all).  They
   stop after timeout_msecs milliseconds (0: never).  The result is 0 if at least one page was reserved, or if `pages` is 0;
   otherwise it is ENOMEM.  A warning tells of pages that are missing, and mi_arena_area the size that an arena has. */
mi_decl_export int mi_reserve_huge_os_pages_interleave(size_t pages, size_t numa_nodes, size_t timeout_msecs)
  mi_attr_noexcept;
mi_decl_export int mi_reserve_huge_os_pages_at(size_t pages, int numa_node, size_t timeout_msecs) mi_attr_noexcept;
mi_decl_export int mi_reserve_huge_os_pages_at_ex(size_t pages, int numa_node, size_t timeout_msecs, bool exclusive,
                                                  mi_arena_id_t* arena_id) mi_attr_noexcept
                                                  mi_decl_level(mi_reserve_huge_os_pages_at_ex);

/* An older function: mi_reserve_huge_os_pages_interleave over all nodes, with a warning.  max_secs is in seconds.  Stores the number
   of pages that were reserved in *pages_reserved, which may be NULL. */
mi_decl_export int mi_reserve_huge_os_pages(size_t pages, double max_secs, size_t* pages_reserved) mi_attr_noexcept;

/* Returns the start of an arena, and stores its size in *size, which may be NULL.  NULL and 0 for an arena that does not
   exist. */
mi_decl_export void* mi_arena_area(mi_arena_id_t arena_id, size_t* size) mi_decl_level(mi_arena_area);

/* Is p within this arena?  Any pointer is allowed. */
mi_decl_export bool mi_arena_contains(mi_arena_id_t arena_id, const void* p) mi_decl_level(mi_arena_contains);

/* The least alignment and size of memory for mi_manage_os_memory, in bytes. */
mi_decl_export size_t mi_arena_min_alignment(void);
mi_decl_export size_t mi_arena_min_size(void);

/* Print which parts of each arena are in use.  Two names of one function.  O(memory of the process). */
mi_decl_export void mi_arenas_print(void) mi_attr_noexcept;
mi_decl_export void mi_debug_show_arenas(void) mi_attr_noexcept;

/* ---- subprocesses ------------------------------------------------------------------------------------------------ */

/* A subprocess is a set of threads that share no memory with threads of other subprocesses: each subprocess has its own main heap,
   and its own pages that ended threads have left.  All threads begin in the main subprocess, whose id is NULL at level 2.  Any thread may
   free blocks of any subprocess. */
typedef bool (mi_cdecl mi_heap_visit_fun)(mi_heap_t* heap, void* arg);

/* Return the main subprocess, that of the calling thread, and a new one (whose id holds NULL if there is no memory). */
mi_decl_export mi_subproc_id_t mi_subproc_main(void);
mi_decl_export mi_subproc_id_t mi_subproc_current(void);
mi_decl_export mi_subproc_id_t mi_subproc_new(void);

/* Moves the calling thread into a subprocess.  A thread can be moved once, out of the main subprocess; blocks that it has allocated
   before stay there.  A thread that is in that subprocess already stays in it.  A failure changes nothing: without memory it is
   reported (ENOMEM); a warning is printed if the thread is in another subprocess than the main one, if it is in destructors at its
   very end, or if the subprocess has ended.  (A new subprocess may get the id of one that has ended.)  mi_subproc_current tells
   where the thread is. */
mi_decl_export void mi_subproc_add_current_thread(mi_subproc_id_t subproc);

/* End a subprocess with all its heaps.  While it has threads, and for mi_subproc_delete also while it has memory in use, the
   call has no effect and prints a warning.  mi_subproc_destroy frees everything in it.  The main subprocess and NULL are
   ignored.  O(heaps of the subprocess and their pages, and in builds that check blocks also the blocks that are freed). */
mi_decl_export void mi_subproc_delete(mi_subproc_id_t subproc);
mi_decl_export void mi_subproc_destroy(mi_subproc_id_t subproc);

/* Calls `visitor` with each heap of the subprocess, until it returns false.  Returns false if the visitor did, or is NULL.
   The visitor must not make or end heaps.  O(heaps). */
mi_decl_export bool mi_subproc_visit_heaps(mi_subproc_id_t subproc, mi_heap_visit_fun* visitor, void* arg);

/* ---- process and threads ----------------------------------------------------------------------------------------- */

/* The library calls all of these itself, at load or the first allocation and at exit.  Calling them again has no effect.
   Allocation still works after mi_process_done and mi_thread_done. */
mi_decl_export void mi_process_init(void) mi_attr_noexcept;
mi_decl_export void mi_cdecl mi_process_done(void) mi_attr_noexcept;

/* For the calling thread.  mi_thread_done leaves its live blocks valid.  O(pages that the thread has). */
mi_decl_export void mi_thread_init(void) mi_attr_noexcept;
mi_decl_export void mi_thread_done(void) mi_attr_noexcept;

/* A hint that the calling thread serves a pool: it may sleep for long, and other threads may free its blocks.  It has no
   effect here: all threads are treated alike. */
mi_decl_export void mi_thread_set_in_threadpool(void) mi_attr_noexcept;

/* Times are in milliseconds; resident and committed memory are in bytes, page faults are those that needed input.  Any
   pointer may be NULL. */
mi_decl_export void mi_process_info(size_t* elapsed_msecs, size_t* user_msecs, size_t* system_msecs,
                                    size_t* current_rss, size_t* peak_rss,
                                    size_t* current_commit, size_t* peak_commit, size_t* page_faults) mi_attr_noexcept;

/* The same as text.  NULL `out`: the registered output. */
mi_decl_export void mi_process_info_print(void) mi_attr_noexcept;
mi_decl_export void mi_process_info_print_out(mi_output_fun* out, void* arg) mi_attr_noexcept;

/* ---- statistics -------------------------------------------------------------------------------------------------- */

/* Statistics are those of the whole process, unless the name of a function says otherwise.  mimalloc-stats.h has them as numbers and
   as JSON.  They are counted on request, which takes O(pages of the process + threads), also for a single heap, and never O(blocks).

   A table has rows for blocks: one for each block size in use, then all of these ("binned"), blocks with a page of their own
   ("huge": over 512 KiB, guarded, or of unusual alignment), and both, each followed by "not all freed" or "ok".  The other rows
   are memory, pages, heaps and threads.  A cell is empty if the peak or the total is not known. */

/* Prints a table.  The argument has no meaning, pass NULL. */
mi_decl_export void mi_stats_print(void* out) mi_attr_noexcept;

/* Prints a table line by line.  NULL `out`: the registered output.  A thread has no numbers of its own: the second function
   prints those of the process, too. */
mi_decl_export void mi_stats_print_out(mi_output_fun* out, void* arg) mi_attr_noexcept;
mi_decl_export void mi_thread_stats_print_out(mi_output_fun* out, void* arg) mi_attr_noexcept;

/* The same for a heap, for a subprocess with all its heaps, and for a subprocess and then each of its heaps. */
mi_decl_export void mi_heap_stats_print_out(mi_heap_t* heap, mi_output_fun* out, void* arg) mi_attr_noexcept;
mi_decl_export void mi_subproc_stats_print_out(mi_subproc_id_t subproc_id, mi_output_fun* out, void* arg)
  mi_attr_noexcept;
mi_decl_export void mi_subproc_heap_stats_print_out(mi_subproc_id_t subproc_id, mi_output_fun* out, void* arg)
  mi_attr_noexcept;

/* Resets the statistics: totals and peaks become the current values, and counters of events become 0. */
mi_decl_export void mi_stats_reset(void) mi_attr_noexcept;

/* These functions have no effect: the numbers of the process always include those of its threads and heaps. */
mi_decl_export void mi_stats_merge(void) mi_attr_noexcept;
mi_decl_export void mi_heap_stats_merge_to_subproc(mi_heap_t* heap);

/* ---- which heap owns a pointer ----------------------------------------------------------------------------------- */

/* Is p within memory of this allocator, that is, in a page with blocks?  Any pointer is allowed.  In a block that has a page of its
   own (over 512 KiB, guarded, aligned at an offset or to more than 64 KiB) the answer is certain only up to the first multiple of
   64 KiB behind its start.  mi_check_owned is the oldest name. */
mi_decl_nodiscard mi_decl_export bool mi_is_in_heap_region(const void* p) mi_attr_noexcept;
mi_decl_nodiscard mi_decl_export bool mi_any_heap_contains(const void* p);
mi_decl_export bool mi_check_owned(const void* p);

/* Which heap does the page of p belong to, and is it this heap?  NULL and false if p is not within memory of this allocator.
   The functions with _block and _owned are older; the latter also requires p to be a multiple of sizeof(void*). */
mi_decl_nodiscard mi_decl_export mi_heap_t* mi_heap_of(const void* p);
mi_decl_nodiscard mi_decl_export bool mi_heap_contains(const mi_heap_t* heap, const void* p);
mi_decl_export bool mi_heap_contains_block(mi_heap_t* heap, const void* p);
mi_decl_export bool mi_heap_check_owned(mi_heap_t* heap, const void* p);

/* Windows: does the C library of the process allocate here?  Elsewhere false. */
mi_decl_nodiscard mi_decl_export bool mi_is_redirected(void) mi_attr_noexcept;

/* ---- visiting blocks --------------------------------------------------------------------------------------------- */

/* An area: a range of memory with blocks of one size.  In a page with blocks of several sizes each block in use is an area of its
   own, and free memory is in no area. */
typedef struct mi_heap_area_s {
  void*  blocks;          /* where the blocks begin */
  size_t reserved;        /* bytes that they may occupy */
  size_t committed;       /* bytes that are usable at present */
  size_t used;            /* blocks in use */
  size_t block_size;      /* bytes of a block that a program can use */
  size_t full_block_size; /* bytes from a block to the next, with padding */
#if MI_API_LEVEL < 3
  int heap_tag;           /* of mi_heap_new_ex */
#else
  void* reserved1;        /* has no meaning */
#endif
} mi_heap_area_t;

/* Called for an area with `block` NULL, and then for each of its blocks in use; block_size is that of the area.  Returning
   false ends the visit. */
typedef bool (mi_cdecl mi_block_visit_fun)(const mi_heap_t* heap, const mi_heap_area_t* area, void* block,
                                           size_t block_size, void* arg);

/* Visits the areas of a heap and, with visit_blocks, its blocks.  Returns false if the visitor ended the visit or is NULL.
   During the visit no other thread may allocate from the heap or free its blocks, nor may the visitor.  O(pages of the
   process + blocks of the heap, free ones included); other visits take as long. */
#if MI_API_LEVEL < 3
mi_decl_export bool
  mi_heap_visit_blocks(const mi_heap_t* heap, bool visit_blocks, mi_block_visit_fun* visitor, void* arg);
#else
mi_decl_export bool mi_heap_visit_blocks(mi_heap_t* heap, bool visit_blocks, mi_block_visit_fun* visitor, void* arg);
#endif

/* Visits only the calling thread's part of a heap. */
#if MI_API_LEVEL >= 3 || defined(MI_LIBRARY_BUILD)
mi_decl_export bool
  mi_theap_visit_blocks(const mi_theap_t* theap, bool visit_blocks, mi_block_visit_fun* visitor, void* arg);
#endif

/* Visit only areas that belong to no thread: those of a heap, or of all heaps of a subprocess that have this tag (-1: any).  The
   second function needs mi_option_visit_abandoned, which must be set before the first thread ends; otherwise it reports an error
   (EFAULT) and returns false. */
mi_decl_export bool
  mi_heap_visit_abandoned_blocks(mi_heap_t* heap, bool visit_blocks, mi_block_visit_fun* visitor, void* arg);
mi_decl_export bool mi_abandoned_visit_blocks(mi_subproc_id_t subproc_id, int heap_tag, bool visit_blocks,
                                              mi_block_visit_fun* visitor, void* arg);

/* For programs that defragment their data: should the blocks of the page of p move to other pages?  True if the page
   belongs to this heap (NULL: to any), at most perc_threshold percent of it are in use, and allocation does not take from it
   at present.  False for NULL p. */
mi_decl_export bool mi_unsafe_heap_page_is_under_utilized(mi_heap_t* heap, void* p, size_t perc_threshold)
  mi_attr_noexcept;

/* ---- finding errors ---------------------------------------------------------------------------------------------- */

/* Guarded mode: one block in sample_rate (0: none, 1: every block; seed 0: random), of a size between min and max bytes, ends
   where memory is inaccessible.  These settings replace the options guarded_... for blocks that the calling thread allocates
   from this heap; NULL is the main heap.  They have no effect if there is no memory for the thread's part of the heap, nor on a
   part (theap) of another thread. */
mi_decl_export void mi_heap_guarded_set_sample_rate(mi_heap_t* heap, size_t sample_rate, size_t seed);
mi_decl_export void mi_heap_guarded_set_size_bound(mi_heap_t* heap, size_t min, size_t max);
#if MI_API_LEVEL >= 3 || defined(MI_LIBRARY_BUILD)
mi_decl_export void mi_theap_guarded_set_sample_rate(mi_theap_t* theap, size_t sample_rate, size_t seed);
mi_decl_export void mi_theap_guarded_set_size_bound(mi_theap_t* theap, size_t min, size_t max);
#endif

/* The next two functions are extensions of this library.

   Heap consistency check: checks all pages and free blocks of a heap (NULL: of all heaps), and the bytes next to guarded
   blocks.  Builds that check blocks (secure, debug) also find blocks in use that were written to beyond their end.  Returns
   true if there is no error; otherwise it reports each error (EFAULT).  During the check no other thread may use the heap.  In
   the child of a fork that had more threads, blocks in use are not checked.  O(pages of the process + blocks of the heap). */
mi_decl_export bool mi_heap_check(mi_heap_t* heap) mi_attr_noexcept;

/* Prints the blocks in use: for each block size the number of blocks and their bytes, and the large blocks.  At the end of a
   program these are the blocks that it did not free.  (In the child of a fork, what was free in the pages of threads that the
   child does not have counts as in use; for visits and statistics, too.)  NULL `out`: the registered output.  O(pages and
   blocks of the process). */
mi_decl_export void mi_leaks_print_out(mi_output_fun* out, void* arg) mi_attr_noexcept;

/* ---- options ----------------------------------------------------------------------------------------------------- */

/* An option has the first of these values that is set: by mi_option_set; by the environment variable MIMALLOC_ and its name,
   as in MIMALLOC_PURGE_DELAY=100 (upper or lower case); by mi_option_set_default; its default below.  The
   environment is read once, at load or earlier if an option is asked for; programs that run with raised privileges
   (setuid, setgid, capabilities of the file) ignore it.

   Numbers are decimal; on, yes, true and an empty value mean 1, and off, no and false mean 0.  Options in KiB take a
   number of bytes, or a number followed by K, M, G or T (and B or iB): MIMALLOC_ARENA_RESERVE=2G.  A value that is not
   a number, is longer than 64 characters or is out of range has no effect, and a warning names it.  A warning also names a
   variable that begins with MIMALLOC_ and is no option.  Options that only the environment sets follow the table.

   Options with "no effect here" exist for programs that set them, and verbose output names those that are set.  They tune
   parts that this allocator does not have, or are for other systems (os_tag, retry_on_oom).  Memory that a thread does not
   use returns after some time (generic_collect), and at exit the system reclaims all memory (destroy_on_exit).

   purge_delay times arena_purge_mult counts while the program works and the library has a thread: what was free for so long goes
   back.  When all threads are idle, all that is free goes back at once; and without the library's thread each free gives back what
   exceeds an allowance; however long the delay is.  -1 prevents both.

   The columns: the number at level 2 and at level 3, the meaning, and the default.  If there are two defaults, the second is
   that of level 3.  show_errors is 1 in debug builds, arena_reserve 131072 on 32-bit systems. */
typedef enum mi_option_e {
  mi_option_show_errors,                     /*  0  0  print errors and warnings                               0 or 1 */
  mi_option_show_stats,                      /*  1  1  print statistics at exit                                     0 */
  mi_option_verbose,                         /*  2  2  print events: 1 at start and exit, 2 always                  0 */
#if MI_API_LEVEL < 3
  mi_option_eager_commit,                    /*  3  -  no effect here                                               1 */
#else
  mi_option_deprecated_eager_commit,         /*  -  3  no effect here                                               1 */
#endif
  mi_option_arena_eager_commit,              /*  4  4  commit arenas: 0 no, 1 yes, 2 if the OS overcommits          2 */
  mi_option_purge_decommits,                 /*  5  5  purge: 1 give back at once, 0 when the OS needs it           1 */
  mi_option_allow_large_os_pages,            /*  6  6  use large OS pages if the system has some                    0 */
  mi_option_reserve_huge_os_pages,           /*  7  7  reserve this many OS pages of 1 GiB at start                 0 */
  mi_option_reserve_huge_os_pages_at,        /*  8  8  on this NUMA node, -1 on all                                -1 */
  mi_option_reserve_os_memory,               /*  9  9  reserve memory at start, KiB                                 0 */
  mi_option_deprecated_segment_cache,        /* 10 10  no effect here                                               0 */
  mi_option_deprecated_page_reset,           /* 11 11  no effect here                                               0 */
#if MI_API_LEVEL < 3
  mi_option_abandoned_page_purge,            /* 12  -  no effect here                                               0 */
#else
  mi_option_deprecated_abandoned_page_purge, /*  - 12  no effect here                                               0 */
#endif
  mi_option_deprecated_segment_reset,        /* 13 13  no effect here                                               0 */
#if MI_API_LEVEL < 3
  mi_option_eager_commit_delay,              /* 14  -  no effect here                                               1 */
#else
  mi_option_deprecated_eager_commit_delay,   /*  - 14  no effect here                                               1 */
#endif
  mi_option_purge_delay,                     /* 15 15  ms until a purge, 0 once 1 MiB is free, -1 never      10, 1000 */
  mi_option_use_numa_nodes,                  /* 16 16  assume this many NUMA nodes, 0 those that exist              0 */
  mi_option_disallow_os_alloc,               /* 17 17  use only memory that was reserved or given before            0 */
  mi_option_os_tag,                          /* 18 18  no effect here                                             100 */
  mi_option_max_errors,                      /* 19 19  print this many errors, < 0 all                             32 */
  mi_option_max_warnings,                    /* 20 20  print this many warnings, < 0 all                           32 */
#if MI_API_LEVEL < 3
  mi_option_max_segment_reclaim,             /* 21  -  no effect here                                              10 */
#else
  mi_option_deprecated_max_segment_reclaim,  /*  - 21  no effect here                                              10 */
#endif
  mi_option_destroy_on_exit,                 /* 22 22  no effect here                                               0 */
  mi_option_arena_reserve,                   /* 23 23  size of arenas, KiB                                    1048576 */
  mi_option_arena_purge_mult,                /* 24 24  purge_delay times this is the delay for arenas           10, 1 */
#if MI_API_LEVEL < 3
  mi_option_purge_extend_delay,              /* 25  -  no effect here                                               1 */
#else
  mi_option_deprecated_purge_extend_delay,   /*  - 25  no effect here                                               1 */
#endif
#if MI_API_LEVEL < 3
  mi_option_abandoned_reclaim_on_free,       /* 26  -  no effect here                                               0 */
#endif
  mi_option_disallow_arena_alloc,            /* 27 26  use arenas only where a heap asks for one                    0 */
  mi_option_retry_on_oom,                    /* 28 27  no effect here                                             400 */
  mi_option_visit_abandoned,                 /* 29 28  allow visits of blocks of threads that have ended            0 */
  mi_option_guarded_min,                     /* 30 29  smallest size, bytes, of guarded blocks                      0 */
  mi_option_guarded_max,                     /* 31 30  largest such size, bytes                            1073741824 */
  mi_option_guarded_precise,                 /* 32 31  guarded blocks end at the guard page, if unaligned           0 */
  mi_option_guarded_sample_rate,             /* 33 32  guard one block in this many, 0 none                         0 */
  mi_option_guarded_sample_seed,             /* 34 33  seed of the random choice, 0 a random one                    0 */
#if MI_API_LEVEL < 3
  mi_option_target_segments_per_thread,      /* 35  -  no effect here                                               0 */
#endif
  mi_option_generic_collect,                 /* 36 34  no effect here                                           10000 */
#if MI_API_LEVEL >= 3
  mi_option_page_reclaim_on_free,            /*  - 35  no effect here                                               0 */
  mi_option_page_full_retain,                /*  - 36  no effect here                                               2 */
  mi_option_page_max_candidates,             /*  - 37  no effect here                                               4 */
  mi_option_max_vabits,                      /*  - 38  no effect here                                               0 */
  mi_option_pagemap_commit,                  /*  - 39  no effect here                                               0 */
  mi_option_page_commit_on_demand,           /*  - 40  no effect here                                               0 */
  mi_option_page_max_reclaim,                /*  - 41  no effect here                                              -1 */
  mi_option_page_cross_thread_max_reclaim,   /*  - 42  no effect here                                              32 */
#endif
  mi_option_allow_thp,                       /* 37 43  huge pages: 0 no, 1 dense, 2 all from 32 MiB on              1 */
#if MI_API_LEVEL >= 3
  mi_option_minimal_purge_size,              /*  - 44  no effect here                                               0 */
  mi_option_arena_max_object_size,           /*  - 45  no effect here                                         2097152 */
  mi_option_arena_is_numa_local,             /*  - 46  no effect here                                               0 */
#endif
  _mi_option_last,

  /* older names */
  mi_option_large_os_pages       = mi_option_allow_large_os_pages,
  mi_option_eager_region_commit  = mi_option_arena_eager_commit,
  mi_option_reset_decommits      = mi_option_purge_decommits,
  mi_option_reset_delay          = mi_option_purge_delay,
#if MI_API_LEVEL < 3
  mi_option_abandoned_page_reset = mi_option_abandoned_page_purge,
#endif
  mi_option_limit_os_alloc       = mi_option_disallow_os_alloc,

  /* Of this library alone, with a number far from those of the interface: the statistics in a file that other processes map
     ("mimalloc top"), which is written ten times a second or more.  0 none; 1 of this process, with the system calls for it
     made at once; 2 also of the children of forks that follow, which make theirs later, and the file is removed at exit.  The
     directory is $MIMALLOC_PUBLISH_DIR (an absolute path), or else $XDG_RUNTIME_DIR, or else /dev/shm; the file is
     mimalloc-<pid>-<number of the pid namespace>.stats, readable by this user.  Linux only.  Default 0 */
  mi_option_publish              = 1000
} mi_option_t;

/* These have no number, and only the environment sets them: MIMALLOC_LIMIT=512M.  limit, limit_soft and retain take a size or a
   share such as 80%; off, no, false and 0 mean none; an empty value and other words are refused.  The default of
   background_thread is 0 in builds for Valgrind and sanitizers, that of memory_tagging 0 without MI_MEMORY_TAGGING.

     background_thread  purge on a thread of the library, in programs that start threads                             1
     show_leaks         print at exit what was not freed, by size                                                    0
     guarded_before     percentage of guarded blocks that begin at the guard page; -1: 25, 0 with rate 1 or precise -1
     debug_stacks       in debug builds, reports say who allocated and who freed the block                           0
     keep_deepbind      leave RTLD_DEEPBIND in calls of dlopen                                                       0
     memory_tagging     tag memory where the processor can, in builds with MI_MEMORY_TAGGING                         1
     limit              memory that the process may have (mimalloc-limit.h)                                    0, none
     limit_soft         memory beyond which free memory is given back and the hook is called                   0, none
     retain             free memory that is kept at most                                                       0, none
     profile_rate       mean distance of the samples of the heap profile, bytes, at most 1 GiB                  524288
     profile_signal     number of the signal that starts and writes the heap profile                           0, none
     profile_leaks      print this many stacks with the most bytes in use at exit                                    0
     profile            text: start of the names of heap profiles (mimalloc-profile.h)                            none
     publish_dir        text: the directory of published statistics (mi_option_publish)                           none
     redirect           text, on Windows: iat or inline, how malloc is replaced                                    iat
     disable_redirect   on Windows: 1 replaces nothing                                                               0 */

/* Reading.  mi_option_get gives options in KiB as they are, mi_option_get_size in bytes, and 0 for a negative value.
   An option that does not exist is 0, with a warning. */
mi_decl_nodiscard mi_decl_export bool   mi_option_is_enabled(mi_option_t option) mi_decl_level(mi_option_is_enabled);
mi_decl_nodiscard mi_decl_export long   mi_option_get(mi_option_t option) mi_decl_level(mi_option_get);
mi_decl_nodiscard mi_decl_export long   mi_option_get_clamp(mi_option_t option, long min, long max)
  mi_decl_level(mi_option_get_clamp);
mi_decl_nodiscard mi_decl_export size_t mi_option_get_size(mi_option_t option) mi_decl_level(mi_option_get_size);

/* Setting.  The functions with _default do nothing if the environment or an earlier call has set the option.  An option
   that does not exist, and a value that is out of range, is ignored with a warning.  guarded_min beyond guarded_max moves that, and
   the other way round; a default moves only a default, and goes no further than a bound that is set. */
mi_decl_export void mi_option_set(mi_option_t option, long value) mi_decl_level(mi_option_set);
mi_decl_export void mi_option_set_default(mi_option_t option, long value) mi_decl_level(mi_option_set_default);
mi_decl_export void mi_option_enable(mi_option_t option) mi_decl_level(mi_option_enable);
mi_decl_export void mi_option_disable(mi_option_t option) mi_decl_level(mi_option_disable);
mi_decl_export void mi_option_set_enabled(mi_option_t option, bool enable) mi_decl_level(mi_option_set_enabled);
mi_decl_export void mi_option_set_enabled_default(mi_option_t option, bool enable)
  mi_decl_level(mi_option_set_enabled_default);

/* Print the version, all options (those with texts if the environment has them) and how the library was built.  NULL `out`: the
   registered output. */
mi_decl_export void mi_options_print(void) mi_attr_noexcept;
mi_decl_export void mi_options_print_out(mi_output_fun* out, void* arg) mi_attr_noexcept;

#if defined(__cplusplus)
}
#endif

/* ---- typed allocation -------------------------------------------------------------------------------------------- */

/* For a type `tp` or an array of n of them; the result is a tp*.  If there is also a heap or a block, the type follows it at
   level 2, and comes first at level 3. */
#define mi_malloc_tp(tp)     ((tp*)mi_malloc(sizeof(tp)))
#define mi_zalloc_tp(tp)     ((tp*)mi_zalloc(sizeof(tp)))
#define mi_calloc_tp(tp, n)  ((tp*)mi_calloc(n, sizeof(tp)))
#define mi_mallocn_tp(tp, n) ((tp*)mi_mallocn(n, sizeof(tp)))

#if MI_API_LEVEL < 3
#define mi_reallocn_tp(p, tp, n)          ((tp*)mi_reallocn(p, n, sizeof(tp)))
#define mi_recalloc_tp(p, tp, n)          ((tp*)mi_recalloc(p, n, sizeof(tp)))
#define mi_heap_malloc_tp(hp, tp)         ((tp*)mi_heap_malloc(hp, sizeof(tp)))
#define mi_heap_zalloc_tp(hp, tp)         ((tp*)mi_heap_zalloc(hp, sizeof(tp)))
#define mi_heap_calloc_tp(hp, tp, n)      ((tp*)mi_heap_calloc(hp, n, sizeof(tp)))
#define mi_heap_mallocn_tp(hp, tp, n)     ((tp*)mi_heap_mallocn(hp, n, sizeof(tp)))
#define mi_heap_reallocn_tp(hp, p, tp, n) ((tp*)mi_heap_reallocn(hp, p, n, sizeof(tp)))
#define mi_heap_recalloc_tp(hp, p, tp, n) ((tp*)mi_heap_recalloc(hp, p, n, sizeof(tp)))
#else
#define mi_reallocn_tp(tp, p, n)          ((tp*)mi_reallocn(p, n, sizeof(tp)))
#define mi_recalloc_tp(tp, p, n)          ((tp*)mi_recalloc(p, n, sizeof(tp)))
#define mi_heap_malloc_tp(tp, hp)         ((tp*)mi_heap_malloc(hp, sizeof(tp)))
#define mi_heap_zalloc_tp(tp, hp)         ((tp*)mi_heap_zalloc(hp, sizeof(tp)))
#define mi_heap_calloc_tp(tp, hp, n)      ((tp*)mi_heap_calloc(hp, n, sizeof(tp)))
#define mi_heap_mallocn_tp(tp, hp, n)     ((tp*)mi_heap_mallocn(hp, n, sizeof(tp)))
#define mi_heap_reallocn_tp(tp, hp, p, n) ((tp*)mi_heap_reallocn(hp, p, n, sizeof(tp)))
#define mi_heap_recalloc_tp(tp, hp, p, n) ((tp*)mi_heap_recalloc(hp, p, n, sizeof(tp)))
#endif

/* ---- C++ --------------------------------------------------------------------------------------------------------- */

#if defined(__cplusplus) && !defined(MI_LIBRARY_BUILD)

#include <cstddef>
#include <new>
#if (__cplusplus >= 201103L) || (defined(_MSC_VER) && _MSC_VER >= 1900)
  #define MI_HAS_HEAP_STL_ALLOCATOR 1
  #include <cerrno>
  #include <cstdint>
  #include <cstdlib>
  #include <memory>
  #include <type_traits>
  #include <utility>
#endif

#if defined(MI_HAS_HEAP_STL_ALLOCATOR)
  #define _mi_stl_alignof(T) alignof(T)
#elif defined(_MSC_VER)
  #define _mi_stl_alignof(T) __alignof(T)
#else
  #define _mi_stl_alignof(T) __alignof__(T)
#endif

/* Allocators for the containers of the standard library:

     mi_stl_allocator               from the default heap of the thread that allocates; all are equal
     mi_heap_stl_allocator          from a heap.  Constructed without a heap, it makes one and shares it with its copies; the
                                    last of them deletes the heap, and its blocks stay valid
     mi_heap_destroy_stl_allocator  the same, but the last of them destroys the heap with all its blocks, and deallocation
                                    does nothing: for containers that are dropped as a whole

   An allocator that is constructed with a heap (nullptr: the main heap) never ends that heap.  Allocators for heaps are equal
   if their heaps are.  Elements have the alignment of their type, also one that mi_malloc does not give.  Failures are those
   of mi_new.  mimalloc-pmr.h has a std::pmr::memory_resource.

   The common base of all three; not for direct use. */
template <class T>
struct _mi_stl_allocator_common {
  typedef T              value_type;
  typedef std::size_t    size_type;
  typedef std::ptrdiff_t difference_type;
  typedef T&             reference;
  typedef T const&       const_reference;
  typedef T*             pointer;
  typedef T const*       const_pointer;

#if defined(MI_HAS_HEAP_STL_ALLOCATOR)
  using propagate_on_container_copy_assignment = std::true_type;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;
  template <class U, class... Args>
  void construct(U* p, Args&&... args) {
    ::new (const_cast<void*>(static_cast<const volatile void*>(p))) U(std::forward<Args>(args)...);
  }
  template <class U>
  void destroy(U* p) mi_attr_noexcept {
    p->~U();
  }
#else
  void construct(pointer p, value_type const& value) { ::new (static_cast<void*>(p)) value_type(value); }
  void destroy(pointer p) { p->~value_type(); }
#endif

  size_type     max_size() const mi_attr_noexcept { return (~static_cast<size_type>(0) >> 1) / sizeof(value_type); }
  pointer       address(reference x) const { return &x; }
  const_pointer address(const_reference x) const { return &x; }

 protected:
  /* Is it for mi_new_n?  It aligns to 8 bytes, and says so if there are too many. */
  bool is_plain(size_type count) const mi_attr_noexcept { return _mi_stl_alignof(T) <= 8 || count > max_size(); }
};

template <class T>
struct mi_stl_allocator : public _mi_stl_allocator_common<T> {
  using typename _mi_stl_allocator_common<T>::size_type;
  using typename _mi_stl_allocator_common<T>::value_type;
  using typename _mi_stl_allocator_common<T>::pointer;
  template <class U>
  struct rebind {
    typedef mi_stl_allocator<U> other;
  };
#if defined(MI_HAS_HEAP_STL_ALLOCATOR)
  using is_always_equal = std::true_type;
  mi_stl_allocator() mi_attr_noexcept = default;
  mi_stl_allocator(const mi_stl_allocator&) mi_attr_noexcept = default;
  mi_stl_allocator& operator=(const mi_stl_allocator&) mi_attr_noexcept = default;
#else
  mi_stl_allocator() {}
#endif
  template <class U>
  mi_stl_allocator(const mi_stl_allocator<U>&) mi_attr_noexcept {}
  mi_stl_allocator select_on_container_copy_construction() const { return *this; }

  mi_decl_nodiscard T* allocate(size_type count, const void*) { return allocate(count); }
  mi_decl_nodiscard T* allocate(size_type count) {
    if (this->is_plain(count)) return static_cast<T*>(mi_new_n(count, sizeof(value_type)));
    return static_cast<T*>(mi_new_aligned(count * sizeof(value_type), _mi_stl_alignof(T)));
  }
  void deallocate(T* p, size_type = 0) { mi_free(p); }
};

template <class T1, class T2>
bool operator==(const mi_stl_allocator<T1>&, const mi_stl_allocator<T2>&) mi_attr_noexcept {
  return true;
}
template <class T1, class T2>
bool operator!=(const mi_stl_allocator<T1>&, const mi_stl_allocator<T2>&) mi_attr_noexcept {
  return false;
}

#if defined(MI_HAS_HEAP_STL_ALLOCATOR)

/* mi_new_aligned from a heap; not for direct use. */
inline void* _mi_heap_new_aligned(mi_heap_t* heap, std::size_t size, std::size_t alignment) {
  bool is_valid = (alignment != 0 && (alignment & (alignment - 1)) == 0);
  int  before = errno;
  for (;;) {
    void* p = mi_heap_malloc_aligned(heap, size, alignment);
    if (p != nullptr) {
      errno = before;
      return p;
    }
    std::new_handler handler = (is_valid ? std::get_new_handler() : nullptr);
    if (handler != nullptr) handler();
#if defined(__cpp_exceptions) || defined(__EXCEPTIONS) || defined(_CPPUNWIND)
    else throw std::bad_alloc();
#else
    else std::abort();
#endif
  }
}

template <class T, bool _mi_destroy>
struct _mi_heap_stl_allocator_common : public _mi_stl_allocator_common<T> {
  using typename _mi_stl_allocator_common<T>::size_type;
  using typename _mi_stl_allocator_common<T>::value_type;
  using typename _mi_stl_allocator_common<T>::pointer;
  using is_always_equal = std::false_type;

  mi_decl_nodiscard T* allocate(size_type count, const void*) { return allocate(count); }
  mi_decl_nodiscard T* allocate(size_type count) {
    mi_heap_t* hp = this->heap.get();
    if (this->is_plain(count)) return static_cast<T*>(mi_heap_alloc_new_n(hp, count, sizeof(value_type)));
    return static_cast<T*>(_mi_heap_new_aligned(hp, count * sizeof(value_type), alignof(T)));
  }
  void collect(bool force) { mi_heap_collect(this->heap.get(), force); }
  template <class U>
  bool is_equal(const _mi_heap_stl_allocator_common<U, _mi_destroy>& x) const {
    return this->heap.get() == x.heap.get();
  }

 protected:
  std::shared_ptr<mi_heap_t> heap;
  template <class U, bool D>
  friend struct _mi_heap_stl_allocator_common;

  _mi_heap_stl_allocator_common() : heap(heap_new(), &heap_end) {}
  _mi_heap_stl_allocator_common(mi_heap_t* hp) : heap(hp != nullptr ? hp : mi_heap_main(), &heap_keep) {}
  _mi_heap_stl_allocator_common(const _mi_heap_stl_allocator_common&) mi_attr_noexcept = default;
  _mi_heap_stl_allocator_common& operator=(const _mi_heap_stl_allocator_common&) mi_attr_noexcept = default;
  template <class U>
  _mi_heap_stl_allocator_common(const _mi_heap_stl_allocator_common<U, _mi_destroy>& x) mi_attr_noexcept
    : heap(x.heap) {}

 private:
  static mi_heap_t* heap_new() {
    mi_heap_t* hp = mi_heap_new();
#if defined(__cpp_exceptions) || defined(__EXCEPTIONS) || defined(_CPPUNWIND)
    if (hp == nullptr) throw std::bad_alloc();
#endif
    return hp; /* without exceptions, nullptr stands for the main heap */
  }
  static void heap_end(mi_heap_t* hp) {
    if (_mi_destroy) mi_heap_destroy(hp);
    else mi_heap_delete(hp);
  }
  static void heap_keep(mi_heap_t*) {}
};

template <class T>
struct mi_heap_stl_allocator : public _mi_heap_stl_allocator_common<T, false> {
  using typename _mi_heap_stl_allocator_common<T, false>::size_type;
  template <class U>
  struct rebind {
    typedef mi_heap_stl_allocator<U> other;
  };
  mi_heap_stl_allocator() = default;
  mi_heap_stl_allocator(mi_heap_t* hp) : _mi_heap_stl_allocator_common<T, false>(hp) {}
  template <class U>
  mi_heap_stl_allocator(const mi_heap_stl_allocator<U>& x) mi_attr_noexcept
    : _mi_heap_stl_allocator_common<T, false>(x) {}
  mi_heap_stl_allocator select_on_container_copy_construction() const { return *this; }
  void                  deallocate(T* p, size_type = 0) { mi_free(p); }
};

template <class T>
struct mi_heap_destroy_stl_allocator : public _mi_heap_stl_allocator_common<T, true> {
  using typename _mi_heap_stl_allocator_common<T, true>::size_type;
  template <class U>
  struct rebind {
    typedef mi_heap_destroy_stl_allocator<U> other;
  };
  mi_heap_destroy_stl_allocator() = default;
  mi_heap_destroy_stl_allocator(mi_heap_t* hp) : _mi_heap_stl_allocator_common<T, true>(hp) {}
  template <class U>
  mi_heap_destroy_stl_allocator(const mi_heap_destroy_stl_allocator<U>& x) mi_attr_noexcept
    : _mi_heap_stl_allocator_common<T, true>(x) {}
  mi_heap_destroy_stl_allocator select_on_container_copy_construction() const { return *this; }
  void                          deallocate(T*, size_type = 0) {}
};

template <class T1, class T2>
bool operator==(const mi_heap_stl_allocator<T1>& x, const mi_heap_stl_allocator<T2>& y) mi_attr_noexcept {
  return x.is_equal(y);
}
template <class T1, class T2>
bool operator!=(const mi_heap_stl_allocator<T1>& x, const mi_heap_stl_allocator<T2>& y) mi_attr_noexcept {
  return !x.is_equal(y);
}
template <class T1, class T2>
bool operator==(const mi_heap_destroy_stl_allocator<T1>& x,
                const mi_heap_destroy_stl_allocator<T2>& y) mi_attr_noexcept {
  return x.is_equal(y);
}
template <class T1, class T2>
bool operator!=(const mi_heap_destroy_stl_allocator<T1>& x,
                const mi_heap_destroy_stl_allocator<T2>& y) mi_attr_noexcept {
  return !x.is_equal(y);
}

#endif
#endif

#endif
