// The library's own thread, and rounds without it.  Layer: heap.  See background.h.
#include "background.h"

#include "../arena/hold.h"
#include "../arena/purge.h"
#include "../arena/purge_by_amount.h"
#include "../arena/purge_by_clock.h"
#include "../support/options.h"
#include "../support/stat.h"
#include "event.h"
#include "hollow.h"
#include "idle.h"
#include "spare.h"
#include "theap.h"
#include "warm.h"

// Rounds are at most this far apart, however long freed memory is to stay: others can use the memory that idle threads hold.
#define BACKGROUND_ROUND_MS     100
// They are at least this far apart: what a thread stored before it was asked is visible a millisecond later (presence.h, PR2), and
// the clock may have ticked just before.
#define BACKGROUND_ROUND_MS_MIN 2
// BG2: of two to this power starts of threads one tries again, at least.
#define BACKGROUND_WAITS_MAX    12
// After this many rounds without work the thread sleeps without a timeout.
#define BACKGROUND_QUIET_ROUNDS 8
// At most this many rounds the thread outlives the program's other threads, to take back the memory that they have left.
#define BACKGROUND_ALONE_ROUNDS 8
// If less memory than this is in use or free and backed, it is not worth a round.
#define BACKGROUND_WORTH        (4 * MI_MiB)

typedef enum background_state_e { BACKGROUND_NONE, BACKGROUND_RUNS } background_state_t;

static mi_atomic(uint32_t) background_state;
static mi_atomic(uint32_t) background_calls;     // changes with each reason to wake up: what the thread waits on
static mi_atomic(bool)     background_asked;     // a round is wanted in any case
static mi_atomic(int64_t)  background_last_ms;   // when the last round was over
static mi_atomic(bool)     background_must_end;  // the thread is to end at once
static mi_atomic(uint32_t) background_n_refused; // starts of the thread in a row that were refused
static mi_atomic(uint32_t) background_n_waited;  // starts of the program's threads since the last of them
static mi_lock_t           background_lock;

typedef void (*background_observer_fun_t)(mi_background_event_t event);
static mi_atomic(background_observer_fun_t) background_observer;
static bool                                 background_owes_child; // the observer has not been told of a fork yet

// Where the library has no thread, slow paths have to look at the clock if there is an observer.
static bool background_wants_notes(void) {
  return mi_load_relaxed(&background_state) == BACKGROUND_NONE && mi_load_relaxed(&background_observer) != NULL;
}

// Called by a thread that has changed the state or the observer.  It repeats until it has noted what holds, since another thread may
// change the other one meanwhile.  Of two threads, the later one to note it sees what the earlier one had changed.
static void background_set_notes(void) {
  bool wants;
  do {
    wants = background_wants_notes();
    if (wants) mi_fetch_or_acq_rel(&_mi_event_wanted, MI_EVENT_NOTES);
    else mi_fetch_and_acq_rel(&_mi_event_wanted, ~MI_EVENT_NOTES);
  } while (wants != background_wants_notes());
}

// Calls the observer; false if there is none.
static bool background_tell(mi_background_event_t event) {
  background_observer_fun_t observer = mi_load_acquire(&background_observer);
  if (observer != NULL && background_owes_child) observer(MI_BACKGROUND_CHILD);
  background_owes_child = false;
  observer = mi_load_acquire(&background_observer); // it may have enough then
  if (observer != NULL) observer(event);
  return observer != NULL;
}

// ---- rounds -----------------------------------------------------------------------------------------------------------

static int64_t background_round_ms(void) {
  int64_t interval = _mi_purge_interval();
  if (interval <= 0 || interval > BACKGROUND_ROUND_MS) return BACKGROUND_ROUND_MS;
  return interval < BACKGROUND_ROUND_MS_MIN ? BACKGROUND_ROUND_MS_MIN : interval;
}

static bool background_is_due(int64_t now) {
  return now - mi_load_relaxed(&background_last_ms) >= background_round_ms();
}

static bool background_is_worth(void) {
  int64_t pages = mi_load_relaxed(&_mi_stat_live.page_committed.current);
  return pages + (int64_t)(_mi_purge_n_backed() * MI_SLICE_SIZE) >= (int64_t)BACKGROUND_WORTH;
}

static bool background_round(void) {
  bool is_idle = false;
  bool more = _mi_idle_round(&is_idle);
  if (!_mi_purge_has_thread()) is_idle = false; // a thread of the program makes the round, and is at work
  if (_mi_purge_interval() < 0) return false;
  if (_mi_hollow_round()) more = true;
  _mi_purge_by_clock(is_idle);
  return more || _mi_purge_has_more();
}

