/* A general purpose memory allocator: the public interface, level 2.4, and its manual.

   Conventions, which hold wherever a function does not say otherwise:

   - Sizes, offsets and alignments are in bytes.
   - Any thread may call any function at any time, and any thread may free a block whoever allocated it.
   - A size of 0 gives a block of its own like any other size: not NULL, to be freed once.
   - Failure gives NULL, sets errno to ENOMEM, and is reported to the handler of mi_register_error (ENOMEM, or EOVERFLOW
     for a size that no system could serve: over PTRDIFF_MAX).  A count * size that overflows fails in the same way, but
     release builds do not report it.  A block given to a failed reallocation stays as it was.
   - Success leaves errno alone.
   - Blocks of up to 8 bytes are aligned to 8 bytes, larger ones to at least 16.
   - The contents of a new block are undefined unless the name has a z (zalloc, rezalloc) or says calloc or recalloc.

   A C compiler needs <stdbool.h> and `long long`; C++98 and later will do as well. */
#pragma once
#ifndef MIMALLOC_H
#define MIMALLOC_H

#define MI_MALLOC_VERSION 20401   /* major * 10000 + minor * 100 + patch */

#include <stddef.h>
#include <stdint.h>
#if !defined(__cplusplus)
  #include <stdbool.h>
#endif

/* ---- what the compiler is told about the functions --------------------------------------------------------------- */

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

