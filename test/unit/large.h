// What the tests of large blocks ask of the library.
#pragma once

#include "arena/slices.h"
#include "support/stat.h"

static inline int64_t bytes_in_use(void) {
  return mi_load_relaxed(&_mi_stat_live.malloc_huge.current);
}

// Of all regions, those of pages and of our own data too.
static inline size_t slices_in_use(void) {
  size_t n = 0;
  for (size_t i = 0; i < _mi_region_count(); i++) {
    const mi_region_t* region = &_mi_region_all[i];
    for (size_t k = 0; region->base != 0 && k < region->n_used; k++) {
      if (region->chunks[k].kind == MI_CHUNK_META) continue;
      n += MI_CHUNK_SLICES - (size_t)__builtin_popcount(region->chunks[k].free_bits);
    }
  }
  return n;
}
