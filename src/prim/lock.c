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

mi_cold void _mi_lock_wait(mi_lock_t* lock) {
  for (int i = 0; i < MI_LOCK_SPINS; i++) {
    if (mi_load_relaxed(&lock->state) == 0 && _mi_lock_try(lock)) return;
    mi_cpu_pause();
  }
  // From here on we take it as 2: we cannot know whether others still sleep, and one wake-up too many is harmless.
  while (mi_exchange_acquire(&lock->state, 2) != 0) {
    if (_mi_prim_is_ending()) return; // whoever held it is no more
    _mi_prim_wait(&lock->state, 2, -1);
  }
}

void _mi_lock_pause(mi_atomic(uint32_t)* word, uint32_t seen, int* n_spins) {
  if (++*n_spins <= MI_LOCK_SPINS) mi_cpu_pause();
  else _mi_prim_wait(word, seen, 1); // nobody wakes us
}
