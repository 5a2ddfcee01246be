// Threads that keep the allocator busy until the moment of a fork, and rest while the child runs: they would only slow it
// down, tenfold on a machine with few processors, and what they then do the child never sees.
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "support.h"

static pthread_mutex_t rest_lock = PTHREAD_MUTEX_INITIALIZER; // held by the forking thread while others are to rest
static atomic_bool     rest_is_due;

// The other threads call this often.
static inline void rest_if_due(void) {
  if (!atomic_load_explicit(&rest_is_due, memory_order_relaxed)) return;
  pthread_mutex_lock(&rest_lock);
  pthread_mutex_unlock(&rest_lock);
}

// In the parent, after the fork.
static inline void rest_begin(void) {
  pthread_mutex_lock(&rest_lock);
  atomic_store(&rest_is_due, true);
}

// When this returns all have run again for a while, and are wherever they are.
static inline void rest_end(void) {
  atomic_store(&rest_is_due, false);
  pthread_mutex_unlock(&rest_lock);
  sleep_ms(2);
}
