// What a free gives back where the library has no thread.  Layer: arena.  See purge_by_amount.h.
#include "purge_by_amount.h"

#include "chunk.h"
#include "give.h"
#include "hold.h"
#include "purge.h"
#include "purge_by_clock.h"
#include "swing.h"

#define AMOUNT_SHARE        16 // AM1: one part in so many of the memory that was freed
#define AMOUNT_HELD         4  // AM3: this many times what is in use may stay,
#define AMOUNT_HELD_MOST    2  // ... or, with what is in use, this many times the most that was used (decision 53),
#define AMOUNT_HELD_PART    8  // ... if one part in so many of that most is in use, or to give back is dear;
#define AMOUNT_HELD_MORE    4 // ... and what was given back by mistake, up to one part in so many of that (decision 60)
#define AMOUNT_SPLIT_SLICES MI_PURGE_MIN_SLICES // AM4: for so many the parts wait a millisecond

static mi_atomic(int64_t) amount_excess_since; // AM4: 0: no more is free than the allowance

size_t _mi_purge_by_amount_allowance(size_t n_mistaken) {
  size_t n = mi_max(_mi_swing_n_freed() / AMOUNT_SHARE, _mi_swing_last());
  size_t most = mi_min(mi_max(MI_PURGE_MAX_SLICES, _mi_swing_n_used()), _mi_purge_retained());
  return mi_clamp(n + n_mistaken, MI_PURGE_MIN_SLICES, most);
}

// AM3
static size_t amount_allowance_held(size_t n_used, size_t n_mistaken) {
  size_t n = mi_max(MI_PURGE_MAX_SLICES, AMOUNT_HELD * n_used);
  size_t n_most = _mi_swing_n_most(n_used);
  if (AMOUNT_HELD_PART * n_used >= n_most || _mi_swing_is_dear(n_mistaken))
    n = mi_max(n, AMOUNT_HELD_MOST * n_most - n_used);
  return mi_min(n + mi_min(n_mistaken, n / AMOUNT_HELD_MORE), _mi_purge_retained());
}

// AM4: is it time to split huge pages for n slices?
static bool amount_may_split(size_t n) {
  int64_t now = _mi_prim_clock_ms(), since = mi_load_relaxed(&amount_excess_since);
  if (since == 0) mi_store_relaxed(&amount_excess_since, now);
  return since != 0 && now - since > (int64_t)(n / AMOUNT_SPLIT_SLICES);
}

// No more than n slices may stay, and only `stay` do, so that the next free does not ask again.
static void amount_give_down_to(size_t n, size_t stay, bool at_once) {
  stay -= mi_min(stay, _mi_purge_n_resting());
  _mi_swing_begin_giving();
  bool   is_refused = false;
  size_t given = _mi_give_slices(&_mi_purge_recall, SIZE_MAX, stay, at_once, &is_refused);
  size_t n_backed = _mi_purge_n_backed();
  if (!at_once && n_backed > n && amount_may_split(n_backed - n))
    given += _mi_give_slices(&_mi_purge_recall, SIZE_MAX, stay, true, &is_refused);
  _mi_swing_note_given(given);
  if (given > 0 || is_refused) _mi_purge_note(given); // or there was nothing that may go now
}

static void amount_give_all(void) {
  size_t given = _mi_purge_slices(SIZE_MAX);
  if (given > 0 || _mi_chunk_purgeable() >= MI_PURGE_MIN_SLICES) _mi_purge_note(given);
}

static void amount_give_excess(size_t retained) {
  size_t n_used = _mi_swing_note_used();
  // First: what was used again long after it was given back was no mistake.
  _mi_purge_by_clock(false);
  size_t n_mistaken = _mi_swing_n_mistaken();
  bool   is_held = _mi_hold_is() || _mi_hold_begin(n_mistaken);
  size_t may_stay = (is_held ? amount_allowance_held(n_used, n_mistaken) : _mi_purge_by_amount_allowance(n_mistaken));
  size_t stay = (is_held ? may_stay - MI_PURGE_MIN_SLICES : may_stay / 2);
  if (_mi_purge_n_backed() > may_stay) amount_give_down_to(may_stay, stay, may_stay >= retained);
  else if (mi_load_relaxed(&amount_excess_since) != 0) mi_store_relaxed(&amount_excess_since, (int64_t)0);
}

void _mi_purge_by_amount(void) {
  if (mi_likely(_mi_chunk_purgeable() < MI_PURGE_MIN_SLICES)) return;
  int64_t interval = _mi_purge_interval();
  bool    by_clock = (interval < 0 || (interval > 0 && _mi_purge_has_thread()));
  size_t  retained = _mi_purge_retained();
  if ((by_clock && mi_likely(_mi_purge_n_backed() <= retained)) || _mi_purge_is_refused()) return;
  if (by_clock) amount_give_down_to(retained, retained / 2, true);
  else if (interval == 0) amount_give_all();
  else amount_give_excess(retained);
}
