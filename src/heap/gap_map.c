// The maps of gap pages.  Layer: heap.
#include "gap_map.h"

#include "meta.h"

// Maps of a slice, and as many slices as extended can number.
#define GAP_MAP_SLAB  (MI_SLICE_SIZE / sizeof(mi_gap_map_t))
#define GAP_MAP_SLABS (UINT16_MAX / GAP_MAP_SLAB)

mi_lock_t _mi_gap_map_lock;

// Maps by their numbers, a slice of them at a time; those that no page has.
static mi_mostly_unused mi_gap_map_t* gap_map_slabs[GAP_MAP_SLABS];
static mi_slab_t                      gap_map_slab;
static mi_atomic(size_t)              gap_map_n; // release: whoever sees a number finds its slab
static mi_gap_map_t*                  gap_map_unused;
static mi_atomic(bool)                gap_map_is_at_end; // GM1: there was none, and no number for another

// ---- maps ---------------------------------------------------------------------------------------------------------------

mi_gap_map_t* _mi_gap_map_at(size_t i) {
  return &gap_map_slabs[i / GAP_MAP_SLAB][i % GAP_MAP_SLAB];
}

// The numbers of unused maps are where the first bits would be.
static bool gap_map_carve(size_t* i) {
  size_t         n = mi_load_relaxed(&gap_map_n);
  mi_gap_map_t** slab = &gap_map_slabs[n / GAP_MAP_SLAB];
  if (n >= GAP_MAP_SLABS * GAP_MAP_SLAB) {
    mi_store_relaxed(&gap_map_is_at_end, true);
    return false;
  }
  if (*slab == NULL) *slab = (mi_gap_map_t*)_mi_meta_carve(&gap_map_slab, GAP_MAP_SLAB * sizeof(mi_gap_map_t));
  if (*slab == NULL) return false;
  mi_store_release(&gap_map_n, n + 1);
  *i = n;
  return true;
}

bool _mi_gap_map_is(size_t i) {
  return i < mi_load_acquire(&gap_map_n);
}

bool _mi_gap_map_new(size_t* i) {
  bool ok = true;
  _mi_lock_acquire(&_mi_gap_map_lock);
  mi_gap_map_t* map = gap_map_unused;
  if (map != NULL) {
    *i = (size_t)mi_load_relaxed(&map->starts[0]);
    gap_map_unused = map->next;
  }
  else {
    ok = gap_map_carve(i);
  }
  _mi_lock_release(&_mi_gap_map_lock);
  return ok;
}

void _mi_gap_map_free(size_t i) {
  mi_gap_map_t* map = _mi_gap_map_at(i);
  _mi_lock_acquire(&_mi_gap_map_lock);
  map->page = NULL;
  map->next = gap_map_unused;
  mi_store_relaxed(&map->starts[0], (uint64_t)i);
  gap_map_unused = map;
  mi_store_relaxed(&gap_map_is_at_end, false);
  _mi_lock_release(&_mi_gap_map_lock);
}

bool _mi_gap_map_none_left(void) {
  return mi_load_relaxed(&gap_map_is_at_end);
}

// ---- bits ---------------------------------------------------------------------------------------------------------------

size_t _mi_gap_map_find_after(const mi_atomic(uint64_t)* words, size_t i) {
  for (size_t w = i / 64 + 1; w < MI_GAP_WORDS; w++) {
    uint64_t bits = mi_load_relaxed((mi_atomic(uint64_t)*)&words[w]);
    if (bits != 0) return w * 64 + mi_ctz64(bits);
  }
  return MI_GAP_UNITS;
}

size_t _mi_gap_map_find_before(const mi_atomic(uint64_t)* words, size_t i) {
  size_t   w = (i - 1) / 64;
  uint64_t bits = mi_load_relaxed((mi_atomic(uint64_t)*)&words[w]) << (63 - (i - 1) % 64);
  if (bits != 0) return i - 1 - (63 - mi_msb64(bits));
  while (bits == 0) bits = mi_load_relaxed((mi_atomic(uint64_t)*)&words[--w]);
  return w * 64 + mi_msb64(bits);
}
