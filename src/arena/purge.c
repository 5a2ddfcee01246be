// When freed memory goes back to the system.  Layer: arena.  See purge.h for the policy.
#include "purge.h"

#include "../support/option.h"
#include "../support/stat.h"
#include "busy.h"
#include "dear.h"
#include "give.h"
#include "hole.h"
#include "limit.h"
#include "mapped.h"
#include "place.h"
#include "recall.h"
#include "shrink.h"
#include "trade.h"

#define PURGE_MIN_SLICES     (MI_MiB / MI_SLICE_SIZE)        // stay in any case: less is not worth the system calls
#define PURGE_MAX_SLICES     ((32 * MI_MiB) / MI_SLICE_SIZE) // PG1
#define PURGE_SHARE          16                              // PG1: one part in so many of the memory that was freed
#define PURGE_HELD           4                               // PG6: this many times what is in use may stay,
#define PURGE_HELD_MOST      2 // ... or, with what is in use, this many times the most that was used (decision 53),
#define PURGE_HELD_PART      8 // ... if one part in so many of that most is in use, or to give back is dear;
#define PURGE_HELD_MORE      4 // ... and what was given back by mistake, up to one part in so many of that (decision 60)
#define PURGE_EARLY_SLICES   ((12 * MI_MiB) / MI_SLICE_SIZE) // PG6: a hold for so many begins at once (decision 52)
#define PURGE_SPLIT_SLICES   PURGE_MIN_SLICES                // PG7: for so many the parts wait a millisecond
#define PURGE_MISTAKE_MS     200 // what is needed again so soon after it went back went by *mistake*
#define PURGE_HOLES          256 // chunks with holes that are looked at in a round
// If the system takes no memory back, the next attempt by the amount is made so much later, twice as long after each failure.
#define PURGE_REFUSED_MS_MIN 100
#define PURGE_REFUSED_MS_MAX 5000

static mi_atomic(bool)    purge_has_thread;
static mi_atomic(size_t)  purge_retained = mi_atomic_init(SIZE_MAX); // PG5
static mi_atomic(size_t)  purge_n_kept;                              // PG2
static mi_atomic(size_t)  purge_n_lent;       // of these, slices that may be kept, but are in use
static mi_atomic(size_t)  purge_n_waiting;    // of these, slices that wait for their next use
static mi_atomic(size_t)  purge_waiting_high; // the most of those in this interval
static mi_atomic(size_t)  purge_n_waited;     // slices that ever began to wait
static mi_atomic(size_t)  purge_n_resumed;    // slices of this interval that waited and were used again
static mi_atomic(size_t)  purge_freed_before; // slices that were freed, but so long ago that they do not count any more
static mi_atomic(size_t)  purge_swing;        // PG1: slices by which the program swung in the last interval
static mi_atomic(size_t)  purge_reused_before; // slices that were used again before this interval began
static mi_atomic(size_t)  purge_n_given;       // slices that went back by the amount in this interval
static mi_atomic(size_t)  purge_taken_before;  // slices ever taken that were not backed, before the first of these went
static mi_atomic(int64_t) purge_last_ms;       // when this interval began
static mi_atomic(int64_t) purge_held_until;    // PG6: 0: nothing is held, or there is a thread
static mi_atomic(size_t)  purge_refused_ms;    // PG4: how long to wait; 0: the system takes what it is given
static mi_atomic(int64_t) purge_refused_until; // ... and until when
static mi_atomic(int64_t) purge_excess_since;  // PG7: 0: no more is free than the allowance
static mi_recall_t        purge_recall = MI_RECALL_INITIAL; // under the purge lock, as the next one
static mi_dear_t          purge_dear; // PG8: with what was given back by mistake before this interval
static mi_trade_t         purge_trade;
static mi_busy_t          purge_busy;
static mi_atomic(size_t)  purge_n_high; // the most that was used in this interval, as frees and large blocks saw it
static mi_atomic(size_t)  purge_n_most; // PG6: ... and in the last two to four seconds
static mi_atomic(bool)    purge_is_busy = mi_atomic_init(true); // PG6: in the last interval, and before the first

// ---- how ---------------------------------------------------------------------------------------------------------------

static size_t purge_at_once(size_t n, size_t stay) {
  bool is_refused = false;
  return _mi_give_slices(&purge_recall, n, stay, true, &is_refused);
}

size_t _mi_purge_slices(size_t n) {
  return purge_at_once(n, 0);
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
  size_t n = _mi_chunk_freed() + mi_load_relaxed(&purge_n_waited) - mi_load_relaxed(&purge_freed_before);
  return n > PTRDIFF_MAX ? 0 : n; // the sums wrap; and a thread that was held up may count a round late
}

