// What is in use, by block size: from a walk over all pages, so that counting costs nothing until somebody asks.
// Layer: heap.
#pragma once

#include "heap.h"

typedef struct mi_class_stat_s {
  size_t n_pages;
  size_t n_blocks_used;
} mi_class_stat_t;

typedef struct mi_heap_stats_s {
  mi_class_stat_t classes[MI_CLASS_COUNT];
  size_t          n_pages; // of blocks
  size_t          n_page_bytes;
  size_t          n_pages_shared;
  size_t          n_large;
  size_t          n_large_bytes;
} mi_heap_stats_t;

// Of a heap, of all heaps of a subprocess, or (both NULL) of all.  Blocks in bins, outboxes and quarantines are not used.  Exact
// when no other thread allocates or frees meanwhile; otherwise the numbers are of no single moment.  False, and all 0, only at
// the end of the process (idle.h).
bool _mi_heap_stats(mi_heap_stats_t* stats, const mi_heap_t* heap, const mi_subproc_t* subproc);

// The sum over all theaps since the last reset: exact under the same condition, and never negative.
int64_t _mi_heap_stats_counted(mi_theap_count_t what);
void    _mi_heap_stats_reset(void);

// How many heaps there are in a subprocess, and in *n_theaps how many parts of them (of that heap, if it is not NULL)
// threads have.
size_t _mi_heap_stats_count(const mi_subproc_t* subproc, const mi_heap_t* heap, size_t* n_theaps);

// Blocks in use of a page that others may be changing: a number that was right at some time.
size_t _mi_heap_stats_page_used(const mi_page_t* page);
