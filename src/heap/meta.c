// Blocks for our own tables: a list for each size, larger blocks are halved as needed.  Layer: heap.
#include "meta.h"

#include <string.h>

#include "../base/track.h"

typedef struct meta_block_s {
  struct meta_block_s* next;
} meta_block_t;

static meta_block_t* meta_lists[MI_META_SHIFT_MAX + 1]; // of free blocks, by the shift of their size

static void meta_push(void* p, unsigned shift) {
  meta_block_t* block = (meta_block_t*)p;
  block->next = meta_lists[shift];
  meta_lists[shift] = block;
}

static void* meta_pop(unsigned shift) {
  meta_block_t* block = meta_lists[shift];
  meta_lists[shift] = block->next;
  return block;
}

// Slices for at least one block of the size.
static bool meta_fetch(unsigned shift) {
  unsigned run_shift = (unsigned)mi_max(shift, MI_SLICE_SHIFT);
  mi_run_t run = _mi_slices_alloc((size_t)1 << (run_shift - MI_SLICE_SHIFT), 1, MI_CHUNK_META, MI_ARENA_ANY);
  if (run.region == NULL) return false;
  char* start = _mi_region_slice_start(run.region, run.slice);
  if (MI_TRACK) mi_track_readable(start, (size_t)1 << run_shift);
  meta_push(start, run_shift);
  return true;
}

void* _mi_meta_alloc(unsigned shift) {
  unsigned have = shift;
  if (shift > MI_META_SHIFT_MAX) return NULL;
  while (have <= MI_META_SHIFT_MAX && meta_lists[have] == NULL) have++;
  if (have > MI_META_SHIFT_MAX) {
    if (!meta_fetch(shift)) return NULL;
    have = (unsigned)mi_max(shift, MI_SLICE_SHIFT);
  }
  char* p = (char*)meta_pop(have);
  while (have > shift) {
    have--;
    meta_push(p + ((size_t)1 << have), have);
  }
  memset(p, 0, (size_t)1 << shift);
  return p;
}

void _mi_meta_free(void* p, unsigned shift) {
  meta_push(p, shift);
}