static size_t purge_n_mistaken(void) {
  size_t given = mi_load_relaxed(&purge_n_given);
  return given == 0 ? 0 : mi_min(given, _mi_place_fresh() - mi_load_relaxed(&purge_taken_before));
}

// PG2: slices that are kept, or wait, now.
static size_t purge_n_resting(void) {
  size_t n_kept = mi_load_relaxed(&purge_n_kept);
  return n_kept - mi_min(n_kept, mi_load_relaxed(&purge_n_lent));
}

static size_t purge_n_used(void) {
  size_t n_taken = _mi_place_n_taken();
  return n_taken - mi_min(n_taken, purge_n_resting());
}

// PG6: notes how many slices are used now, and returns their number.
static size_t purge_note_used(void) {
  size_t n = purge_n_used();
  if (n > mi_load_relaxed(&purge_n_high)) mi_store_relaxed(&purge_n_high, n);
  return n;
}

// PG6
static bool purge_is_held(void) {
  int64_t until = mi_load_relaxed(&purge_held_until);
  return mi_unlikely(until != 0) && _mi_prim_clock_ms() < until;
}

// PG6: n_mistaken slices went back and had to be backed again in this interval.
static bool purge_begin_hold(size_t n_mistaken) {
  if (mi_likely(n_mistaken < PURGE_EARLY_SLICES) || !mi_load_relaxed(&purge_is_busy)) return false;
  int64_t now = _mi_prim_clock_ms();
  _mi_lock_acquire(&_mi_region_purge_lock);
  _mi_recall_begin(&purge_recall, now, _mi_place_fresh());
  mi_store_relaxed(&purge_held_until, purge_recall.until);
  bool is_held = _mi_recall_holds(&purge_recall, now);
  _mi_lock_release(&_mi_region_purge_lock);
  return is_held;
}

// PG1.  n_mistaken is certain only if an interval that was over has been ended before.
static size_t purge_allowance(size_t n_mistaken) {
  size_t n = mi_max(purge_n_freed() / PURGE_SHARE, mi_load_relaxed(&purge_swing));
  size_t most = mi_min(mi_max(PURGE_MAX_SLICES, purge_n_used()), mi_load_relaxed(&purge_retained));
  return mi_clamp(n + n_mistaken, PURGE_MIN_SLICES, most);
}

// PG6
static size_t purge_allowance_held(size_t n_used, size_t n_mistaken) {
  size_t n = mi_max(PURGE_MAX_SLICES, PURGE_HELD * n_used);
  size_t n_most = mi_max(n_used, mi_max(mi_load_relaxed(&purge_n_high), mi_load_relaxed(&purge_n_most)));
  if (PURGE_HELD_PART * n_used >= n_most || _mi_dear_is(&purge_dear, n_mistaken, _mi_prim_clock_ms()))
    n = mi_max(n, PURGE_HELD_MOST * n_most - n_used);
  return mi_min(n + mi_min(n_mistaken, n / PURGE_HELD_MORE), mi_load_relaxed(&purge_retained));
}

