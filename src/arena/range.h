// An ordered index of address ranges.  Layer: arena.
//
// A treap: a search tree by address that is a heap by a number made of the address, so its depth is O(log n) whatever order
// ranges come and go in, and nothing has to be balanced.  Each step takes O(log n), in a loop; nothing is allocated.
//
// RG1  Ranges of an index do not meet.
// RG2  A range that is in no index is its own left neighbour; then its other fields are its owner's to use.
#pragma once

#include "../base/public.h"

typedef struct mi_range_s {
  uintptr_t          start;
  size_t             size;
  struct mi_range_s *left, *right;
} mi_range_t;

static inline bool _mi_range_is_in_index(const mi_range_t* range) {
  return range->left != range;
}

void _mi_range_insert(mi_range_t** root, mi_range_t* range);

void _mi_range_remove(mi_range_t** root, mi_range_t* range);

// The range that has a part of [start, start + size), the highest if there are several; NULL if none has.
mi_range_t* _mi_range_find(mi_range_t* root, uintptr_t start, size_t size);
