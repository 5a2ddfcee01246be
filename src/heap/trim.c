// Emptying bins, and letting go of pages.  Layer: heap.
#include "trim.h"

#include "drain.h"
#include "queue.h"

// How many bins are looked at each time, and how often nothing was taken until one is unused (TI1).
#define TRIM_BINS   2
#define TRIM_UNUSED 2

// How often that is the occasion for a round (background.h).
#define TRIM_PER_POLL 8

// So many pages a thread lets go of at one slow path, 64 MiB of small blocks: 0.2 ms.  One whose bins have all that it needs
// comes by no more often than its bins are closed.
#define TRIM_PAGES 1024

static void trim_bin(mi_theap_t* theap, size_t cls) {
  mi_bin_t*         bin = &theap->bins[cls];
  mi_class_state_t* state = &theap->classes[cls];
  if (bin->head == NULL || bin->slots > state->slots_seen) {
    state->n_unused = 0;
  }
  else if (++state->n_unused >= TRIM_UNUSED) {
    bin->limit /= 2;
    _mi_drain_end_class(theap, cls);
    _mi_outbox_return_bin(theap, cls);
  }
  state->slots_seen = bin->slots;
}

static void trim_drain(mi_theap_t* theap, mi_drain_t* drain) {
  if (drain->slots_then == drain->bin.slots) _mi_drain_end(theap, drain);
  drain->slots_then = drain->bin.slots;
}

void _mi_trim_some(mi_theap_t* theap) {
  size_t first = theap->n_trims++ * TRIM_BINS;
  for (size_t i = 0; i < TRIM_BINS; i++) trim_bin(theap, (first + i) % MI_CLASS_COUNT);
  trim_drain(theap, &theap->drains[theap->n_trims % MI_DRAINS]);
  _mi_trim_by_round(theap);
  theap->has_trimmed = (theap->n_trims % TRIM_PER_POLL == 0);
}

// Of the bin that takes what is freed.
static int32_t trim_slots(const mi_theap_t* theap, size_t cls) {
  return theap->return_offset != 0 ? theap->returns[cls].slots : theap->bins[cls].slots;
}

// Neither was the bin filled nor anything taken from it or put into it since the round before the last.
static bool trim_is_unused(const mi_theap_t* theap, size_t cls, uint32_t round) {
  const mi_class_state_t* state = &theap->classes[cls];
  return round - state->round >= 2 && trim_slots(theap, cls) == state->slots_then;
}

static void trim_class(mi_theap_t* theap, size_t cls, size_t* n) {
  _mi_drain_end_class(theap, cls);
  _mi_outbox_return_bin(theap, cls);
  if (mi_load_relaxed(&_mi_registry_has_others)) _mi_queue_release(theap, cls, n);
  else _mi_queue_delete_empty(theap, cls);
}

mi_cold void _mi_trim_all(mi_theap_t* theap) {
  uint32_t round = mi_load_relaxed(&_mi_event_round);
  size_t   n = TRIM_PAGES;
  bool     has_others = mi_load_relaxed(&_mi_registry_has_others);
  for (size_t cls = 0; cls < MI_CLASS_COUNT && n > 0; cls++) {
    if (trim_is_unused(theap, cls, round)) trim_class(theap, cls, &n);
  }
  if (n == 0) return; // the next slow path goes on
  for (size_t cls = 0; cls < MI_CLASS_COUNT && has_others; cls++) {
    size_t n_pages = TRIM_PAGES;
    if (trim_is_unused(theap, cls, round)) continue;
    _mi_drain_end_class(theap, cls);
    _mi_queue_collect(theap, cls, &n_pages);
  }
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) theap->classes[cls].slots_then = trim_slots(theap, cls);
  theap->round = round;
}
