// How many blocks there are, by block size.  Layer: heap.
#pragma once

#include <stddef.h>

typedef struct mi_class_stat_s {
  size_t block_size;
  size_t n_pages;
  size_t n_blocks_used;
  size_t n_blocks_capacity;
} mi_class_stat_t;

// Walks all pages of the process and fills in at most `max` entries, one for each size class in increasing order;
// returns how many.  Other threads may go on: the numbers are then of no single moment.
size_t _mi_heap_class_stats(mi_class_stat_t* table, size_t max);
