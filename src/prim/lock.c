// The slow half of the mutex: spin, then sleep.  Layer: prim.
#include "lock.h"

#if MI_LOCAL_COPIED
  #include <pthread.h>
#endif

mi_atomic(uintptr_t) _mi_lock_forker;

#if MI_LOCAL_COPIED // threads that have ended share their variables (local.c)
uintptr_t _mi_lock_self(void) {
  return (uintptr_t)pthread_self();
}
#else
static MI_LOCAL(char, lock_self);

uintptr_t _mi_lock_self(void) {
  return (uintptr_t)&mi_local(lock_self);
}
#endif

#if MI_LOCK_COUNTED
MI_LOCAL(mi_lock_count_t, _mi_lock_count);

void _mi_lock_at_none(void) {
  mi_lock_count_t* count = &mi_local(_mi_lock_count);
  void (*act)(void) = count->when_none;
  count->when_none = NULL;
  act();
}

bool _mi_lock_postpone(void (*act)(void)) {
  mi_lock_count_t* count = &mi_local(_mi_lock_count);
  if (count->n == 0 || _mi_lock_is_forker()) return false;
  count->when_none = act;
  return true;
}
#else
bool _mi_lock_postpone(void (*act)(void)) {
  (void)act;
  return false;
}
#endif

// It is taken as 2: we cannot know whether others still sleep, and one wake-up too many is harmless.
static bool lock_take_contended(mi_lock_t* lock) {
  if (mi_exchange_acquire(&lock->state, 2) != 0 && !_mi_prim_is_ending())
    return false; // ending: whoever held it is no more
  _mi_lock_note_held();
  return true;
}

mi_cold void _mi_lock_wait(mi_lock_t* lock) {
  for (int i = 0; i < MI_LOCK_SPINS; i++) {
    if (mi_load_relaxed(&lock->state) == 0 && _mi_lock_try(lock)) return;
    mi_cpu_pause();
  }
  while (!lock_take_contended(lock)) _mi_prim_wait(&lock->state, 2, -1);
}

// Other threads hold the locks that are looked under for well below a millisecond; but on a busy machine they may not run.
#define LOCK_HURRY_MS 1000

static mi_atomic(uintptr_t) lock_hurried; // the thread that ends the process, as _mi_lock_self names it; 0: none does
static bool                 lock_gave_up; // its own

void _mi_lock_hurry(bool is_hurried) {
  lock_gave_up = false;
  mi_store_relaxed(&lock_hurried, is_hurried ? _mi_lock_self() : 0);
}

bool _mi_lock_is_hurried(void) {
  uintptr_t hurried = mi_load_relaxed(&lock_hurried);
  return mi_unlikely(hurried != 0) && hurried == _mi_lock_self();
}

static bool lock_wait_hurried(mi_lock_t* lock) {
  int64_t end = _mi_prim_clock_ms() + LOCK_HURRY_MS, rest = LOCK_HURRY_MS;
  while (!lock_gave_up && rest > 0) {
    if (lock_take_contended(lock)) return true;
    _mi_prim_wait(&lock->state, 2, rest);
    rest = end - _mi_prim_clock_ms();
  }
  lock_gave_up = true;
  return false;
}

bool _mi_lock_look(mi_lock_t* lock) {
  if (_mi_lock_is_forker() || _mi_lock_try(lock)) return true;
  if (_mi_lock_is_hurried()) return lock_wait_hurried(lock);
  _mi_lock_wait(lock);
  return true;
}

void _mi_lock_pause(mi_atomic(uint32_t)* word, uint32_t seen, int* n_spins) {
  if (++*n_spins <= MI_LOCK_SPINS) mi_cpu_pause();
  else _mi_prim_wait(word, seen, 1); // nobody wakes us
}
