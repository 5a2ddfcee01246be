// Trimming: emptying bins, and letting go of pages.  Layer: heap.  trim.h has the invariants.
#include "trim.h"

#include "../support/stat.h"
#include "drain.h"
#include "gaps.h"
#include "grow.h"
#include "queue.h"

// How many bins are looked at each time, and after how many looks in vain a bin is unused, at least (TI1).
#define TRIM_BINS   2
#define TRIM_UNUSED 2

// A class whose bin was filled so many times is used in turn with others (TI3), and not only by a buffer that becomes larger and larger.
#define TRIM_IN_TURN 4

// TI3
#define TRIM_WIDE_MIN   MI_MiB
#define TRIM_WIDE_SHARE 4
#define TRIM_ALL_SHARE  16

// TI5
#define TRIM_WIDE_ALL (8 * MI_MiB)

// How many classes are looked at for grown bins when a page is made.
#define TRIM_GROWN 8

// After this many looks at unused bins a round may be due (background.h).
#define TRIM_PER_POLL 8

// The pages that a thread lets go of in one slow path: 64 MiB of small blocks, 0.2 ms.  A thread whose bins have all that it needs takes
// a slow path only when its bins were closed.
#define TRIM_PAGES 1024

// Was the first block of the bin written all over, as far as three words tell?  Then it is resident.  (Blocks that are filled are,
// and those with tags cannot be read.)
static bool trim_is_written(const mi_bin_t* bin, size_t cls) {
  if (MI_TRACK || MI_FILL || MI_TAGS) return true;
  const uint64_t* words = (const uint64_t*)(const void*)bin->head;
  size_t          n = _mi_size_class_block(cls) / sizeof(*words) / 4;
  return (words[n] != 0) + (words[2 * n] != 0) + (words[3 * n] != 0) >= 2;
}

// A program that uses k wide classes at random wants each of them once in k requests, about, so a bin of which fewer looks see nothing is
// wanted again soon, if it has been before.  But what is resident might serve others meanwhile (TI3).
static bool trim_waits(const mi_theap_t* theap, size_t cls) {
  const mi_class_state_t* state = &theap->classes[cls];
  bool                    is_in_turn = (cls >= MI_CLASS_WIDE && state->n_fills >= TRIM_IN_TURN);
  bool                    is_early = (state->n_unused < mi_popcount32(theap->trim.wide_classes) / 2);
  return is_in_turn && is_early && !trim_is_written(&theap->bins[cls], cls);
}

static void trim_bin(mi_theap_t* theap, size_t cls, bool is_peak) {
  mi_bin_t*         bin = &theap->bins[cls];
  mi_class_state_t* state = &theap->classes[cls];
  if (bin->head == NULL || bin->slots > state->slots_seen) {
    state->n_unused = 0;
  }
  else if (++state->n_unused >= TRIM_UNUSED && (is_peak || !trim_waits(theap, cls))) {
    _mi_grow_undo(theap, cls);
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
  size_t first = theap->trim.n_looks++ * TRIM_BINS;
  for (size_t i = 0; i < TRIM_BINS; i++) trim_bin(theap, (first + i) % MI_CLASS_COUNT, false);
  trim_drain(theap, &theap->drains[theap->trim.n_looks % MI_DRAINS]);
  _mi_trim_by_round(theap);
  theap->has_trimmed = (theap->trim.n_looks % TRIM_PER_POLL == 0);
}

void _mi_trim_grown(mi_theap_t* theap) {
  for (size_t i = 0; i < TRIM_GROWN; i++) {
    size_t cls = theap->trim.next_grown++ % MI_CLASS_COUNT;
    if (theap->classes[cls].n_grown > 0) trim_bin(theap, cls, false);
  }
}

// Bytes in the bin, between two calls of its thread (H7).
static size_t trim_bin_bytes(const mi_theap_t* theap, size_t cls) {
  if (theap->bins[cls].head == NULL) return 0;
  return (size_t)(theap->classes[cls].book.total - theap->bins[cls].slots) * _mi_size_class_block(cls);
}

static void trim_wide_bins(mi_theap_t* theap, uint32_t classes, bool is_peak) {
  for (; classes != 0; classes &= classes - 1) trim_bin(theap, MI_CLASS_WIDE + mi_ctz32(classes), is_peak);
}

void _mi_trim_wide(mi_theap_t* theap, size_t for_cls) {
  size_t   n_idle = 0, n_held = 0;
  uint32_t classes = theap->trim.wide_classes;
  if (for_cls < MI_CLASS_WIDE) return;
  theap->trim.wide_classes = classes | (uint32_t)1 << (for_cls - MI_CLASS_WIDE);
  for (uint32_t rest = classes; rest != 0; rest &= rest - 1) {
    size_t cls = MI_CLASS_WIDE + mi_ctz32(rest);
    n_held += theap->classes[cls].n_pages * _mi_size_class_info[cls].n_slices * MI_SLICE_SIZE;
    n_idle += trim_bin_bytes(theap, cls);
  }
  if (n_idle <= mi_max(TRIM_WIDE_MIN, n_held / TRIM_WIDE_SHARE)) return;
  if (n_idle <= (size_t)mi_load_relaxed(&_mi_stat_live.page_committed.current) / TRIM_ALL_SHARE) return;
  trim_wide_bins(theap, classes, false);
}

void _mi_trim_at_peak(mi_theap_t* theap) {
  trim_wide_bins(theap, theap->trim.wide_classes, true);
}

mi_noinline bool _mi_trim_has_part(mi_theap_t* theap, size_t cls, size_t n_threads) {
  size_t n_idle = _mi_size_class_block(cls);
  theap->trim.wide_classes |= (uint32_t)1 << (cls - MI_CLASS_WIDE);
  for (uint32_t rest = theap->trim.wide_classes; rest != 0; rest &= rest - 1)
    n_idle += trim_bin_bytes(theap, MI_CLASS_WIDE + mi_ctz32(rest));
  return n_idle <= TRIM_WIDE_ALL / n_threads;
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

static void trim_empty_bin(mi_theap_t* theap, size_t cls) {
  _mi_grow_undo(theap, cls);
  _mi_drain_end_class(theap, cls);
  _mi_outbox_return_bin(theap, cls);
}

void _mi_trim_for_run(mi_theap_t* theap) {
  uint32_t classes = theap->trim.wide_classes;
  if (classes == 0) return;
  _mi_presence_enter(theap);
  for (; classes != 0; classes &= classes - 1) trim_empty_bin(theap, MI_CLASS_WIDE + mi_ctz32(classes));
  _mi_presence_leave(theap);
}

static void trim_class(mi_theap_t* theap, size_t cls, size_t* n) {
  trim_empty_bin(theap, cls);
  if (mi_load_relaxed(&_mi_registry_has_others)) _mi_queue_release(theap, cls, n);
  else _mi_queue_delete_empty(theap, cls);
}

mi_cold void _mi_trim_all(mi_theap_t* theap) {
  uint32_t round = mi_load_relaxed(&_mi_event_round);
  size_t   n = TRIM_PAGES;
  bool     has_others = mi_load_relaxed(&_mi_registry_has_others);
  _mi_queue_note_left(theap);
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
  if (has_others) {
    _mi_gaps_collect(theap, TRIM_PAGES);
    _mi_outbox_flush(theap); // a few blocks keep as many pages
  }
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) theap->classes[cls].slots_then = trim_slots(theap, cls);
  theap->trim.round = round;
}
