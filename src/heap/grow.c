// Grown bins.  Layer: heap.
#include "grow.h"

#include "../arena/purge.h"
#include "../arena/purge_keep.h"

// What n blocks above the limit of their class count for.
static size_t grow_slices(size_t cls, size_t n) {
  return mi_div_up(n * _mi_size_class_block(cls), MI_SLICE_SIZE);
}

// May the bins of the theap, of this class and those like it, count for so much more?
static bool grow_may(const mi_theap_t* theap, size_t cls, size_t n_slices) {
  if (_mi_grow_is_alone(cls)) return theap->grown.n_alone + n_slices <= MI_GROW_ALONE_SLICES;
  return theap->grown.n_slices - theap->grown.n_alone + n_slices <= MI_GROW_SLICES;
}

// The bins of the theap count for n slices more.
static void grow_count(mi_theap_t* theap, size_t cls, size_t n_slices) {
  theap->grown.n_slices += n_slices;
  if (_mi_grow_is_alone(cls)) theap->grown.n_alone += n_slices;
}

void _mi_grow_bin(mi_theap_t* theap, size_t cls) {
  mi_class_state_t* state = &theap->classes[cls];
  size_t            limit = _mi_grow_limit(theap, cls);
  size_t            n_more = mi_min(limit, MI_GROW_BLOCKS - limit);
  state->has_overflowed = false;
  if (n_more == 0) return;
  size_t n_slices = grow_slices(cls, state->n_grown + n_more) - grow_slices(cls, state->n_grown);
  if (!grow_may(theap, cls, n_slices) || !_mi_purge_keep(n_slices)) return;
  grow_count(theap, cls, n_slices);
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
  grow_count(theap, cls, 0 - n_slices);
  _mi_purge_unkeep(n_slices);
}

void _mi_grow_undo_all(mi_theap_t* theap) {
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) _mi_grow_undo(theap, cls);
}