// True if there may be more to do in the next round.  Caller holds the lock.
static bool background_do_round(void) {
  bool more = false;
  mi_fetch_add_relaxed(&_mi_event_round, 1);
  bool is_asked = mi_exchange_acq_rel(&background_asked, false);
  if (is_asked || background_is_worth()) more = background_round();
  mi_store_relaxed(&background_last_ms, _mi_prim_clock_ms());
  return background_tell(MI_BACKGROUND_ROUND) || more || is_asked;
}

// ---- the thread -------------------------------------------------------------------------------------------------------

static bool background_has_work(void) {
  if (mi_load_relaxed(&background_asked)) return true;
  return _mi_purge_interval() >= 0 && background_is_worth() && (_mi_purge_has_more() || _mi_idle_has_work());
}

static bool background_sleeps(void) {
  return (mi_load_relaxed(&_mi_event_wanted) & MI_EVENT_SLEEPS) != 0;
}

// Sleeps until a slow path calls, because there is nothing to do.
static void background_sleep(uint32_t calls) {
  mi_fetch_or_acq_rel(&_mi_event_wanted, MI_EVENT_SLEEPS);
  mi_fence_seq_cst(); // whoever is the last thread and ends sees that we sleep, or we see that
  // A thread that adds work has no fence.  So we look again after a round: by then we see work of a thread that did not see us sleep.
  int64_t timeout = background_round_ms();
  while (!background_has_work() && _mi_prim_thread_watched() > 0 && mi_load_acquire(&background_calls) == calls) {
    _mi_prim_wait(&background_calls, calls, timeout);
    timeout = -1;
  }
  mi_fetch_and_acq_rel(&_mi_event_wanted, ~MI_EVENT_SLEEPS);
}

// The program has no other thread, so the library's thread ends.  False if the program gets another thread at this moment.
static bool background_end(void) {
  _mi_purge_set_has_thread(false);
  _mi_warm_end_all();
  _mi_spare_drop_all();
  _mi_hold_end();
  _mi_purge_by_amount();
  mi_store_release(&background_state, (uint32_t)BACKGROUND_NONE);
  mi_fence_seq_cst(); // whoever starts a thread sees that there is none of ours, or we see that thread
  background_set_notes();
  if (_mi_prim_thread_watched() == 0) return true;
  uint32_t state = BACKGROUND_NONE;
  if (!mi_cas_strong(&background_state, &state, (uint32_t)BACKGROUND_RUNS, acq_rel, relaxed)) return true;
  background_set_notes();
  _mi_purge_set_has_thread(true);
  return false;
}

// Waits until it is time for the next round, however often it is called meanwhile.  False if the thread is to end before.
static bool background_wait(void) {
  int64_t start = _mi_prim_clock_ms();
  int64_t rest = background_round_ms();
  while (rest > 0) {
    uint32_t calls = mi_load_acquire(&background_calls);
    if (mi_load_acquire(&background_must_end)) return false;
    _mi_prim_wait(&background_calls, calls, rest);
    rest = background_round_ms() - (_mi_prim_clock_ms() - start);
  }
  return true;
}

static bool background_round_locked(void) {
  _mi_lock_acquire(&background_lock);
  bool is_due = background_is_due(_mi_prim_clock_ms()); // else a slow path that did not see us yet has just made one
  bool more = !is_due || background_do_round();
  _mi_lock_release(&background_lock);
  return more;
}

static void background_run(void) {
  background_set_notes();
  int quiet = 0, alone = 0; // rounds without work, and without other threads of the program
  for (;;) {
    uint32_t calls = mi_load_acquire(&background_calls); // before we look whether there are threads: the last one calls
    if (quiet >= BACKGROUND_QUIET_ROUNDS && _mi_prim_thread_watched() > 0) background_sleep(calls);
    bool is_due = background_wait();
    if (is_due) quiet = background_round_locked() ? 0 : quiet + 1;
    _mi_event_answer();
    alone = (_mi_prim_thread_watched() == 0 ? alone + 1 : 0);
    if (!is_due && alone == 0) mi_store_relaxed(&background_must_end, false); // the program has started another thread
    bool is_over = (alone > 1 && quiet > 0) || alone >= BACKGROUND_ALONE_ROUNDS || !is_due;
    if (is_over && alone > 0 && background_end()) return;
  }
}

static void background_call(void) {
  mi_fetch_add_acq_rel(&background_calls, 1);
  _mi_prim_wake(&background_calls, true);
}

// ---- its start and end ------------------------------------------------------------------------------------------------

