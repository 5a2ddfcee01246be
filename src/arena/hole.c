// Holes in huge-page chunks: parts of them that went back to the system.  Layer: arena.
#include "hole.h"

// Each chunk that has some costs up to two of the kernel's mappings, of which a process may have 65530; in secure full builds
// guard pages and guarded blocks need most of those.
#define HOLE_CHUNKS_MAX (MI_PRIM_VIRTUAL ? 4096 : 1)

// Chunks that have some, or had when this was last looked at: the index of the region in the upper 8 bits, that of the chunk in
// the others.  Owned by the purge lock.
static mi_mostly_unused uint32_t hole_chunks[HOLE_CHUNKS_MAX];
static size_t                    hole_n_listed, hole_n_chunks;
static size_t                    hole_next; // to be looked at

// Of a chunk.
#define HOLE_HAS    1
#define HOLE_LISTED 2
#define HOLE_INSIDE 4 // ... and parts of slices in use went back

#define HOLE_CHUNK_BITS 24

static mi_region_t* hole_region(size_t at) {
  return &_mi_region_all[hole_chunks[at] >> HOLE_CHUNK_BITS];
}

static size_t hole_chunk(size_t at) {
  return hole_chunks[at] & (((uint32_t)1 << HOLE_CHUNK_BITS) - 1);
}

static void hole_unlist(size_t at) {
  hole_region(at)->chunks[hole_chunk(at)].has_holes = 0;
  hole_chunks[at] = hole_chunks[--hole_n_listed];
}

static bool hole_may_list(size_t i) {
  for (size_t at = hole_n_listed; hole_n_listed == HOLE_CHUNKS_MAX && at > 0; at--) {
    if ((hole_region(at - 1)->chunks[hole_chunk(at - 1)].has_holes & HOLE_HAS) == 0) hole_unlist(at - 1);
  }
  return hole_n_listed < HOLE_CHUNKS_MAX && i >> HOLE_CHUNK_BITS == 0;
}

static void hole_set(mi_region_t* region, size_t i, bool has_holes) {
  if (!region->is_huge) return;
  mi_chunk_t* chunk = &region->chunks[i];
  char*       start = _mi_region_slice_start(region, i * MI_CHUNK_SLICES);
  bool        had_holes = ((chunk->has_holes & HOLE_HAS) != 0);
  if (!has_holes && !had_holes) return;
  if (has_holes && chunk->has_holes == 0 && !hole_may_list(i)) return;
  if (!has_holes && !_mi_region_may_be_huge()) return;
  // Even if it had holes: it may have been closed and opened since, and then it asks for a huge page.
  if (_mi_prim_advise_huge(start, MI_CHUNK_SIZE, !has_holes) != 0) return; // asked again at the next occasion
  if (has_holes == had_holes) return;
  if (has_holes && chunk->has_holes == 0)
    hole_chunks[hole_n_listed++] = (uint32_t)(_mi_region_index(region) << HOLE_CHUNK_BITS | i);
  chunk->has_holes = HOLE_LISTED | (has_holes ? HOLE_HAS : 0);
  if (has_holes) hole_n_chunks++;
  else hole_n_chunks--;
}

void _mi_hole_open(mi_region_t* region, size_t i) {
  hole_set(region, i, true);
}

void _mi_hole_close(mi_region_t* region, size_t i, size_t n) {
  for (size_t end = i + n; i < end && hole_n_chunks > 0; i++) hole_set(region, i, false);
}

// Has the chunk no holes any more?  Those within slices are gone when none of its slices is in use.
static bool hole_is_filled(mi_chunk_t* chunk) {
  _mi_lock_acquire(&_mi_region_lock);
  uint32_t free_bits = chunk->free_bits, dirty_bits = chunk->dirty_bits;
  _mi_lock_release(&_mi_region_lock);
  if (free_bits == UINT32_MAX) chunk->has_holes &= (uint8_t)~HOLE_INSIDE;
  bool has_inside = ((chunk->has_holes & HOLE_INSIDE) != 0);
  return (free_bits == 0 && !has_inside) || (free_bits == UINT32_MAX && dirty_bits == 0);
}

// Is nothing mapped there any more?  Then the holes are gone too.
static bool hole_forget_closed(const mi_region_t* region, size_t i) {
  _mi_lock_acquire(&_mi_region_lock);
  bool is_closed = (i >= region->n_open);
  _mi_lock_release(&_mi_region_lock);
  if (!is_closed) return false;
  region->chunks[i].has_holes = HOLE_LISTED;
  hole_n_chunks--;
  return true;
}

void _mi_hole_close_filled(size_t n) {
  _mi_lock_acquire(&_mi_region_purge_lock);
  for (n = mi_min(n, hole_n_listed); n > 0 && hole_n_listed > 0; n--) {
    if (hole_next >= hole_n_listed) hole_next = 0;
    mi_region_t* region = hole_region(hole_next);
    size_t       i = hole_chunk(hole_next);
    mi_chunk_t*  chunk = &region->chunks[i];
    bool         has_holes = ((chunk->has_holes & HOLE_HAS) != 0);
    if (has_holes && !hole_forget_closed(region, i) && hole_is_filled(chunk)) hole_set(region, i, false);
    if ((chunk->has_holes & HOLE_HAS) != 0) hole_next++;
    else hole_unlist(hole_next);
  }
  _mi_lock_release(&_mi_region_purge_lock);
}

bool _mi_hole_give(mi_region_t* region, size_t slice, void* start, size_t size) {
  mi_chunk_t* chunk = &region->chunks[slice / MI_CHUNK_SLICES];
  if (!_mi_region_purges_to_zero(region)) return false;
  _mi_lock_acquire(&_mi_region_purge_lock);
  hole_set(region, slice / MI_CHUNK_SLICES, true);
  if ((chunk->has_holes & HOLE_HAS) != 0) chunk->has_holes |= HOLE_INSIDE;
  bool ok = _mi_region_discard(start, size) || _mi_region_purge(start, size) == 0;
  _mi_lock_release(&_mi_region_purge_lock);
  return ok;
}
