// Tables: a list for each size, larger ones are halved as needed.  Slabs: slices, cut from the front.  Layer: heap.
#include "meta.h"

#include <string.h>

#include "../arena/slices.h"
#include "../base/track.h"

// n slices that are zero, NULL when out of memory.
static void* meta_slices(size_t n) {
  mi_run_t run = _mi_slices_alloc(n, 1, MI_REQUEST_META, MI_ARENA_ANY);
  if (run.region == NULL) return NULL;
  char* start = _mi_region_slice_start(run.region, run.slice);
  if (MI_TRACK) mi_track_readable(start, n * MI_SLICE_SIZE);
  if (!run.is_zero) memset(start, 0, n * MI_SLICE_SIZE);
  return start;
}

void* _mi_meta_carve(mi_slab_t* slab, size_t size) {
  if (slab->left < size) {
    char* start = (char*)meta_slices(1);
    if (start == NULL) return NULL;
    if (MI_TRACK) _mi_prim_hide(start, MI_SLICE_SIZE); // whole: what is hidden are OS pages, and objects share those
    slab->next = start;
    slab->left = MI_SLICE_SIZE;
  }
  char* p = slab->next;
  slab->next += size;
  slab->left -= size;
  return p;
}

typedef struct meta_block_s {
  struct meta_block_s* next;
} meta_block_t;

static meta_block_t* meta_lists[MI_META_SHIFT_MAX + 1]; // of free tables, by the shift of their size

void _mi_meta_free(void* p, unsigned shift) {
  meta_block_t* block = (meta_block_t*)p;
  block->next = meta_lists[shift];
  meta_lists[shift] = block;
}

static void* meta_pop(unsigned shift) {
  meta_block_t* block = meta_lists[shift];
  meta_lists[shift] = block->next;
  return block;
}

void* _mi_meta_alloc(unsigned shift) {
  unsigned have = shift;
  if (shift > MI_META_SHIFT_MAX) return NULL;
  while (have <= MI_META_SHIFT_MAX && meta_lists[have] == NULL) have++;
  if (have > MI_META_SHIFT_MAX) {
    have = (unsigned)mi_max(shift, MI_SLICE_SHIFT);
    void* slices = meta_slices((size_t)1 << (have - MI_SLICE_SHIFT));
    if (slices == NULL) return NULL;
    _mi_meta_free(slices, have);
  }
  char* p = (char*)meta_pop(have);
  while (have > shift) {
    have--;
    _mi_meta_free(p + ((size_t)1 << have), have);
  }
  memset(p, 0, (size_t)1 << shift);
  return p;
}
