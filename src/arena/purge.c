// When freed memory goes back to the system.  Layer: arena.  See purge.h for the policy.
#include "purge.h"

#include "../support/option.h"
#include "../support/stat.h"
#include "commit.h"
#include "hole.h"
#include "limit.h"
#include "mapped.h"
#include "place.h"
#include "recall.h"
#include "shrink.h"

#define PURGE_MIN_SLICES     (MI_MiB / MI_SLICE_SIZE)        // stay in any case: less is not worth the system calls
#define PURGE_MAX_SLICES     ((32 * MI_MiB) / MI_SLICE_SIZE) // PG1
#define PURGE_SHARE          16
#define PURGE_HELD           4   // PG6: so many times what is in use, if that is more than the other
#define PURGE_MISTAKE_MS     200 // who allocates again what was given back does so soon, or it was no mistake
#define PURGE_HOLES          256 // so many chunks with holes are looked at in a round
// Where the system takes nothing, the next attempt by the amount is made so much later, twice as long after each that fails.
#define PURGE_REFUSED_MS_MIN 100
#define PURGE_REFUSED_MS_MAX 5000

static mi_atomic(bool)    purge_has_thread;
static mi_atomic(size_t)  purge_retained = SIZE_MAX; // PG5
static mi_atomic(size_t)  purge_n_kept;              // PG2
static mi_atomic(size_t)  purge_n_waiting;           // of these, slices that wait for their next use
static mi_atomic(size_t)  purge_waiting_high;        // the most of those in this interval
static mi_atomic(size_t)  purge_n_waited;            // slices that ever began to wait
static mi_atomic(size_t)  purge_n_resumed;           // slices of this interval that waited and were used again
static mi_atomic(size_t)  purge_freed_before;        // what does not count any more of what was ever freed
static mi_atomic(size_t)  purge_swing;               // of the last interval: what was freed and used again
static mi_atomic(size_t)  purge_reused_before;       // of what was ever used again, before this interval
static mi_atomic(size_t)  purge_n_given;             // by the amount, during this one
static mi_atomic(size_t)  purge_taken_before;        // how many slices had been taken that were not backed, before that
static mi_atomic(int64_t) purge_last_ms;             // when this interval began
static mi_atomic(int64_t) purge_held_until;          // PG6
static mi_atomic(size_t)  purge_refused_ms;          // PG4: how long to wait; 0: the system takes what it is given
static mi_atomic(int64_t) purge_refused_until;       // ... and until when
static mi_recall_t        purge_recall = MI_RECALL_INITIAL; // under the purge lock

// ---- giving slices back ---------------------------------------------------------------------------------------------

// Gives the contents of slices back that were taken for it, without the arena lock.  What the system does with memory of
// the program's is the program's choice of mapping; nor do we ask again there when it refuses.
static mi_chunk_hold_t purge_contents(mi_region_t* region, size_t slice, size_t n) {
  char*  start = _mi_region_slice_start(region, slice);
  size_t size = n * MI_SLICE_SIZE;
  if (region->commit == NULL && _mi_option_get_fast(mi_option_purge_decommits) == 0 &&
      _mi_prim_discard(start, size) == 0)
    return MI_CHUNK_HOLDS_STALE;
  if (region->uncommitted != NULL) {
    bool ok = _mi_commit_undo(region, slice, n);
    if (region->commit != NULL) return MI_CHUNK_HOLDS_STALE;
    return ok ? MI_CHUNK_HOLDS_ZERO : MI_CHUNK_HOLDS_DIRTY;
  }
  int err = _mi_prim_purge(start, size);
  if (region->origin == MI_REGION_GIVEN) return MI_CHUNK_HOLDS_STALE;
  return err == 0 ? MI_CHUNK_HOLDS_ZERO : MI_CHUNK_HOLDS_DIRTY;
}

// False if the system refuses.
static bool purge_run(mi_region_t* region, size_t slice, size_t n) {
  mi_chunk_hold_t hold = purge_contents(region, slice, n);
  _mi_slices_put(region, slice, n, hold);
  return hold != MI_CHUNK_HOLDS_DIRTY;
}

#define PURGE_BATCH 8 // chunks per system call: so much is missing from the arena meanwhile, and may be opened anew

