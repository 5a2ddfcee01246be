// When giving back memory that is soon needed again has become dear.  Layer: arena.
//
// DP1  A MiB that goes back and is needed again costs 0.4 ms, which is paid with 8 ms of the time that passes: a twentieth.  Up to four
//      seconds of time are saved up, half a second is there when the process begins, and no more than four seconds are owed.  While any
//      time is owed, giving memory back is dear.
//
// Times are milliseconds on the caller's clock.
#pragma once

#include "recall.h"

#define MI_DEAR_MS_MIB   8
#define MI_DEAR_MS_FIRST 500

typedef struct mi_dear_s {
  mi_atomic(int64_t) paid; // the time until then is spent; 0: nothing was given back yet
} mi_dear_t;

// The time that is spent with n slices more.
static inline int64_t _mi_dear_paid_with(mi_dear_t* dear, size_t n, int64_t now) {
  int64_t paid = mi_load_relaxed(&dear->paid);
  if (paid == 0) paid = now - MI_DEAR_MS_FIRST;
  if (paid < now - MI_RECALL_MS_MOST) paid = now - MI_RECALL_MS_MOST;
  return _mi_recall_until(paid, now, n, MI_DEAR_MS_MIB);
}

static inline bool _mi_dear_is(mi_dear_t* dear, size_t n, int64_t now) {
  return _mi_dear_paid_with(dear, n, now) > now;
}

// n slices went back and were needed again.
static inline void _mi_dear_pay(mi_dear_t* dear, size_t n, int64_t now) {
  mi_store_relaxed(&dear->paid, _mi_dear_paid_with(dear, n, now));
}
