// The slow half of the mutex: spin, then sleep.  Layer: prim.
#include "lock.h"

mi_cold void _mi_lock_wait(mi_lock_t* lock) {
  for (int i = 0; i < MI_LOCK_SPINS; i++) {
    if (mi_load_relaxed(&lock->state) == 0 && _mi_lock_try(lock)) return;
    mi_cpu_pause();
  }
  // From here on we take it as 2: we cannot know whether others still sleep, and one wake-up too many is harmless.
  while (mi_exchange_acquire(&lock->state, 2) != 0) {
    _mi_prim_wait(&lock->state, 2, -1);
  }
}