static bool purge_wants(const mi_region_t* region, size_t i) {
  return _mi_chunk_is_free(region, i) && region->chunks[i].dirty_bits != 0;
}

// Takes wholly free, dirty chunks: one, and those next to it, so that one call to the system is made
// for up to PURGE_BATCH of them, with `most` dirty slices or a few more.  *first is the lowest; returns how many there are.
static size_t purge_take_free(mi_region_t* region, size_t most, size_t* first, size_t* n_dirty) {
  size_t i = _mi_chunk_most_backed(region, MI_CHUNK_NONE);
  if (i == SIZE_MAX) return 0;
  size_t end = i + 1;
  *n_dirty = mi_popcount32(region->chunks[i].dirty_bits);
  while (end - i < PURGE_BATCH && *n_dirty < most && purge_wants(region, end))
    *n_dirty += mi_popcount32(region->chunks[end++].dirty_bits);
  while (end - i < PURGE_BATCH && *n_dirty < most && i > 0 && purge_wants(region, i - 1))
    *n_dirty += mi_popcount32(region->chunks[--i].dirty_bits);
  for (size_t c = i; c < end; c++) _mi_chunk_take(region, c, UINT32_MAX, MI_CHUNK_MIXED);
  *first = i;
  return end - i;
}

// False if there are none that are dirty.  *n_given is how many went back.
static bool purge_free_chunks(mi_region_t* region, size_t most, size_t* n_given) {
  size_t i = 0, n_dirty = 0;
  _mi_lock_acquire(&_mi_region_lock);
  size_t n = purge_take_free(region, most, &i, &n_dirty);
  _mi_lock_release(&_mi_region_lock);
  if (n == 0) return false;
  _mi_hole_close(region, i, n);
  if (purge_run(region, i * MI_CHUNK_SLICES, n * MI_CHUNK_SLICES)) *n_given = n_dirty;
  return true;
}

static void purge_bits(mi_region_t* region, size_t i, uint32_t bits, size_t* n_given) {
  while (bits != 0) {
    size_t at = mi_ctz32(bits);
    size_t n = mi_low_ones64(bits >> at);
    if (purge_run(region, i * MI_CHUNK_SLICES + at, n)) *n_given += n;
    bits &= ~(mi_mask32(n) << at);
  }
}

// The same for a partly used chunk: one of those that have most to give.
static bool purge_partial_chunk(mi_region_t* region, size_t* n_given) {
  size_t   i = SIZE_MAX, best = 0;
  uint32_t bits = 0;
  _mi_lock_acquire(&_mi_region_lock);
  for (mi_chunk_kind_t kind = MI_CHUNK_SMALL; kind < MI_CHUNK_KINDS; kind = (mi_chunk_kind_t)(kind + 1)) {
    uint64_t buckets = region->nonempty[MI_CHUNK_BY_BACKED][kind];
    if (buckets == 0 || mi_msb64(buckets) <= best) continue;
    best = mi_msb64(buckets);
    i = _mi_chunk_most_backed(region, kind);
  }
  if (i != SIZE_MAX) {
    bits = region->chunks[i].free_bits & region->chunks[i].dirty_bits;
    _mi_chunk_take(region, i, bits, MI_CHUNK_MIXED);
  }
  _mi_lock_release(&_mi_region_lock);
  if (bits != 0) _mi_hole_open(region, i);
  purge_bits(region, i, bits, n_given);
  return bits != 0;
}

// What the system does not take is dirty again when it is put back, and may be found again.  After so many refusals it is left
// alone: a system that refuses memory which is locked, or the call, does so with all of it.
#define PURGE_REFUSALS 8

// Returns how many slices were given back: as many as suffice, or all that are more than `stay` in all regions.
static size_t purge_region(mi_region_t* region, bool partial, size_t most, size_t stay) {
  size_t done = 0;
  int    n_refused = 0;
  for (bool any = true; any && done < most && n_refused < PURGE_REFUSALS;) {
    size_t n_given = 0;
    // Held from taking to putting back, so that a fork never finds slices in between, and nobody counts them as gone.
    _mi_lock_acquire(&_mi_region_purge_lock);
    size_t now = _mi_chunk_purgeable();
    size_t n = mi_min(most - done, now - mi_min(now, stay));
    any = n > 0 && (partial ? purge_partial_chunk(region, &n_given) : purge_free_chunks(region, n, &n_given));
    if (n_given > 0) _mi_recall_note(&purge_recall, _mi_prim_clock_ms(), n_given);
    _mi_lock_release(&_mi_region_purge_lock);
    done += n_given;
    if (n_given == 0) n_refused++;
  }
  return done;
}

