// When freed memory goes back to the system.  Layer: arena.  See purge.h for the policy.
#include "purge.h"

#include "../support/option.h"
#include "../support/stat.h"
#include "hole.h"

// With a delay of 0, what is less than 1 MiB waits for more: all chunks are looked at for it.
#define PURGE_AT_ONCE_SLICES  (MI_MiB / MI_SLICE_SIZE)
// Less than this is not worth a thread: 4 MiB.
#define PURGE_START_SLICES    ((4 * MI_MiB) / MI_SLICE_SIZE)
// The thread ends after this many rounds without work, so that a quiet process has no thread of ours.
#define PURGE_QUIET_ROUNDS    8
// Without a thread, the clock is read once in so many frees.
#define PURGE_CALLS_PER_CLOCK 32

// With fewer bytes in pages there will be nothing that is worth a thread.
#define PURGE_EXPECT_BYTES (8 * MI_MiB)

typedef enum purge_state_e { PURGE_NONE, PURGE_RUNS, PURGE_SLEEPS } purge_state_t;

static bool (*purge_on_tick)(void);
static int (*purge_start)(void (*run)(void));
static void (*purge_on_wanted)(bool is_wanted);
static mi_atomic(uint32_t) purge_state;     // of the background thread: purge_state_t
static mi_atomic(uint32_t) purge_asked;     // a round was asked for
static mi_atomic(bool)     purge_no_thread; // one could not be started
static mi_atomic(bool)     purge_stopped;
static mi_atomic(bool)     purge_threads; // there are, or were, others (P3)
static mi_atomic(uint32_t) purge_calls;
static mi_atomic(int64_t)  purge_last_ms;

mi_atomic(bool) _mi_purge_is_wanted;

// Milliseconds between rounds; 0: at once; < 0: never.
static int64_t purge_interval(void) {
  int64_t delay = _mi_option_get_fast(mi_option_purge_delay);
  int64_t mult = _mi_option_get_fast(mi_option_arena_purge_mult);
  return delay <= 0 ? delay : delay * (mult <= 0 ? 1 : mult);
}

static void purge_round(void) {
  size_t low = _mi_slices_purgeable_low(false);
  if (low > 0) {
    _mi_slices_purge(low);
    _mi_stat_count(&_mi_stats.arena_purges, 1);
  }
  _mi_hole_close_filled();
  _mi_slices_purgeable_low(true);
}

static void purge_wake_thread(void) {
  uint32_t state = PURGE_SLEEPS;
  if (mi_cas_strong(&purge_state, &state, (uint32_t)PURGE_RUNS, acq_rel, relaxed)) _mi_prim_wake(&purge_state, true);
}

// The thread has nothing to do: it ends, or sleeps in a process where it might not be started again when it should (P3).
// False: it ends.
static bool purge_rest(void) {
  uint32_t state = (mi_load_relaxed(&purge_threads) ? PURGE_SLEEPS : PURGE_NONE);
  mi_store_release(&purge_state, state);
  mi_fence_seq_cst();
  // Somebody may have asked, or freed, just before we said so.
  bool is_asked = (mi_load_acquire(&purge_asked) != 0 || _mi_slices_purgeable() >= PURGE_START_SLICES);
  if (is_asked && mi_cas_strong(&purge_state, &state, (uint32_t)PURGE_RUNS, acq_rel, relaxed)) return true;
  if (state == PURGE_NONE) return false;
  while (mi_load_acquire(&purge_state) == PURGE_SLEEPS && !mi_load_acquire(&purge_stopped)) {
    _mi_prim_wait(&purge_state, PURGE_SLEEPS, -1);
  }
  return true;
}

static void purge_thread(void) {
  int quiet = 0;
  for (;;) {
    int64_t interval = purge_interval();
    if (!mi_load_acquire(&purge_stopped)) _mi_prim_wait(&purge_state, PURGE_RUNS, interval > 0 ? interval : 10);
    if (mi_load_acquire(&purge_stopped)) {
      mi_store_release(&purge_state, (uint32_t)PURGE_NONE);
      return;
    }
    bool more = purge_on_tick != NULL && purge_on_tick();
    if (interval >= 0) purge_round();
    if (mi_exchange_acq_rel(&purge_asked, 0) != 0 || _mi_slices_purgeable() >= PURGE_START_SLICES) more = true;
    quiet = (more && interval >= 0 ? 0 : quiet + 1);
    if (quiet < PURGE_QUIET_ROUNDS) continue;
    if (!purge_rest()) return;
    quiet = 0;
  }
}

