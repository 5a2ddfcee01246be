// An ordered index of address ranges.  Layer: arena.
#include "range.h"

#include "../base/bits.h"
#include "../support/assert.h"

// No range has a lower one than those below it.
static uint64_t range_priority(const mi_range_t* range) {
  return mi_mix64(range->start);
}

// Where the tree has, or would have, the range.
static mi_range_t** range_place(mi_range_t** at, const mi_range_t* range) {
  uint64_t priority = range_priority(range);
  while (*at != NULL && *at != range && range_priority(*at) >= priority) {
    at = (range->start < (*at)->start ? &(*at)->left : &(*at)->right);
  }
  return at;
}

void _mi_range_insert(mi_range_t** root, mi_range_t* range) {
  mi_range_t** at = range_place(root, range);
  mi_range_t*  rest = *at;
  mi_range_t** below = &range->left;
  mi_range_t** above = &range->right;
  *at = range;
  // What was there is taken apart into what lies below the range and what lies above it.
  while (rest != NULL) {
    if (rest->start < range->start) {
      *below = rest;
      below = &rest->right;
      rest = rest->right;
    }
    else {
      *above = rest;
      above = &rest->left;
      rest = rest->left;
    }
  }
  *below = *above = NULL;
}

void _mi_range_remove(mi_range_t** root, mi_range_t* range) {
  mi_range_t** at = range_place(root, range);
  mi_range_t*  below = range->left;
  mi_range_t*  above = range->right;
  mi_assert_internal(*at == range);
  while (below != NULL && above != NULL) {
    if (range_priority(below) >= range_priority(above)) {
      *at = below;
      at = &below->right;
      below = below->right;
    }
    else {
      *at = above;
      at = &above->left;
      above = above->left;
    }
  }
  *at = (below != NULL ? below : above);
  range->left = range; // RG2
}

mi_range_t* _mi_range_find(mi_range_t* root, uintptr_t start, size_t size) {
  mi_range_t* last = NULL; // the highest one that begins before the end
  while (root != NULL) {
    bool is_before = (root->start < start || root->start - start < size);
    if (is_before) last = root;
    root = (is_before ? root->right : root->left);
  }
  // It may lie before `start`.
  bool is_there = (last != NULL && (last->start >= start || start - last->start < last->size));
  return is_there ? last : NULL;
}