// O(n) for n slices, however many there are.
static size_t purge_slices(size_t n, size_t stay) {
  size_t done = 0;
  n = mi_min(n, _mi_chunk_purgeable());
  for (int partial = 0; partial <= 1; partial++) {
    for (size_t i = 0; i < _mi_region_count() && done < n; i++) {
      if (!_mi_region_all[i].is_pinned) done += purge_region(&_mi_region_all[i], partial != 0, n - done, stay);
    }
  }
  return done;
}

size_t _mi_purge_slices(size_t n) {
  return purge_slices(n, 0);
}

void _mi_purge_init(void) {
  _mi_limit_register(&_mi_purge_slices);
}

// ---- when -----------------------------------------------------------------------------------------------------------

void _mi_purge_set_has_thread(bool has_thread) {
  mi_store_relaxed(&purge_has_thread, has_thread);
}

void _mi_purge_set_retained(size_t n) {
  mi_store_relaxed(&purge_retained, mi_max(n, PURGE_MIN_SLICES));
}

bool _mi_purge_has_thread(void) {
  return mi_load_relaxed(&purge_has_thread);
}

int64_t _mi_purge_interval(void) {
  int64_t delay = _mi_option_get_fast(mi_option_purge_delay);
  int64_t mult = _mi_option_get_fast(mi_option_arena_purge_mult);
  return delay <= 0 ? delay : delay * (mult <= 0 ? 1 : mult);
}

static size_t purge_n_freed(void) {
  size_t freed = _mi_chunk_freed() + mi_load_relaxed(&purge_n_waited), before = mi_load_relaxed(&purge_freed_before);
  return freed - mi_min(freed, before); // a thread that was held up may count a round late
}

static size_t purge_n_mistaken(void) {
  size_t given = mi_load_relaxed(&purge_n_given);
  return given == 0 ? 0 : mi_min(given, _mi_place_fresh() - mi_load_relaxed(&purge_taken_before));
}

// How many slices are taken, by pages that wait and blocks that are kept too.
static size_t purge_n_taken(void) {
  size_t n_taken = _mi_place_fresh() + _mi_place_reused(), n_freed = _mi_chunk_freed();
  return n_taken - mi_min(n_freed, n_taken);
}

static size_t purge_n_used(void) {
  size_t n_taken = purge_n_taken();
  return n_taken - mi_min(n_taken, mi_load_relaxed(&purge_n_kept));
}

// PG6
static bool purge_is_held(void) {
  int64_t until = mi_load_relaxed(&purge_held_until);
  return mi_unlikely(until != 0) && _mi_prim_clock_ms() < until;
}

// An interval is over in which so much was given back by mistake.
static void purge_hold(size_t n_mistaken) {
  int64_t now = mi_load_relaxed(&purge_last_ms), before = mi_load_relaxed(&purge_held_until);
  int64_t until = _mi_recall_until(before > now ? before : now, now, n_mistaken);
  if (until != before) mi_store_relaxed(&purge_held_until, until > now ? until : 0);
}

// What was given back by mistake, `n_mistaken`, is known for certain only when the interval has begun anew if it was over.
static size_t purge_allowance(size_t n_mistaken) {
  bool   is_held = purge_is_held();
  size_t n = mi_max(purge_n_freed() / PURGE_SHARE, mi_load_relaxed(&purge_swing)), n_used = purge_n_used();
  size_t most = mi_max(PURGE_MAX_SLICES, n_used);
  if (is_held && n_used >= PURGE_MAX_SLICES) most = PURGE_HELD * n_used;
  most = mi_min(most, mi_load_relaxed(&purge_retained));
  if (is_held) return most;
  return mi_clamp(n + n_mistaken, PURGE_MIN_SLICES, most);
}

size_t _mi_purge_n_backed(void) {
  return _mi_chunk_purgeable() + mi_load_relaxed(&purge_n_kept);
}

