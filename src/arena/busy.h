// Is the program at work, or does it sleep most of the time?  Layer: arena.
//
// BY1  In an interval a program was busy that computed for a quarter of it or more, and did not lack 200 ms of it.
// BY2  On a machine with much else to do a program lacks time that it has not slept, and cannot tell how long it waited for a processor.
//      But while it sleeps it frees nothing, and if it only waits for its turn it comes by again soon: with slices of time of 3 ms and eight
//      other programs for a processor each 27 ms.  So it was also busy if it looked at what is free at least each 40 ms; or each 100 ms, which
//      is how long an interval is, if it computed for a tenth of that.
//
// Times are milliseconds on the caller's clock.  Threads may look at the same time; then a look may be missed.
#pragma once

#include "../base/atomic.h"

#define MI_BUSY_MS_APART  40
#define MI_BUSY_MS_SELDOM 100
#define MI_BUSY_MS_ASLEEP 200
#define MI_BUSY_SHARE     4  // BY1
#define MI_BUSY_SHARE_LOW 10 // BY2

typedef struct mi_busy_s {
  mi_atomic(int64_t) last_look;
  mi_atomic(int64_t) most_apart; // two looks in this interval
  int64_t cpu_before; // processor time of the process when it began; under the lock of whoever ends intervals
} mi_busy_t;

// A free looks at what is free.
static inline void _mi_busy_look(mi_busy_t* busy, int64_t now) {
  int64_t apart = now - mi_load_relaxed(&busy->last_look);
  if (apart == 0) return;
  if (apart > mi_load_relaxed(&busy->most_apart)) mi_store_relaxed(&busy->most_apart, apart);
  mi_store_relaxed(&busy->last_look, now);
}

// An interval ends that has lasted for so long.  `cpu` is the processor time of the process.
static inline bool _mi_busy_was(mi_busy_t* busy, int64_t duration, int64_t cpu) {
  int64_t computed = cpu - busy->cpu_before;
  busy->cpu_before = cpu;
  int64_t apart = mi_exchange_relaxed(&busy->most_apart, (int64_t)0);
  if (apart <= MI_BUSY_MS_APART) return true;
  if (apart <= MI_BUSY_MS_SELDOM && MI_BUSY_SHARE_LOW * computed >= duration) return true;
  return MI_BUSY_SHARE * computed >= duration && duration - computed < MI_BUSY_MS_ASLEEP;
}