size_t _mi_purge_n_backed(void) {
  return _mi_chunk_purgeable() + purge_n_resting();
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

// PG7: is it time to split huge pages for n slices?
static bool purge_may_split(size_t n) {
  int64_t now = _mi_prim_clock_ms(), since = mi_load_relaxed(&purge_excess_since);
  if (since == 0) mi_store_relaxed(&purge_excess_since, now);
  return since != 0 && now - since > (int64_t)(n / PURGE_SPLIT_SLICES);
}

// No more than n slices may stay, and only `stay` do, so that the next free does not ask again.
static void purge_down_to(size_t n, size_t stay, bool at_once) {
  stay -= mi_min(stay, purge_n_resting());
  if (mi_load_relaxed(&purge_n_given) == 0) mi_store_relaxed(&purge_taken_before, _mi_place_fresh());
  bool   is_refused = false;
  size_t given = _mi_give_slices(&purge_recall, SIZE_MAX, stay, at_once, &is_refused);
  size_t n_backed = _mi_purge_n_backed();
  if (!at_once && n_backed > n && purge_may_split(n_backed - n))
    given += _mi_give_slices(&purge_recall, SIZE_MAX, stay, true, &is_refused);
  mi_fetch_add_relaxed(&purge_n_given, given);
  if (given > 0 || is_refused) purge_note(given); // or there was nothing that may go now
}

void _mi_purge_by_amount(void) {
  if (mi_likely(_mi_chunk_purgeable() < PURGE_MIN_SLICES)) return;
  int64_t interval = _mi_purge_interval();
  bool    by_clock = (interval < 0 || (interval > 0 && _mi_purge_has_thread()));
  size_t  retained = mi_load_relaxed(&purge_retained);
  if ((by_clock && mi_likely(_mi_purge_n_backed() <= retained)) || purge_is_refused()) return;
  if (by_clock) {
    purge_down_to(retained, retained / 2, true);
    return;
  }
  if (interval == 0) {
    size_t given = _mi_purge_slices(SIZE_MAX);
    if (given > 0 || _mi_chunk_purgeable() >= PURGE_MIN_SLICES) purge_note(given);
    return;
  }
  size_t n_used = purge_note_used();
  // First: what was used again long after it was given back was no mistake.
  _mi_purge_round(false);
  size_t n_mistaken = purge_n_mistaken();
  bool   is_held = purge_is_held() || purge_begin_hold(n_mistaken);
  size_t may_stay = (is_held ? purge_allowance_held(n_used, n_mistaken) : purge_allowance(n_mistaken));
  size_t stay = (is_held ? may_stay - PURGE_MIN_SLICES : may_stay / 2);
  if (_mi_purge_n_backed() > may_stay) purge_down_to(may_stay, stay, may_stay >= retained);
  else if (mi_load_relaxed(&purge_excess_since) != 0) mi_store_relaxed(&purge_excess_since, (int64_t)0);
}

// TD1, TD3: gives n slices back.
static size_t purge_in_trade(size_t n) {
  bool   is_refused = false;
  size_t n_given = _mi_give_slices(NULL, n, 0, false, &is_refused);
  if (n_given > 0 || is_refused) purge_note(n_given);
  if (n_given == 0) return 0;
  _mi_lock_acquire(&_mi_region_purge_lock);
  _mi_recall_lessen(&purge_recall, n_given);
  _mi_lock_release(&_mi_region_purge_lock);
  return n_given;
}

// Processor time of the process.  To look at it is a system call, which is made once in a millisecond at most.
static int64_t purge_cpu_ms(void) {
  static mi_atomic(int64_t) seen, seen_at;
  int64_t                   now = _mi_prim_clock_ms();
  if (mi_load_acquire(&seen_at) != now) {
    mi_store_relaxed(&seen, _mi_prim_cpu_time_ms());
    mi_store_release(&seen_at, now); // whoever sees it sees the time that was read for it, or a later one
  }
  return mi_load_relaxed(&seen);
}

void _mi_purge_at_peak(void) {
  if (!_mi_purge_has_thread()) purge_note_used(); // frees do not see the block that they free
  size_t n_free = _mi_chunk_purgeable(), n = _mi_place_n_taken() + n_free, n_given = 0;
  if (mi_likely(!_mi_trade_is_peak(&purge_trade, n))) return;
  if (_mi_purge_interval() > 0 && !purge_is_refused()) {
    size_t n_allowed = _mi_trade_allows(&purge_trade, n, purge_cpu_ms());
    if (n_free >= MI_TRADE_MIN && n_allowed > 0) n_given = purge_in_trade(n_allowed);
  }
  _mi_trade_note(&purge_trade, n - mi_min(n, n_given), n_given);
}

// Of the interval that ends.
static size_t purge_waiting_swing(void) {
  size_t n_high = mi_exchange_acq_rel(&purge_waiting_high, mi_load_relaxed(&purge_n_waiting));
  return mi_min(n_high, mi_exchange_acq_rel(&purge_n_resumed, (size_t)0));
}

// The next interval begins.
static void purge_begin(size_t swing, int64_t last_ms, int64_t now) {
  bool   was_short = (mi_load_relaxed(&purge_last_ms) - last_ms < PURGE_MISTAKE_MS + _mi_purge_interval());
  size_t n_freed = purge_n_freed(), n_reused = _mi_place_reused() - mi_load_relaxed(&purge_reused_before);
  swing = mi_min(swing, n_reused) + purge_waiting_swing();
  size_t n_mistaken = (was_short ? purge_n_mistaken() : 0);
  _mi_dear_pay(&purge_dear, n_mistaken, now);
  mi_store_relaxed(&purge_swing, was_short ? swing + n_mistaken : 0);
  mi_fetch_add_relaxed(&purge_reused_before, n_reused);
  mi_store_relaxed(&purge_n_given, (size_t)0);
  mi_fetch_add_relaxed(&purge_freed_before, was_short ? n_freed / 2 : n_freed);
}

// PG6: an interval is over; the first one begins with the process.
static bool purge_was_busy(int64_t last, int64_t now) {
  bool is_busy = _mi_busy_was(&purge_busy, now - last, _mi_prim_cpu_time_ms());
  mi_store_relaxed(&purge_is_busy, is_busy || last == 0);
  return is_busy;
}

// How many slices may go back at the end of an interval that began at `last`, and what the program swings by.
static size_t purge_may_give(int64_t last, int64_t now, bool is_idle, size_t* swing) {
  bool has_thread = _mi_purge_has_thread();
  _mi_lock_acquire(&_mi_region_purge_lock);
  if (!has_thread && !purge_was_busy(last, now)) _mi_recall_forget(&purge_recall);
  size_t low = _mi_chunk_purgeable_low(swing);
  size_t n_used = mi_max(mi_exchange_acq_rel(&purge_n_high, (size_t)0), _mi_place_n_taken());
  size_t n = _mi_recall_round(&purge_recall, now, low, n_used, _mi_place_fresh());
  mi_store_relaxed(&purge_n_most, mi_max(purge_recall.most[0], purge_recall.most[1]));
  int64_t interval = _mi_purge_interval();
  int64_t then = (has_thread ? now : now + interval); // a hold that ends before the next round is none
  bool    is_held = (interval > 0 && _mi_recall_holds(&purge_recall, then));
  mi_store_relaxed(&purge_held_until, is_held && !has_thread ? purge_recall.until : 0);
  _mi_lock_release(&_mi_region_purge_lock);
  if (is_held && has_thread) return n;
  if (is_held && !is_idle) return 0;
  return is_idle ? _mi_chunk_purgeable() : low;
}

void _mi_purge_round(bool is_idle) {
  size_t  swing;
  int64_t now = _mi_prim_clock_ms(), last = mi_load_relaxed(&purge_last_ms);
  _mi_busy_look(&purge_busy, now);
  if (!is_idle && now - last < _mi_purge_interval()) return;
  // Of several threads one makes the round: for the next one nothing was free for long.
  if (!mi_cas_strong(&purge_last_ms, &last, now, relaxed, relaxed)) return;
  size_t n = purge_may_give(last, now, is_idle, &swing);
  purge_begin(swing, last, now);
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
  _mi_recall_forget(&purge_recall);
  mi_store_relaxed(&purge_held_until, (int64_t)0);
  _mi_lock_release(&_mi_region_purge_lock);
  if (holds && _mi_chunk_purgeable() > 0) purge_note(_mi_purge_slices(SIZE_MAX));
}

size_t _mi_purge_to(size_t stay) {
  size_t n_given = purge_at_once(SIZE_MAX, stay);
  if (n_given > 0) purge_note(n_given);
  _mi_shrink_clean();
  _mi_mapped_retry(SIZE_MAX);
  _mi_hole_close_filled(SIZE_MAX);
  return n_given;
}

// PG2: may so many slices be kept, with what is free?  Whether there is a hold is asked only if it matters.
static bool purge_may_keep(size_t n, bool is_bounded, size_t n_mistaken) {
  if (is_bounded && n <= purge_allowance(n_mistaken)) return true;
  return n <= mi_min(PURGE_MAX_SLICES, mi_load_relaxed(&purge_retained)) && (!is_bounded || purge_is_held());
}

// Where it is bounded: n_besides more may be free and backed.  What is lent counts too: it comes back without asking.
static bool purge_keep(size_t n, size_t n_besides, size_t n_mistaken) {
  int64_t interval = _mi_purge_interval();
  if (interval == 0) return false;
  bool   is_bounded = (interval > 0 && !_mi_purge_has_thread());
  size_t n_kept = mi_load_relaxed(&purge_n_kept);
  size_t n_backed = (is_bounded ? _mi_chunk_purgeable() + n_kept + n_besides : n_kept);
  if (!purge_may_keep(n_backed + n, is_bounded, n_mistaken)) return false;
  mi_fetch_add_relaxed(&purge_n_kept, n);
  return true;
}

bool _mi_purge_keep(size_t n) {
  return purge_keep(n, 0, purge_n_mistaken());
}

void _mi_purge_lend(size_t n) {
  mi_fetch_add_relaxed(&purge_n_lent, n);
}

void _mi_purge_unlend(size_t n) {
  mi_fetch_sub_relaxed(&purge_n_lent, n);
}

void _mi_purge_set_kept(size_t n, size_t n_lent) {
  mi_store_relaxed(&purge_n_kept, n);
  mi_store_relaxed(&purge_n_lent, n_lent);
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