#if defined(__cplusplus)
extern "C" {
#endif

/* A set of blocks that can be freed at once. */
typedef struct mi_heap_s mi_heap_t;

/* ---- basic ------------------------------------------------------------------------------------------------------- */

/* A block of at least `size` bytes. */
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_malloc(size_t size)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(1);

/* A block of count * size bytes, all zero. */
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_calloc(size_t count, size_t size)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size2(1, 2);

/* A block of `newsize` bytes with the contents of p up to the smaller of both sizes; p is then gone, unless it is the
   result.  NULL p: mi_malloc.  The block stays in place while it fits and at least half of it is used; larger blocks
   also grow in place or are moved without being copied where that is possible.  newsize 0 gives a block of size 0. */
mi_decl_nodiscard mi_decl_export void* mi_realloc(void* p, size_t newsize) mi_attr_noexcept mi_attr_alloc_size(2);

/* As mi_realloc, but never moves: p if newsize bytes fit into its block, else NULL and the block stays as it was.
   NULL p gives NULL.  errno is left alone.  Always NULL in builds where blocks are padded (debug, secure). */
mi_decl_export void* mi_expand(void* p, size_t newsize) mi_attr_noexcept mi_attr_alloc_size(2);

/* Gives a block back.  NULL: nothing happens.  A pointer that is no block of ours is reported (EINVAL) and ignored, and
   so is a block that is found to have been freed before (EAGAIN).  Does not change errno. */
mi_decl_export void mi_free(void* p) mi_attr_noexcept;

/* A copy of the string s, or of its first n characters; always terminated.  NULL s gives NULL. */
mi_decl_nodiscard mi_decl_export mi_decl_restrict char* mi_strdup(const char* s) mi_attr_noexcept mi_attr_malloc;
mi_decl_nodiscard mi_decl_export mi_decl_restrict char* mi_strndup(const char* s, size_t n)
  mi_attr_noexcept mi_attr_malloc;

/* As realpath of the C library.  With resolved_name NULL the result is a block of ours, otherwise resolved_name, which
   must have room for PATH_MAX characters.  NULL and errno of realpath (ENOENT, ...) on failure. */
mi_decl_nodiscard mi_decl_export mi_decl_restrict char* mi_realpath(const char* fname, char* resolved_name)
  mi_attr_noexcept;

/* ---- extended ---------------------------------------------------------------------------------------------------- */

/* The largest size for the functions with _small in their names: 1 KiB on 64-bit systems. */
#define MI_SMALL_WSIZE_MAX 128
#define MI_SMALL_SIZE_MAX  (MI_SMALL_WSIZE_MAX * sizeof(void*))

/* mi_malloc and mi_zalloc for sizes of at most MI_SMALL_SIZE_MAX; larger ones are an error of the caller. */
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

/* How many bytes from p on the program may use: at least what it asked for, exactly that in builds where blocks are
   padded.  0 for NULL and for pointers that are not ours. */
mi_decl_nodiscard mi_decl_export size_t mi_usable_size(const void* p) mi_attr_noexcept;

/* The usable size that a block of this size would have at least; `size` itself when it is too large for any block. */
mi_decl_nodiscard mi_decl_export size_t mi_good_size(size_t size) mi_attr_noexcept;

/* Tidies up what the calling thread has cached, and runs the deferred free function.  With `force` all memory that is
   not in use goes back to the system as well.  Never needed for correctness. */
mi_decl_export void mi_collect(bool force) mi_attr_noexcept;

/* MI_MALLOC_VERSION of the library, as opposed to that of this header. */
mi_decl_export int mi_version(void) mi_attr_noexcept;

/* ---- zero initialised -------------------------------------------------------------------------------------------- */

/* mi_malloc, all zero. */
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_zalloc(size_t size)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(1);

/* mi_realloc and mi_reallocn whose added bytes are zero.  Only for blocks (or NULL) that were zero initialised when
   they were allocated and whenever they were reallocated: bytes between the size that was asked for and the usable size
   are taken to be zero still. */
mi_decl_nodiscard mi_decl_export void* mi_rezalloc(void* p, size_t newsize) mi_attr_noexcept mi_attr_alloc_size(2);
mi_decl_nodiscard mi_decl_export void* mi_recalloc(void* p, size_t newcount, size_t size)
  mi_attr_noexcept mi_attr_alloc_size2(2, 3);

/* ---- aligned ----------------------------------------------------------------------------------------------------- */

/* Alignment is a power of two, otherwise NULL with errno EINVAL; the size need not be a multiple of it.  In the
   functions with _at it is not the block p itself that is aligned but p + offset; the offset may be beyond the block.
   Blocks of all kinds are freed with mi_free.

   A reallocation keeps the block in place only if it is aligned as asked.  An alignment of at most sizeof(void*) asks
   for nothing that mi_realloc does not give, and is not checked. */
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_malloc_aligned(size_t size, size_t alignment)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(1) mi_attr_alloc_align(2);
mi_decl_nodiscard mi_decl_export mi_decl_restrict void*
  mi_malloc_aligned_at(size_t size, size_t alignment, size_t offset)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(1);
mi_decl_nodiscard mi_decl_export void* mi_realloc_aligned(void* p, size_t newsize, size_t alignment)
  mi_attr_noexcept mi_attr_alloc_size(2) mi_attr_alloc_align(3);
mi_decl_nodiscard mi_decl_export void* mi_realloc_aligned_at(void* p, size_t newsize, size_t alignment, size_t offset)
  mi_attr_noexcept mi_attr_alloc_size(2);

/* The same, zero initialised; rezalloc and recalloc only for blocks that always were, as above. */
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

/* As the functions without the u; they also store the size of the block behind the pointer, which may be larger than
   the usable size of an aligned pointer into it.  Pointers to sizes may be NULL.  Nothing is stored on failure, nor by
   mi_ufree(NULL).  mi_urealloc stores the size before (0 for NULL p) and the size after. */
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

/* ---- as in POSIX and other C libraries --------------------------------------------------------------------------- */

/* Frees p if it is a block of ours (mi_is_in_heap_region), ignores any other pointer. */
mi_decl_export void  mi_cfree(void* p) mi_attr_noexcept;

/* mi_expand that sets errno to ENOMEM where it gives NULL. */
mi_decl_export void* mi__expand(void* p, size_t newsize) mi_attr_noexcept;

/* Other names of mi_usable_size and mi_good_size. */
mi_decl_nodiscard mi_decl_export size_t mi_malloc_size(const void* p) mi_attr_noexcept;
mi_decl_nodiscard mi_decl_export size_t mi_malloc_usable_size(const void* p) mi_attr_noexcept;
mi_decl_nodiscard mi_decl_export size_t mi_malloc_good_size(size_t size) mi_attr_noexcept;

/* Stores an aligned block in *p and returns 0.  Otherwise returns EINVAL (p is NULL, or the alignment is not a power of
   two that is a multiple of sizeof(void*)) or ENOMEM, and leaves *p alone.  Never changes errno. */
mi_decl_export int mi_posix_memalign(void** p, size_t alignment, size_t size);

/* mi_malloc_aligned with the arguments in the usual order. */
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_memalign(size_t alignment, size_t size)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(2) mi_attr_alloc_align(1);
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_aligned_alloc(size_t alignment, size_t size)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(2) mi_attr_alloc_align(1);

/* A block that begins at an OS page; mi_pvalloc also rounds its size up to whole OS pages. */
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_valloc(size_t size)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(1);
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_pvalloc(size_t size)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(1);

/* mi_reallocn under its BSD name; a count * size that overflows sets errno to EOVERFLOW. */
mi_decl_nodiscard mi_decl_export void* mi_reallocarray(void* p, size_t count, size_t size)
  mi_attr_noexcept mi_attr_alloc_size2(2, 3);

/* As on NetBSD: `ptrp` is the address of a pointer to a block or NULL, which is replaced by the reallocated block.
   A count of 0 frees the block and stores NULL.  Returns 0, EINVAL (ptrp is NULL or size is 0), EOVERFLOW or ENOMEM; a
   failure also sets errno and leaves the pointer alone. */
mi_decl_nodiscard mi_decl_export int mi_reallocarr(void* ptrp, size_t count, size_t size) mi_attr_noexcept;

/* mi_recalloc_aligned and mi_recalloc_aligned_at under other names. */
mi_decl_nodiscard mi_decl_export void* mi_aligned_recalloc(void* p, size_t newcount, size_t size, size_t alignment)
  mi_attr_noexcept;
mi_decl_nodiscard mi_decl_export void*
  mi_aligned_offset_recalloc(void* p, size_t newcount, size_t size, size_t alignment, size_t offset) mi_attr_noexcept;

/* mi_free that is told what the block was allocated with: a size of at most its usable size, and its alignment.  Debug
   builds check both. */
mi_decl_export void mi_free_size(void* p, size_t size) mi_attr_noexcept;
mi_decl_export void mi_free_size_aligned(void* p, size_t size, size_t alignment) mi_attr_noexcept;
mi_decl_export void mi_free_aligned(void* p, size_t alignment) mi_attr_noexcept;

/* A copy of a string of wide characters or of bytes.  NULL gives NULL. */
mi_decl_nodiscard mi_decl_export mi_decl_restrict wchar_t* mi_wcsdup(const wchar_t* s) mi_attr_noexcept mi_attr_malloc;
mi_decl_nodiscard mi_decl_export mi_decl_restrict unsigned char* mi_mbsdup(const unsigned char* s)
  mi_attr_noexcept mi_attr_malloc;

/* Stores a copy of the value of an environment variable in *buf and its length, terminator included, in *size (which
   may be NULL); NULL and 0 if there is no such variable.  Returns 0, EINVAL (buf or name is NULL) or ENOMEM.  The wide
   one is for Windows; elsewhere it stores NULL and returns EINVAL. */
mi_decl_export int mi_dupenv_s(char** buf, size_t* size, const char* name) mi_attr_noexcept;
mi_decl_export int mi_wdupenv_s(wchar_t** buf, size_t* size, const wchar_t* name) mi_attr_noexcept;

/* ---- as operator new --------------------------------------------------------------------------------------------- */

/* On failure these call the handler of std::set_new_handler and try again for as long as there is one; then those
   without _nothrow throw std::bad_alloc, or abort where there is no C++ runtime, and the others give NULL. */
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

/* There is one function of each kind in a process; registering replaces the one before, NULL restores the default.
   `arg` is handed through.  Functions may be called on any thread, and by several at once. */

/* Called by mi_collect (with its `force`) and now and then by an allocation that takes the slow way; for programs that
   want to free bit by bit.  `heartbeat` never decreases.  May allocate and free; it is not entered again from its own
   calls. */
typedef void (mi_cdecl mi_deferred_free_fun)(bool force, unsigned long long heartbeat, void* arg);
mi_decl_export void mi_register_deferred_free(mi_deferred_free_fun* deferred_free, void* arg) mi_attr_noexcept;

/* Takes everything that the allocator prints; by default it goes to stderr.  Up to 16 KiB of what was printed before
   are delivered at registration.  The text is terminated, and may be a part of a line or several lines.  What the
   function itself makes the allocator print is not delivered to it again. */
typedef void (mi_cdecl mi_output_fun)(const char* msg, void* arg);
mi_decl_export void mi_register_output(mi_output_fun* out, void* arg) mi_attr_noexcept;

/* Called with each error, after its message: EAGAIN double free, EFAULT memory was overwritten, EINVAL not a valid
   pointer, ENOMEM out of memory, EOVERFLOW size too large.  By default, and depending on the build, some of them abort
   the process: EFAULT and EAGAIN in debug and secure builds, ENOMEM and EOVERFLOW with MI_XMALLOC.  A function that
   returns lets the program go on: what is invalid has then been ignored. */
typedef void (mi_cdecl mi_error_fun)(int err, void* arg);
mi_decl_export void mi_register_error(mi_error_fun* fun, void* arg);

/* ---- process and threads ----------------------------------------------------------------------------------------- */

/* All of these are called automatically, at load or the first allocation and at exit; calling them again does nothing.
   After mi_process_done and mi_thread_done allocation still works. */
mi_decl_export void mi_process_init(void) mi_attr_noexcept;
mi_decl_export void mi_cdecl mi_process_done(void) mi_attr_noexcept;

/* For the calling thread.  mi_thread_done leaves its live blocks valid. */
mi_decl_export void mi_thread_init(void) mi_attr_noexcept;
mi_decl_export void mi_thread_done(void) mi_attr_noexcept;

/* A hint that the calling thread serves a pool: it may sleep for long, and others may free what it has allocated. */
mi_decl_export void mi_thread_set_in_threadpool(void) mi_attr_noexcept;

/* Times are in milliseconds; resident and committed memory are in bytes, page faults are those that needed input.  Any
   pointer may be NULL. */
mi_decl_export void mi_process_info(size_t* elapsed_msecs, size_t* user_msecs, size_t* system_msecs,
                                    size_t* current_rss, size_t* peak_rss,
                                    size_t* current_commit, size_t* peak_commit, size_t* page_faults) mi_attr_noexcept;

/* The same as text.  NULL `out`: where all output goes. */
mi_decl_export void mi_process_info_print(void) mi_attr_noexcept;
mi_decl_export void mi_process_info_print_out(mi_output_fun* out, void* arg) mi_attr_noexcept;

/* ---- statistics -------------------------------------------------------------------------------------------------- */

/* They are those of the whole process.  mimalloc-stats.h has them as numbers and as JSON. */

/* Prints a table.  The argument has no meaning, pass NULL. */
mi_decl_export void mi_stats_print(void* out) mi_attr_noexcept;

/* Prints a table line by line.  NULL `out`: where all output goes. */
mi_decl_export void mi_stats_print_out(mi_output_fun* out, void* arg) mi_attr_noexcept;
mi_decl_export void mi_thread_stats_print_out(mi_output_fun* out, void* arg) mi_attr_noexcept;

/* Starts again: totals become what is current, peaks too, counters 0. */
mi_decl_export void mi_stats_reset(void) mi_attr_noexcept;

/* Numbers of threads are always part of those of the process: nothing is left to do for this function. */
mi_decl_export void mi_stats_merge(void) mi_attr_noexcept;

/* ---- whose memory is it ------------------------------------------------------------------------------------------ */

/* Is p within memory of ours?  Any pointer may be asked for.  mi_check_owned is its older name. */
mi_decl_nodiscard mi_decl_export bool mi_is_in_heap_region(const void* p) mi_attr_noexcept;
mi_decl_export bool mi_check_owned(const void* p);

/* Windows: does the C library of the process allocate here?  Elsewhere false. */
mi_decl_nodiscard mi_decl_export bool mi_is_redirected(void) mi_attr_noexcept;

/* ---- options ----------------------------------------------------------------------------------------------------- */

/* An option gets its value from the first of these that there is: mi_option_set; the environment variable MIMALLOC_ and
   its name, as in MIMALLOC_PURGE_DELAY=100 (upper or lower case); mi_option_set_default; its default below.  The
   environment is read once, at load or earlier if an option is asked for.

   Numbers are decimal; on, yes, true and an empty value mean 1, and off, no and false mean 0.  Options in KiB take a
   number of bytes, or a number followed by K, M, G or T (and B or iB): MIMALLOC_ARENA_RESERVE=2G.

   Options with "no effect" are there for programs that set them: this allocator has nothing to tune there. */
typedef enum mi_option_e {
  mi_option_show_errors,               /*  0  print errors and warnings                                  0 (debug: 1) */
  mi_option_show_stats,                /*  1  print statistics at exit                                              0 */
  mi_option_verbose,                   /*  2  print what happens: 1 at start and exit, 2 also in between            0 */
  mi_option_eager_commit,              /*  3  no effect                                                             1 */
  mi_option_arena_eager_commit,        /*  4  commit arenas at once: 0 no, 1 yes, 2 if the system overcommits       2 */
  mi_option_purge_decommits,           /*  5  purged memory goes back at once (1), or when the system needs it (0)  1 */
  mi_option_allow_large_os_pages,      /*  6  use large OS pages where there are some                               0 */
  mi_option_reserve_huge_os_pages,     /*  7  reserve so many OS pages of 1 GiB at start                            0 */
  mi_option_reserve_huge_os_pages_at,  /*  8  on this NUMA node, -1 on all                                         -1 */
  mi_option_reserve_os_memory,         /*  9  reserve memory at start, KiB                                          0 */
  mi_option_deprecated_segment_cache,  /* 10  no effect                                                             0 */
  mi_option_deprecated_page_reset,     /* 11  no effect                                                             0 */
  mi_option_abandoned_page_purge,      /* 12  no effect                                                             0 */
  mi_option_deprecated_segment_reset,  /* 13  no effect                                                             0 */
  mi_option_eager_commit_delay,        /* 14  no effect                                                             1 */
  mi_option_purge_delay,               /* 15  milliseconds until free memory is purged: 0 at once, -1 never        10 */
  mi_option_use_numa_nodes,            /* 16  assume so many NUMA nodes, 0 as many as there are                     0 */
  mi_option_disallow_os_alloc,         /* 17  use only memory that was reserved or given before                     0 */
  mi_option_os_tag,                    /* 18  macOS: tag of our memory                                            100 */
  mi_option_max_errors,                /* 19  print so many errors, < 0 all                                        32 */
  mi_option_max_warnings,              /* 20  print so many warnings, < 0 all                                      32 */
  mi_option_max_segment_reclaim,       /* 21  no effect                                                            10 */
  mi_option_destroy_on_exit,           /* 22  give all memory back at exit; > 1: the program calls mi_process_done  0 */
  mi_option_arena_reserve,             /* 23  size of arenas, KiB                         1048576 (32-bit: 131072)  */
  mi_option_arena_purge_mult,          /* 24  purge_delay times this is the delay for arenas                       10 */
  mi_option_purge_extend_delay,        /* 25  no effect                                                             1 */
  mi_option_abandoned_reclaim_on_free, /* 26  no effect                                                             0 */
  mi_option_disallow_arena_alloc,      /* 27  use arenas only where a heap asks for one                             0 */
  mi_option_retry_on_oom,              /* 28  Windows: milliseconds to go on trying when out of memory            400 */
  mi_option_visit_abandoned,           /* 29  allow visits of blocks of threads that are gone                       0 */
  mi_option_guarded_min,               /* 30  smallest size, bytes, that guard pages are sampled for                0 */
  mi_option_guarded_max,               /* 31  largest such size                                            1073741824 */
  mi_option_guarded_precise,           /* 32  guarded blocks end at the guard page even if then unaligned           0 */
  mi_option_guarded_sample_rate,       /* 33  guard one in so many blocks, 0 none                                   0 */
  mi_option_guarded_sample_seed,       /* 34  where sampling begins, 0 anywhere                                     0 */
  mi_option_target_segments_per_thread,/* 35  no effect                                                             0 */
  mi_option_generic_collect,           /* 36  tidy up a thread after so many slow allocations                   10000 */
  mi_option_allow_thp,                 /* 37  huge pages: 0 none, 1 for dense pages, 2 for all memory from 32 MiB on  1 */
  _mi_option_last,

  /* older names */
  mi_option_large_os_pages       = mi_option_allow_large_os_pages,
  mi_option_eager_region_commit  = mi_option_arena_eager_commit,
  mi_option_reset_decommits      = mi_option_purge_decommits,
  mi_option_reset_delay          = mi_option_purge_delay,
  mi_option_abandoned_page_reset = mi_option_abandoned_page_purge,
  mi_option_limit_os_alloc       = mi_option_disallow_os_alloc
} mi_option_t;

/* Reading.  mi_option_get gives options in KiB as they are, mi_option_get_size in bytes, and 0 for a negative value.
   An option that does not exist is 0. */
mi_decl_nodiscard mi_decl_export bool   mi_option_is_enabled(mi_option_t option);
mi_decl_nodiscard mi_decl_export long   mi_option_get(mi_option_t option);
mi_decl_nodiscard mi_decl_export long   mi_option_get_clamp(mi_option_t option, long min, long max);
mi_decl_nodiscard mi_decl_export size_t mi_option_get_size(mi_option_t option);

/* Setting.  The functions with _default do nothing if the environment or an earlier call has set the option.  An option
   that does not exist is ignored. */
mi_decl_export void mi_option_set(mi_option_t option, long value);
mi_decl_export void mi_option_set_default(mi_option_t option, long value);
mi_decl_export void mi_option_enable(mi_option_t option);
mi_decl_export void mi_option_disable(mi_option_t option);
mi_decl_export void mi_option_set_enabled(mi_option_t option, bool enable);
mi_decl_export void mi_option_set_enabled_default(mi_option_t option, bool enable);

/* Prints the version, all options and how the library was built.  NULL `out`: where all output goes. */
mi_decl_export void mi_options_print(void) mi_attr_noexcept;
mi_decl_export void mi_options_print_out(mi_output_fun* out, void* arg) mi_attr_noexcept;

#if defined(__cplusplus)
}
#endif

/* ---- typed allocation -------------------------------------------------------------------------------------------- */

/* For a type `tp` or an array of n of them; the result is a tp*. */
#define mi_malloc_tp(tp)         ((tp*)mi_malloc(sizeof(tp)))
#define mi_zalloc_tp(tp)         ((tp*)mi_zalloc(sizeof(tp)))
#define mi_calloc_tp(tp, n)      ((tp*)mi_calloc(n, sizeof(tp)))
#define mi_mallocn_tp(tp, n)     ((tp*)mi_mallocn(n, sizeof(tp)))
#define mi_reallocn_tp(p, tp, n) ((tp*)mi_reallocn(p, n, sizeof(tp)))
#define mi_recalloc_tp(p, tp, n) ((tp*)mi_recalloc(p, n, sizeof(tp)))

#endif
