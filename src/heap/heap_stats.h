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

// Of a heap, of all heaps of a subprocess, or (both NULL) of all.  Other threads may go on: the numbers are then of no
// single moment.  Blocks in bins, outboxes and quarantines count as used in the last case only: to look into those of threads
// that run can go wrong by a whole bin.
void _mi_heap_stats(mi_heap_stats_t* stats, const mi_heap_t* heap, const mi_subproc_t* subproc);

// How many heaps there are in a subprocess, and in *n_theaps how many parts of them (of that heap, if it is not NULL)
// threads have.
size_t _mi_heap_count(const mi_subproc_t* subproc, const mi_heap_t* heap, size_t* n_theaps);

// Blocks in use of a page that others may be changing: a number that was right at some time.
size_t _mi_heap_page_used(const mi_page_t* page);