// What by_free may not start shall be there when it is needed (P3).
static void purge_want_thread(void) {
  if (!mi_exchange_acq_rel(&_mi_purge_is_wanted, true)) purge_on_wanted(true);
}

static bool purge_may_have_thread(void) {
  return !mi_load_relaxed(&purge_no_thread) && !mi_load_relaxed(&purge_stopped) &&
         _mi_option_get_fast(mi_option_background_thread);
}

static bool purge_start_thread(bool by_free) {
  uint32_t state = mi_load_relaxed(&purge_state);
  if (state == PURGE_SLEEPS) purge_wake_thread();
  if (state != PURGE_NONE) return true;
  if (!purge_may_have_thread()) return false;
  if (by_free && mi_load_relaxed(&purge_threads)) {
    purge_want_thread();
    return false;
  }
  if (!mi_cas_strong(&purge_state, &state, (uint32_t)PURGE_RUNS, acq_rel, relaxed)) return true;
  if (purge_start(&purge_thread) == 0) return true;
  mi_store_relaxed(&purge_no_thread, true);
  mi_store_release(&purge_state, (uint32_t)PURGE_NONE);
  return false;
}

void _mi_purge_expect(void) {
  if (mi_likely(!mi_load_relaxed(&purge_threads)) || mi_load_relaxed(&purge_state) != PURGE_NONE) return;
  if (mi_load_relaxed(&_mi_purge_is_wanted) ||
      mi_load_relaxed(&_mi_stats.page_committed.current) < (int64_t)PURGE_EXPECT_BYTES)
    return;
  if (purge_may_have_thread() && purge_interval() > 0) purge_want_thread();
}

static void purge_by_clock(int64_t interval) {
  if ((mi_fetch_add_relaxed(&purge_calls, 1) % PURGE_CALLS_PER_CLOCK) != 0) return;
  int64_t now = _mi_prim_clock_ms();
  int64_t last = mi_load_relaxed(&purge_last_ms);
  if (now - last < interval || !mi_cas_strong(&purge_last_ms, &last, now, relaxed, relaxed)) return;
  purge_round();
}

void _mi_purge_schedule(bool by_free) {
  size_t enough = (mi_load_relaxed(&_mi_option_purges_at_once) ? PURGE_AT_ONCE_SLICES : PURGE_START_SLICES);
  if (mi_likely(_mi_slices_purgeable() < enough)) return;
  int64_t interval = purge_interval();
  if (interval < 0) return;
  if (interval == 0) _mi_slices_purge(SIZE_MAX);
  else if (!purge_start_thread(by_free)) purge_by_clock(interval);
}

void _mi_purge_wake(bool by_free) {
  if (purge_interval() < 0) return;
  mi_store_release(&purge_asked, 1);
  purge_start_thread(by_free);
}

void _mi_purge_start_wanted(void) {
  if (!mi_exchange_acq_rel(&_mi_purge_is_wanted, false)) return;
  purge_on_wanted(false);
  purge_start_thread(false);
}

void _mi_purge_has_threads(void) {
  mi_store_relaxed(&purge_threads, true);
}

bool _mi_purge_had_threads(void) {
  return mi_load_relaxed(&purge_threads);
}

void _mi_purge_all(void) {
  _mi_slices_purge(SIZE_MAX);
  _mi_hole_close_filled();
}

void _mi_purge_init(bool (*on_tick)(void), int (*start_thread)(void (*run)(void)), void (*on_wanted)(bool is_wanted)) {
  purge_on_tick = on_tick;
  purge_on_wanted = on_wanted;
  purge_start = start_thread;
}

void _mi_purge_stop(void) {
  mi_store_release(&purge_stopped, true);
  _mi_prim_wake(&purge_state, true);
}

void _mi_purge_after_fork(void) {
  mi_store_relaxed(&purge_state, (uint32_t)PURGE_NONE);
  mi_store_relaxed(&purge_asked, 0);
}
