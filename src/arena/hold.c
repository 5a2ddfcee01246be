// Whether free memory is held.  Layer: arena.  See hold.h.
#include "hold.h"

#include "busy.h"
#include "chunk.h"
#include "place.h"
#include "purge.h"
#include "swing.h"

#define HOLD_EARLY_SLICES ((12 * MI_MiB) / MI_SLICE_SIZE) // HD4 (decision 52)

static mi_atomic(int64_t) hold_until; // 0: nothing is held, or there is a thread
static mi_busy_t          hold_busy;
static mi_atomic(bool)    hold_is_busy = mi_atomic_init(true); // HD4: in the last interval, and before the first

bool _mi_hold_is(void) {
  int64_t until = mi_load_relaxed(&hold_until);
  return mi_unlikely(until != 0) && _mi_prim_clock_ms() < until;
}

bool _mi_hold_begin(size_t n_mistaken) {
  if (mi_likely(n_mistaken < HOLD_EARLY_SLICES) || !mi_load_relaxed(&hold_is_busy)) return false;
  int64_t now = _mi_prim_clock_ms();
  _mi_lock_acquire(&_mi_region_purge_lock);
  _mi_recall_begin(&_mi_purge_recall, now, _mi_place_fresh());
  mi_store_relaxed(&hold_until, _mi_purge_recall.until);
  bool is_held = _mi_recall_holds(&_mi_purge_recall, now);
  _mi_lock_release(&_mi_region_purge_lock);
  return is_held;
}

void _mi_hold_end(void) {
  _mi_lock_acquire(&_mi_region_purge_lock);
  bool holds = _mi_recall_holds(&_mi_purge_recall, _mi_prim_clock_ms());
  _mi_recall_forget(&_mi_purge_recall);
  mi_store_relaxed(&hold_until, (int64_t)0);
  _mi_lock_release(&_mi_region_purge_lock);
  if (holds && _mi_chunk_purgeable() > 0) _mi_purge_note(_mi_purge_slices(SIZE_MAX));
}

void _mi_hold_look(int64_t now) {
  _mi_busy_look(&hold_busy, now);
}

// HD3: an interval is over; the first one begins with the process.
static bool hold_was_busy(int64_t last, int64_t now) {
  bool is_busy = _mi_busy_was(&hold_busy, now - last, _mi_prim_cpu_time_ms());
  mi_store_relaxed(&hold_is_busy, is_busy || last == 0);
  return is_busy;
}

mi_hold_interval_t _mi_hold_end_interval(int64_t last, int64_t now, bool has_thread) {
  mi_recall_t*       recall = &_mi_purge_recall;
  mi_hold_interval_t seen;
  _mi_lock_acquire(&_mi_region_purge_lock);
  if (!has_thread && !hold_was_busy(last, now)) _mi_recall_forget(recall);
  seen.n_low = _mi_chunk_purgeable_low(&seen.swing);
  size_t n_used = mi_max(_mi_swing_take_high(), _mi_place_n_taken());
  seen.n_unheld = _mi_recall_round(recall, now, seen.n_low, n_used, _mi_place_fresh());
  _mi_swing_set_most(mi_max(recall->most[0], recall->most[1]));
  int64_t interval = _mi_purge_interval();
  int64_t then = (has_thread ? now : now + interval); // a hold that ends before the next round is none
  seen.is_held = (interval > 0 && _mi_recall_holds(recall, then));
  mi_store_relaxed(&hold_until, seen.is_held && !has_thread ? recall->until : 0);
  _mi_lock_release(&_mi_region_purge_lock);
  return seen;
}
