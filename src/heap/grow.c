// Grown bins.  Layer: heap.
#include "grow.h"

#include "../arena/purge.h"

// What n blocks above the limit of their class count for.
static size_t grow_slices(size_t cls, size_t n) {
  return mi_div_up(n * _mi_size_class_block(cls), MI_SLICE_SIZE);
}

void _mi_grow_bin(mi_theap_t* theap, size_t cls) {
  mi_class_state_t* state = &theap->classes[cls];
  size_t            limit = _mi_grow_limit(theap, cls);
  size_t            n_more = mi_min(limit, MI_GROW_BLOCKS - limit);
  state->has_overflowed = false;
  if (n_more == 0) return;
  size_t n_slices = grow_slices(cls, state->n_grown + n_more) - grow_slices(cls, state->n_grown);
  if (theap->n_grown_slices + n_slices > MI_GROW_SLICES || !_mi_purge_keep(n_slices)) return;
  theap->n_grown_slices += n_slices;
  state->n_grown = (uint16_t)(state->n_grown + n_more);
}

void _mi_grow_undo(mi_theap_t* theap, size_t cls) {
  mi_class_state_t* state = &theap->classes[cls];
  state->has_overflowed = false;
  if (mi_likely(state->n_grown == 0)) return;
  size_t n_slices = grow_slices(cls, state->n_grown);
  state->n_grown = 0;
  int32_t limit = (int32_t)_mi_grow_limit(theap, cls);
  if (theap->bins[cls].limit > limit) theap->bins[cls].limit = limit;
  theap->n_grown_slices -= n_slices;
  _mi_purge_unkeep(n_slices);
}

void _mi_grow_undo_all(mi_theap_t* theap) {
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) _mi_grow_undo(theap, cls);
}