bool _mi_purge_has_more(void) {
  return _mi_purge_n_backed() > 0 && mi_load_relaxed(&purge_refused_ms) == 0;
}

// So many of the slices that there were to give went back.
static void purge_note(size_t n_given) {
  size_t wait = mi_load_relaxed(&purge_refused_ms);
  if (mi_likely(n_given > 0)) {
    if (wait != 0) mi_store_relaxed(&purge_refused_ms, (size_t)0);
    return;
  }
  int64_t now = _mi_prim_clock_ms();
  if (wait != 0 && now < mi_load_relaxed(&purge_refused_until)) return;
  wait = mi_clamp(2 * wait, PURGE_REFUSED_MS_MIN, PURGE_REFUSED_MS_MAX);
  mi_store_relaxed(&purge_refused_until, now + (int64_t)wait);
  mi_store_relaxed(&purge_refused_ms, wait);
}

// Does the system take nothing?  Else each free would ask it again for all that is free.
static bool purge_is_refused(void) {
  return mi_unlikely(mi_load_relaxed(&purge_refused_ms) != 0) &&
         _mi_prim_clock_ms() < mi_load_relaxed(&purge_refused_until);
}

// Half of the allowance stays, so that the next free does not ask again.
static void purge_down_to(size_t n) {
  size_t n_kept = mi_load_relaxed(&purge_n_kept);
  if (mi_load_relaxed(&purge_n_given) == 0) mi_store_relaxed(&purge_taken_before, _mi_place_fresh());
  size_t given = purge_slices(SIZE_MAX, n / 2 - mi_min(n / 2, n_kept));
  mi_fetch_add_relaxed(&purge_n_given, given);
  if (given > 0 || _mi_chunk_purgeable() > n) purge_note(given); // or another thread was faster
}

void _mi_purge_by_amount(void) {
  if (mi_likely(_mi_chunk_purgeable() < PURGE_MIN_SLICES)) return;
  int64_t interval = _mi_purge_interval();
  bool    by_clock = (interval < 0 || (interval > 0 && _mi_purge_has_thread()));
  size_t  retained = mi_load_relaxed(&purge_retained);
  if ((by_clock && mi_likely(_mi_purge_n_backed() <= retained)) || purge_is_refused()) return;
  if (by_clock) {
    purge_down_to(retained);
    return;
  }
  if (interval == 0) {
    size_t given = _mi_purge_slices(SIZE_MAX);
    if (given > 0 || _mi_chunk_purgeable() >= PURGE_MIN_SLICES) purge_note(given);
    return;
  }
  // First: what was used again long after it was given back was no mistake.
  _mi_purge_round(false);
  size_t may_stay = purge_allowance(purge_n_mistaken());
  if (_mi_purge_n_backed() > may_stay) purge_down_to(may_stay);
}

// Of the interval that ends.
static size_t purge_waiting_swing(void) {
  size_t n_high = mi_exchange_acq_rel(&purge_waiting_high, mi_load_relaxed(&purge_n_waiting));
  return mi_min(n_high, mi_exchange_acq_rel(&purge_n_resumed, (size_t)0));
}

// The next interval begins.
static void purge_begin(size_t swing, int64_t last_ms) {
  bool   was_short = (mi_load_relaxed(&purge_last_ms) - last_ms < PURGE_MISTAKE_MS + _mi_purge_interval());
  size_t n_freed = purge_n_freed();
  size_t n_reused = _mi_place_reused() - mi_load_relaxed(&purge_reused_before);
  swing = mi_min(swing, n_reused) + purge_waiting_swing();
  if (was_short) purge_hold(purge_n_mistaken());
  mi_store_relaxed(&purge_swing, was_short ? swing + purge_n_mistaken() : 0);
  mi_fetch_add_relaxed(&purge_reused_before, n_reused);
  mi_store_relaxed(&purge_n_given, (size_t)0);
  mi_fetch_add_relaxed(&purge_freed_before, was_short ? n_freed / 2 : n_freed);
}

