/* The statistics of the allocator as numbers and as JSON.

   They are those of the whole process unless the description of a function says otherwise; all builds keep them.  They are exact
   if no other thread allocates or frees meanwhile; otherwise the numbers may be of different moments.  They are never negative.

   Events that concern a whole page or more are counted as they happen.  Blocks of the size classes are not, because a counter in
   malloc would cost as much as the rest of malloc.  Blocks in use are counted on request, without blocks that wait in a thread's
   bins, on the way to another thread, or in a quarantine.  Their peak and their total are not known, and these fields repeat
   the current value.  For a heap or subprocess all numbers of blocks and pages are of this kind, and a heap has no others.
   In the child of a fork, what was free in the pages of threads that the child does not have counts as in use. */
#pragma once
#ifndef MIMALLOC_STATS_H
#define MIMALLOC_STATS_H

#include "mimalloc.h"
#include <stdint.h>
#include <string.h>

/* Changes with the layout of mi_stats_t. */
#if MI_API_LEVEL < 3
#define MI_STAT_VERSION 4
#else
#define MI_STAT_VERSION 5
#endif

/* An amount that goes up and down: the sum of all increases, the largest and the present value. */
typedef struct mi_stat_count_s {
  int64_t total;
  int64_t peak;
  int64_t current;
} mi_stat_count_t;

/* An amount that only grows. */
typedef struct mi_stat_counter_s {
  int64_t total;
} mi_stat_counter_t;

/* Fields of level 3 only. */
#if MI_API_LEVEL < 3
  #define MI_STAT_FIELDS_HEAPS()
  #define MI_STAT_FIELDS_HEAP_ENDS()
#else
  #define MI_STAT_FIELDS_HEAPS() \
    MI_STAT_COUNT(heaps)                    /* heaps */ \
    MI_STAT_COUNT(theaps)                   /* parts of heaps that belong to a thread, or wait for one */
  #define MI_STAT_FIELDS_HEAP_ENDS() \
    MI_STAT_COUNTER(heaps_delete_wait)      /* always 0: deleting a heap never waits for a thread */
#endif

/* The fields, in order.  To walk them, define MI_STAT_COUNT(name) and MI_STAT_COUNTER(name), and undefine them afterwards.
   "always 0" marks a field for which this allocator has nothing to count, with the reason. */
#define MI_STAT_FIELDS() \
  MI_STAT_COUNT(pages)                      /* pages: runs of memory with blocks of one size */ \
  MI_STAT_COUNT(reserved)                   /* bytes of address space for pages and blocks */ \
  MI_STAT_COUNT(committed)                  /* bytes of these that may be backed with memory */ \
  MI_STAT_COUNTER(reset)                    /* bytes that the system may take back when it needs them */ \
  MI_STAT_COUNTER(purged)                   /* bytes given back but not unmapped, whether they were backed or not */ \
  MI_STAT_COUNT(page_committed)             /* bytes in pages */ \
  MI_STAT_COUNT(pages_abandoned)            /* pages that belong to no thread and have free blocks; peak: at most */ \
  MI_STAT_COUNT(threads)                    /* threads that have allocated */ \
  MI_STAT_COUNT(malloc_normal)              /* bytes in blocks of the size classes; only the current value */ \
  MI_STAT_COUNT(malloc_huge)                /* bytes in blocks with a page of their own: larger ones, guarded ones ... */ \
  MI_STAT_COUNT(malloc_requested)           /* bytes in all blocks; only the current value */ \
  MI_STAT_COUNTER(mmap_calls)               /* system calls: mmap, ... */ \
  MI_STAT_COUNTER(commit_calls)             /* ... mprotect or the program's function, to make memory usable ... */ \
  MI_STAT_COUNTER(reset_calls)              /* ... madvise, to offer it to the system ... */ \
  MI_STAT_COUNTER(purge_calls)              /* ... madvise or the program's function, to give it back */ \
  MI_STAT_COUNTER(arena_count)              /* ranges of address space, with arenas of the program */ \
  MI_STAT_COUNTER(malloc_normal_count)      /* blocks of the size classes that are in use now */ \
  MI_STAT_COUNTER(malloc_huge_count)        /* these blocks, all that were allocated; of a heap, those in use now */ \
  MI_STAT_COUNTER(malloc_guarded_count)     /* blocks with a guard page */ \
  MI_STAT_COUNTER(arena_rollback_count)     /* always 0: memory taken from an arena is always used */ \
  MI_STAT_COUNTER(arena_purges)             /* periodic rounds that found memory to give back */ \
  MI_STAT_COUNTER(pages_extended)           /* how often more of a page was put to use */ \
  MI_STAT_COUNTER(pages_retire)             /* pages that became empty and were given back */ \
  MI_STAT_COUNTER(page_searches)            /* pages checked by threads that know no page with free blocks ... */ \
  MI_STAT_COUNTER(page_searches_count)      /* ... and the number of such searches */ \
  MI_STAT_COUNT(segments)                   /* always 0: pages lie in arenas, without segments between */ \
  MI_STAT_COUNT(segments_abandoned)         /* always 0: there are no segments */ \
  MI_STAT_COUNT(segments_cache)             /* always 0: there are no segments */ \
  MI_STAT_COUNT(_segments_reserved)         /* always 0: there are no segments */ \
  MI_STAT_FIELDS_HEAPS() \
  MI_STAT_COUNTER(pages_reclaim_on_alloc)   /* pages of no thread, taken over by a thread that allocates ... */ \
  MI_STAT_COUNTER(pages_reclaim_on_free)    /* ... or, also full ones, by their former thread, by a free */ \
  MI_STAT_COUNTER(pages_reabandon_full)     /* full pages that a thread has released, for others to make available */ \
  MI_STAT_COUNTER(pages_unabandon_busy_wait) /* always 0: a page is taken over by one atomic operation */ \
  MI_STAT_FIELDS_HEAP_ENDS()

