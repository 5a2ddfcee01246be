// What memory limits have to count (arena/limit.h), by looking at everything there is.
#pragma once

#include "arena/chunk.h"
#include "arena/limit.h"
#include "arena/mapped.h"

// While nobody else allocates or frees.  Where memory only grows, what is not there yet is marked like what is in use: the caller
// does without.
static inline size_t counted_bytes(void) {
  mi_mapped_sum_t mapped;
  size_t          n = 0;
  _mi_lock_acquire(&_mi_region_lock);
  for (size_t i = 0; i < _mi_region_count(); i++) {
    const mi_region_t* region = &_mi_region_all[i];
    if (region->base == 0 || !_mi_region_is_counted(region)) continue;
    n -= region->n_missing; // which look as if they were in use
    for (size_t k = 0; k < region->n_used; k++) {
      uint32_t free = region->chunks[k].free_bits;
      n += (size_t)__builtin_popcount(~free) + (size_t)__builtin_popcount(free & region->chunks[k].dirty_bits);
    }
  }
  _mi_lock_release(&_mi_region_lock);
  _mi_mapped_get_sum(&mapped);
  return n * MI_SLICE_SIZE + mapped.size;
}
