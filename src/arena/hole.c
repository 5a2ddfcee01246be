// Holes in dense chunks: parts of them that went back to the system.  Layer: arena.
#include "hole.h"

#include "../support/option.h"
#include "slices.h"

// Each chunk that has some costs up to two of the kernel's mappings, of which a process may have 65530; in the full level of
// security gaps and guarded blocks need most of those.
#define HOLE_CHUNKS_MAX 4096

static size_t hole_n_chunks;

static void hole_set(mi_region_t* region, size_t i, bool has_holes) {
  if (region != &_mi_regions[MI_REGION_DENSE]) return;
  mi_chunk_t* chunk = &region->chunks[i];
  char*       start = _mi_region_slice_start(region, i * MI_CHUNK_SLICES);
  if ((chunk->has_holes != 0) == has_holes || (has_holes && hole_n_chunks >= HOLE_CHUNKS_MAX)) return;
  if (!has_holes && _mi_option_get_fast(mi_option_allow_thp) == 0) return;
  if (_mi_prim_advise_huge(start, MI_CHUNK_SIZE, !has_holes) != 0) return; // asked again at the next occasion
  chunk->has_holes = has_holes;
  if (has_holes) hole_n_chunks++;
  else hole_n_chunks--;
}

void _mi_hole_open(mi_region_t* region, size_t i) {
  hole_set(region, i, true);
}

void _mi_hole_close(mi_region_t* region, size_t i, size_t n) {
  for (size_t end = i + n; i < end && hole_n_chunks > 0; i++) hole_set(region, i, false);
}

static bool hole_is_filled(const mi_chunk_t* chunk) {
  return chunk->has_holes && (chunk->free_bits == 0 || (chunk->free_bits == UINT32_MAX && chunk->dirty_bits == 0));
}

// The first chunk from i on that has holes no more; SIZE_MAX if there is none.
static size_t hole_find_filled(const mi_region_t* region, size_t i) {
  _mi_lock_acquire(&_mi_arena_lock);
  while (i < region->n_used && !hole_is_filled(&region->chunks[i])) i++;
  bool is_found = (i < region->n_used);
  _mi_lock_release(&_mi_arena_lock);
  return is_found ? i : SIZE_MAX;
}

void _mi_hole_close_filled(void) {
  mi_region_t* region = &_mi_regions[MI_REGION_DENSE];
  _mi_lock_acquire(&_mi_purge_lock);
  for (size_t i = 0; hole_n_chunks > 0 && (i = hole_find_filled(region, i)) != SIZE_MAX; i++)
    hole_set(region, i, false);
  _mi_lock_release(&_mi_purge_lock);
}
