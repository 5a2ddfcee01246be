// A small mutex.  Layer: prim.
//
//   0  free        1  held, nobody sleeps        2  held, somebody may sleep
//
// It neither allocates nor has a destructor, and the child of a fork may reset it.  Critical sections of ours are short,
// so a contender spins for a while first; an oversubscribed machine makes it sleep instead of burning its time slice.
#pragma once

#include "prim.h"

typedef struct mi_lock_s {
  mi_atomic(uint32_t) state;
} mi_lock_t;

#define MI_LOCK_SPINS 64 // about 1-2 us: longer than our critical sections, shorter than a sleep and a wake-up

mi_cold void _mi_lock_wait(mi_lock_t* lock);

static inline bool _mi_lock_try(mi_lock_t* lock) {
  uint32_t expected = 0;
  return mi_cas_strong(&lock->state, &expected, 1, acquire, relaxed);
}

static inline void _mi_lock_acquire(mi_lock_t* lock) {
  if (mi_unlikely(!_mi_lock_try(lock))) _mi_lock_wait(lock);
}

static inline void _mi_lock_release(mi_lock_t* lock) {
  // release: whoever takes the lock next sees what we wrote under it
  if (mi_unlikely(mi_atomic_ns(atomic_exchange_explicit)(&lock->state, 0, mi_memory_order(release)) == 2)) {
    _mi_prim_wake(&lock->state, false);
  }
}