/* Blocks and pages by block size: bin i has the sizes above that of bin i-1, up to its own (mi_stats_get_bin_size).  The last
   bin has blocks with a page of their own (these pages are not counted).  Pages with blocks of several sizes are in no bin.
   Only current values are known. */
#define MI_BIN_HUGE 73

/* Level 3: ranges of address space by the size of the pages in them; always 0: all ranges take pages of all sizes. */
#if MI_API_LEVEL >= 3
typedef enum mi_chunkbin_e {
  MI_CBIN_SMALL,
  MI_CBIN_OTHER,
  MI_CBIN_MEDIUM,
  MI_CBIN_LARGE,
  MI_CBIN_HUGE,
  MI_CBIN_NONE,
  MI_CBIN_COUNT
} mi_chunkbin_t;
#endif

typedef struct mi_stats_s {
  size_t size;      /* sizeof(mi_stats_t), set by the caller */
  size_t version;   /* MI_STAT_VERSION, set by the caller */
#define MI_STAT_COUNT(name)   mi_stat_count_t name;
#define MI_STAT_COUNTER(name) mi_stat_counter_t name;
  MI_STAT_FIELDS()
#undef MI_STAT_COUNT
#undef MI_STAT_COUNTER
  mi_stat_count_t   _stat_reserved[4];              /* always 0: for fields to come */
  mi_stat_counter_t _stat_counter_reserved[4];      /* always 0: for fields to come */
  mi_stat_count_t   malloc_bins[MI_BIN_HUGE + 1];   /* blocks */
  mi_stat_count_t   page_bins[MI_BIN_HUGE + 1];     /* pages */
#if MI_API_LEVEL >= 3
  mi_stat_count_t   chunk_bins[MI_CBIN_COUNT];      /* always 0: all ranges take pages of all sizes */
#endif
} mi_stats_t;

/* Sets size and version, so that *stats is ready for mi_stats_get; mi_stats_init also clears it. */
mi_decl_inline void mi_stats_header_init(mi_stats_t* stats) {
  stats->size = sizeof(*stats);
  stats->version = MI_STAT_VERSION;
}
mi_decl_inline void mi_stats_init(mi_stats_t* stats) {
  memset(stats, 0, sizeof(*stats));
  mi_stats_header_init(stats);
}

/* Declares a variable that is ready for mi_stats_get; use it among the statements of a function. */
#if defined(__cplusplus)
  #define mi_stats_t_decl(name) \
    mi_stats_t name = mi_stats_t(); \
    name.size = sizeof(mi_stats_t); \
    name.version = MI_STAT_VERSION
#else
  #define mi_stats_t_decl(name) \
    mi_stats_t name = { 0 }; \
    name.size = sizeof(mi_stats_t); \
    name.version = MI_STAT_VERSION
#endif

#if defined(__cplusplus)
extern "C" {
#endif

/* Fills in *stats.  Returns false and changes nothing if it is NULL, or if its size or version is not that of the library.  For
   a heap, these are the blocks and pages of that heap.  For a subprocess, they are those of all its heaps and the rest that
   belongs to it; _exclusive leaves out its heaps.  (Everything that belongs to no heap, except threads, belongs to the main
   subprocess.)  O(pages of the process + threads) in each case. */
mi_decl_export bool mi_stats_get(mi_stats_t* stats) mi_attr_noexcept;
mi_decl_export bool mi_heap_stats_get(mi_heap_t* heap, mi_stats_t* stats) mi_attr_noexcept;
mi_decl_export bool mi_subproc_stats_get(mi_subproc_id_t subproc_id, mi_stats_t* stats) mi_attr_noexcept;
mi_decl_export bool mi_subproc_stats_get_exclusive(mi_subproc_id_t subproc_id, mi_stats_t* stats) mi_attr_noexcept;

/* The same with process information, as JSON; page_faults are those that needed input, page_faults_minor all others.  If buf
   is NULL or buf_size is 0, the result is a block that must be freed with mi_free (NULL if there is no memory).  Otherwise it
   is buf, and the text is cut off at buf_size - 1 bytes.  The text is always terminated, and takes less than 32 KiB.
   mi_stats_as_json writes the numbers in *stats; it returns NULL if stats is NULL, or if its size or version is not that of
   the library. */
mi_decl_export char* mi_stats_get_json(size_t buf_size, char* buf) mi_attr_noexcept;
mi_decl_export char* mi_heap_stats_get_json(mi_heap_t* heap, size_t buf_size, char* buf) mi_attr_noexcept;
mi_decl_export char* mi_subproc_stats_get_json(mi_subproc_id_t subproc_id, size_t buf_size, char* buf) mi_attr_noexcept;
mi_decl_export char* mi_stats_as_json(mi_stats_t* stats, size_t buf_size, char* buf) mi_attr_noexcept;

/* The largest block size in a bin; PTRDIFF_MAX for MI_BIN_HUGE, 0 if there is no such bin. */
mi_decl_export size_t mi_stats_get_bin_size(size_t bin) mi_attr_noexcept;

#if defined(__cplusplus)
}
#endif

#endif