// What libc allocates for the thread must not go with a heap that happens to be the default of the thread which starts it.
static int background_start(void) {
  mi_theap_t* theap = _mi_theap_default;
  mi_theap_t* backing = _mi_theap_backing();
  if (backing == NULL) return _mi_prim_thread_start(&background_run);
  _mi_theap_default = backing;
  int err = _mi_prim_thread_start(&background_run);
  if (mi_load_relaxed(&theap->thread) == backing) _mi_theap_default = theap; // unless it was retired meanwhile
  return err;
}

// BG2
static bool background_waits(void) {
  uint32_t n_refused = mi_load_relaxed(&background_n_refused);
  if (mi_likely(n_refused == 0)) return false;
  return mi_fetch_add_relaxed(&background_n_waited, 1) + 1 < 1u << mi_min(n_refused - 1, BACKGROUND_WAITS_MAX);
}

// The program has started a thread.
static void background_on_started(void) {
  uint32_t state = BACKGROUND_NONE;
  mi_fence_seq_cst(); // see background_end
  if (mi_likely(mi_load_relaxed(&background_state) != BACKGROUND_NONE) || background_waits()) return;
  if (!_mi_option_get_fast(mi_option_background_thread) || _mi_purge_interval() < 0) return;
  if (!mi_cas_strong(&background_state, &state, (uint32_t)BACKGROUND_RUNS, acq_rel, relaxed)) return;
  _mi_purge_set_has_thread(true);
  mi_store_relaxed(&background_must_end, false);
  bool is_refused = (background_start() != 0);
  mi_store_relaxed(&background_n_refused, is_refused ? mi_load_relaxed(&background_n_refused) + 1 : 0);
  mi_store_relaxed(&background_n_waited, 0u);
  if (!is_refused) return;
  _mi_purge_set_has_thread(false);
  _mi_warm_end_all(); // as background_end does: a thread may have ended meanwhile
  mi_store_release(&background_state, (uint32_t)BACKGROUND_NONE);
  background_set_notes();
}

// One of its threads ends; if it was the last, so does ours.  BG5
static void background_on_ended(bool is_last) {
  bool runs = (mi_load_relaxed(&background_state) == BACKGROUND_RUNS);
  if (_mi_prim_thread_watched() != 0 || !(runs || is_last)) return;
  if (is_last) mi_store_release(&background_must_end, true); // else another thread may be the last, and have said so
  mi_fence_seq_cst(); // see background_sleep; between two rounds it finds out by itself
  if (is_last || background_sleeps()) background_call();
  if (is_last) _mi_prim_thread_join();
}

// ---- calls ------------------------------------------------------------------------------------------------------------

// Without a thread: is it time for a round?  Not while another makes one, nor while a fork holds the lock: the thread that forks
// passes through all others.
static void background_by_clock(void) {
  int64_t now = _mi_prim_clock_ms();
  bool    is_observed = (mi_load_relaxed(&background_observer) != NULL);
  if (!(background_is_due(now) || is_observed) || !_mi_lock_try(&background_lock)) return;
  if (background_is_due(now)) background_do_round(); // or another has just made one
  else background_tell(MI_BACKGROUND_ROUND);
  _mi_lock_release(&background_lock);
}

static void background_on_event(bool wake) {
  bool runs = (mi_load_relaxed(&background_state) != BACKGROUND_NONE);
  if (wake) {
    mi_store_release(&background_asked, true);
    if (runs) background_call();
  }
  else if (!runs) {
    background_by_clock();
  }
  else if (background_sleeps() && background_is_worth()) {
    background_call();
  }
}

void _mi_background_init(void) {
  _mi_event_register(&background_on_event);
  _mi_prim_thread_watch(&background_on_started, &background_on_ended);
}

void _mi_background_lock(void) {
  _mi_lock_acquire(&background_lock);
}

bool _mi_background_try_lock(void) {
  return _mi_lock_try(&background_lock);
}

void _mi_background_unlock(void) {
  _mi_lock_release(&background_lock);
}

void _mi_background_after_fork(void) {
  _mi_prim_thread_after_fork();
  mi_store_relaxed(&background_state, (uint32_t)BACKGROUND_NONE);
  mi_store_relaxed(&background_n_refused, 0u);
  _mi_purge_set_has_thread(false);
  background_tell(MI_BACKGROUND_CHILD);
  mi_store_relaxed(&_mi_event_wanted, 0u);
  background_set_notes();
}

void _mi_background_after_lone_fork(void) {
  if (mi_load_relaxed(&background_observer) == NULL) return;
  bool is_free = _mi_lock_try(&background_lock);
  if (is_free) background_tell(MI_BACKGROUND_CHILD);
  else background_owes_child = true; // a handler of a signal has forked within a round
  if (is_free) _mi_lock_release(&background_lock);
}

void _mi_background_observe(void (*observer)(mi_background_event_t event)) {
  mi_store_release(&background_observer, observer);
  background_set_notes();
}