// How many slices may go back at the end of an interval, and what the program swings by.
static size_t purge_may_give(int64_t now, bool is_idle, size_t* swing) {
  _mi_lock_acquire(&_mi_region_purge_lock);
  size_t low = _mi_chunk_purgeable_low(swing);
  size_t n = _mi_recall_round(&purge_recall, now, low, purge_n_taken(), _mi_place_fresh());
  bool   is_held = (_mi_recall_holds(&purge_recall, now) && _mi_purge_has_thread() && _mi_purge_interval() > 0);
  _mi_lock_release(&_mi_region_purge_lock);
  if (is_held) return n;
  if (!is_idle && !_mi_purge_has_thread() && purge_is_held()) return 0;
  return is_idle ? _mi_chunk_purgeable() : low;
}

void _mi_purge_round(bool is_idle) {
  size_t  swing;
  int64_t now = _mi_prim_clock_ms();
  int64_t last = mi_load_relaxed(&purge_last_ms);
  if (!is_idle && now - last < _mi_purge_interval()) return;
  // Of several threads one makes the round: for the next one nothing was free for long.
  if (!mi_cas_strong(&purge_last_ms, &last, now, relaxed, relaxed)) return;
  size_t n = purge_may_give(now, is_idle, &swing);
  purge_begin(swing, last);
  if (n > 0) {
    purge_note(_mi_purge_slices(n));
    _mi_shrink_clean();
    _mi_stat_count(&_mi_stat_live.arena_purges, 1);
  }
  _mi_hole_close_filled(PURGE_HOLES);
}

void _mi_purge_end_hold(void) {
  _mi_lock_acquire(&_mi_region_purge_lock);
  bool holds = _mi_recall_holds(&purge_recall, _mi_prim_clock_ms());
  mi_store_relaxed(&purge_held_until, (int64_t)0);
  _mi_lock_release(&_mi_region_purge_lock);
  if (holds && _mi_chunk_purgeable() > 0) purge_note(_mi_purge_slices(SIZE_MAX));
}

size_t _mi_purge_to(size_t stay) {
  size_t n_given = purge_slices(SIZE_MAX, stay);
  if (n_given > 0) purge_note(n_given);
  _mi_shrink_clean();
  _mi_mapped_retry(SIZE_MAX);
  _mi_hole_close_filled(SIZE_MAX);
  return n_given;
}

// Where it is bounded: n_besides more may be free and backed.
static bool purge_keep(size_t n, size_t n_besides, size_t n_mistaken) {
  int64_t interval = _mi_purge_interval();
  if (interval == 0) return false;
  bool   is_bounded = (interval > 0 && !_mi_purge_has_thread());
  size_t may_stay =
      (is_bounded ? purge_allowance(n_mistaken) : mi_min(PURGE_MAX_SLICES, mi_load_relaxed(&purge_retained)));
  size_t n_backed = (is_bounded ? _mi_purge_n_backed() + n_besides : mi_load_relaxed(&purge_n_kept));
  if (n_backed + n > may_stay) return false;
  mi_fetch_add_relaxed(&purge_n_kept, n);
  return true;
}

bool _mi_purge_keep(size_t n) {
  return purge_keep(n, 0, purge_n_mistaken());
}

void _mi_purge_unkeep(size_t n) {
  mi_fetch_sub_relaxed(&purge_n_kept, n);
}

// Slices that frees of one page after the other put back stay in any case if they are few (PURGE_MIN_SLICES).
bool _mi_purge_wait(size_t n) {
  size_t n_free = _mi_chunk_purgeable();
  if (!purge_keep(n, PURGE_MIN_SLICES - mi_min(n_free, PURGE_MIN_SLICES), 0)) return false;
  size_t n_waiting = mi_load_relaxed(&purge_n_waiting) + n;
  mi_store_relaxed(&purge_n_waiting, n_waiting);
  mi_store_relaxed(&purge_n_waited, mi_load_relaxed(&purge_n_waited) + n);
  if (n_waiting > mi_load_relaxed(&purge_waiting_high)) mi_store_relaxed(&purge_waiting_high, n_waiting);
  return true;
}

void _mi_purge_end_wait(size_t n, bool is_used) {
  mi_store_relaxed(&purge_n_waiting, mi_load_relaxed(&purge_n_waiting) - n);
  if (is_used) mi_store_relaxed(&purge_n_resumed, mi_load_relaxed(&purge_n_resumed) + n);
  _mi_purge_unkeep(n);
}
