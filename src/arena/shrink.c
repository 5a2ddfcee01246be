// Unmapping regions and parts of them that hold nothing.  Layer: arena.
#include "shrink.h"

#include "chunk.h"
#include "part.h"
#include "space.h"

// Fewer chunks are not worth unmapping: 32 MiB.
#define SHRINK_MIN 16

bool _mi_shrink_forget(mi_region_t* region) {
  for (size_t i = 0; i < region->n_used; i++) {
    if (!_mi_chunk_is_free(region, i)) return false;
  }
  _mi_chunk_forget_all(region);
  return true;
}

static bool shrink_is_clean(const mi_chunk_t* chunk) {
  return (chunk->dirty_bits | chunk->stale_bits) == 0;
}

// Free chunks at the end of a band go back, as if they had never been used: all of them, or those that read as zero, if
// they are many.
static bool shrink_band(mi_region_t* region, bool only_clean) {
  bool   any = mi_unlikely(region->n_missing > 0) && _mi_part_close(region);
  size_t n = region->n_used;
  while (n > 0 && _mi_chunk_is_free(region, n - 1) && (!only_clean || shrink_is_clean(&region->chunks[n - 1]))) n--;
  if (n == region->n_open || (only_clean && region->n_open - n < SHRINK_MIN + n / 8)) return any;
  if (!_mi_space_close(region, n)) return any;
  _mi_chunk_use_less(region, n);
  return true;
}

bool _mi_shrink_band(mi_region_t* region) {
  return shrink_band(region, false);
}

bool _mi_shrink_regions(void) {
  bool any = false;
  if (!MI_PRIM_VIRTUAL) return false;
  for (size_t i = 0; i < _mi_region_count(); i++) {
    mi_region_t* region = &_mi_region_all[i];
    if (region->base == 0 || region->origin != MI_REGION_OWN) continue;
    if (region->is_planned) {
      if (shrink_band(region, false)) any = true;
    }
    else if (i > MI_REGION_HUGE && _mi_shrink_forget(region)) {
      _mi_space_remove(region);
      any = true;
    }
  }
  if (any) _mi_space_refused = SIZE_MAX; // the system may have it now
  return any;
}

void _mi_shrink_clean(void) {
  _mi_lock_acquire(&_mi_region_lock);
  for (size_t i = 0; i < _mi_region_count(); i++) {
    if (_mi_region_all[i].is_planned) shrink_band(&_mi_region_all[i], true);
  }
  _mi_lock_release(&_mi_region_lock);
}
