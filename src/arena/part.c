// Parts of a chunk.  Layer: arena.  part.h has the invariants.
#include "part.h"

#include "chunk.h"
#include "space.h"

// So many slices at the end of those that are there are free.
static size_t part_tail(const mi_region_t* region) {
  return mi_high_ones32(region->chunks[region->n_open - 1].free_bits << region->n_missing);
}

bool _mi_part_open(mi_region_t* region, size_t n) {
  if (!region->is_planned || region->is_huge) return false;
  if (region->n_missing == 0) {
    if (n >= MI_CHUNK_SLICES || region->n_used < region->n_open || !_mi_space_open_slices(region, n)) return false;
    region->chunks[region->n_used].kind = MI_CHUNK_MIXED; // and nothing is free
    region->n_used = region->n_open;
  }
  else {
    n = mi_min(n - mi_min(n, part_tail(region)), region->n_missing);
    if (!_mi_space_open_slices(region, n)) return false;
  }
  size_t first = MI_CHUNK_SLICES - region->n_missing - n;
  _mi_chunk_put(region, region->n_open - 1, mi_mask32(n) << first, MI_CONTENTS_AS_BEFORE);
  return true;
}

bool _mi_part_close(mi_region_t* region) {
  uint32_t there = mi_mask32(MI_CHUNK_SLICES - region->n_missing);
  size_t   last = region->n_open - 1;
  if (region->chunks[last].free_bits != there || !_mi_space_close(region, last)) return false;
  _mi_chunk_put(region, last, ~there, MI_CONTENTS_AS_BEFORE);
  _mi_chunk_use_less(region, last);
  return true;
}
