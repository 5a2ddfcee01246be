// What the tests of large blocks ask of the library.
#pragma once

#include "arena/slices.h"
#include "support/stat.h"

static inline int64_t bytes_in_use(void) {
  return mi_load_relaxed(&_mi_stat_live.malloc_huge.current);
}

// Of all regions, without those of our own data; where memory only grows these share chunks with blocks, and what is not there
// yet is marked like what is in use (arena/window.h, WI1, WI4).
static inline size_t slices_in_use(void) {
  size_t n = 0, n_there = (size_t)mi_load_relaxed(&_mi_stat_live.reserved.current) / MI_SLICE_SIZE, n_free = 0;
  for (size_t i = 0; i < _mi_region_count(); i++) {
    const mi_region_t* region = &_mi_region_all[i];
    for (size_t k = 0; region->base != 0 && k < region->n_used; k++) {
      if (region->chunks[k].kind == MI_CHUNK_META) continue;
      n_free += (size_t)__builtin_popcount(region->chunks[k].free_bits);
      n += MI_CHUNK_SLICES - (size_t)__builtin_popcount(region->chunks[k].free_bits);
    }
  }
  return MI_PRIM_VIRTUAL ? n : n_there - n_free;
}
