// How the memory that a program uses goes up and down.  Layer: arena.  See swing.h.
#include "swing.h"

#include "chunk.h"
#include "dear.h"
#include "place.h"
#include "purge.h"

static mi_atomic(size_t) swing_freed_before;  // slices that were freed, but so long ago that they do not count any more
static mi_atomic(size_t) swing_last;          // SW3
static mi_atomic(size_t) swing_reused_before; // slices that were used again before this interval began
static mi_atomic(size_t) swing_n_given;       // slices that went back by the amount in this interval
static mi_atomic(size_t) swing_taken_before;  // slices ever taken that were not backed, before the first of these went
static mi_atomic(size_t) swing_n_waiting;     // slices that wait for their next use
static mi_atomic(size_t) swing_waiting_high;  // the most of those in this interval
static mi_atomic(size_t) swing_n_waited;      // slices that ever began to wait
static mi_atomic(size_t) swing_n_resumed;     // slices of this interval that waited and were used again
static mi_atomic(size_t) swing_n_high;        // SW4: the most in this interval,
static mi_atomic(size_t) swing_n_most;        // ... and in the last two to four seconds
static mi_dear_t         swing_dear;          // SW5: with what went by mistake before this interval

size_t _mi_swing_n_freed(void) {
  size_t n = _mi_chunk_freed() + mi_load_relaxed(&swing_n_waited) - mi_load_relaxed(&swing_freed_before);
  return n > PTRDIFF_MAX ? 0 : n; // the sums wrap; and a thread that was held up may count a round late
}

size_t _mi_swing_n_mistaken(void) {
  size_t given = mi_load_relaxed(&swing_n_given);
  return given == 0 ? 0 : mi_min(given, _mi_place_fresh() - mi_load_relaxed(&swing_taken_before));
}

size_t _mi_swing_last(void) {
  return mi_load_relaxed(&swing_last);
}

void _mi_swing_begin_giving(void) {
  if (mi_load_relaxed(&swing_n_given) == 0) mi_store_relaxed(&swing_taken_before, _mi_place_fresh());
}

void _mi_swing_note_given(size_t n) {
  mi_fetch_add_relaxed(&swing_n_given, n);
}

void _mi_swing_wait(size_t n) {
  size_t n_waiting = mi_load_relaxed(&swing_n_waiting) + n;
  mi_store_relaxed(&swing_n_waiting, n_waiting);
  mi_store_relaxed(&swing_n_waited, mi_load_relaxed(&swing_n_waited) + n);
  if (n_waiting > mi_load_relaxed(&swing_waiting_high)) mi_store_relaxed(&swing_waiting_high, n_waiting);
}

void _mi_swing_end_wait(size_t n, bool is_used) {
  mi_store_relaxed(&swing_n_waiting, mi_load_relaxed(&swing_n_waiting) - n);
  if (is_used) mi_store_relaxed(&swing_n_resumed, mi_load_relaxed(&swing_n_resumed) + n);
}

size_t _mi_swing_n_used(void) {
  size_t n_taken = _mi_place_n_taken();
  return n_taken - mi_min(n_taken, _mi_purge_n_resting());
}

size_t _mi_swing_note_used(void) {
  size_t n = _mi_swing_n_used();
  if (n > mi_load_relaxed(&swing_n_high)) mi_store_relaxed(&swing_n_high, n);
  return n;
}

size_t _mi_swing_take_high(void) {
  return mi_exchange_acq_rel(&swing_n_high, (size_t)0);
}

void _mi_swing_set_most(size_t n) {
  mi_store_relaxed(&swing_n_most, n);
}

size_t _mi_swing_n_most(size_t n_used) {
  return mi_max(n_used, mi_max(mi_load_relaxed(&swing_n_high), mi_load_relaxed(&swing_n_most)));
}

bool _mi_swing_is_dear(size_t n_mistaken) {
  return _mi_dear_is(&swing_dear, n_mistaken, _mi_prim_clock_ms());
}

// Of the interval that ends.
static size_t swing_of_waiting(void) {
  size_t n_high = mi_exchange_acq_rel(&swing_waiting_high, mi_load_relaxed(&swing_n_waiting));
  return mi_min(n_high, mi_exchange_acq_rel(&swing_n_resumed, (size_t)0));
}

void _mi_swing_begin(size_t swing, bool was_short, int64_t now) {
  size_t n_freed = _mi_swing_n_freed(), n_reused = _mi_place_reused() - mi_load_relaxed(&swing_reused_before);
  swing = mi_min(swing, n_reused) + swing_of_waiting();
  size_t n_mistaken = (was_short ? _mi_swing_n_mistaken() : 0);
  _mi_dear_pay(&swing_dear, n_mistaken, now);
  mi_store_relaxed(&swing_last, was_short ? swing + n_mistaken : 0);
  mi_fetch_add_relaxed(&swing_reused_before, n_reused);
  mi_store_relaxed(&swing_n_given, (size_t)0);
  mi_fetch_add_relaxed(&swing_freed_before, was_short ? n_freed / 2 : n_freed);
}
