// Free memory that goes back for what is needed, when a process would become larger than it ever was.  Layer: arena.
//
// What is free and backed does not serve each request: it may lie in chunks of another kind, or in pieces that are too short.  So a
// process whose requests change grows, though much of what it has is free.
//
// TD1  When slices are handed out that are not backed, and what is taken and what is free and backed are more than ever before, as
//      much of what is free goes back: the process grows when nothing else is left.  That is a MiB at least, so that not each request
//      asks.
// TD2  Each MiB that goes back in trade takes 10 ms of the time that the process has run, of which a second at most is saved: to give a
//      MiB back and to take it again costs 0.4 ms, and so no more than a twenty-fifth of its processor time is spent, also if it
//      sleeps most of the time.  When there is no time left, the process grows.
// TD3  What went back in trade and is needed again was not recalled (recall.h): more would be held for it, and traded next.
//
// Times are milliseconds of processor time.
#pragma once

#include "region.h"

#define MI_TRADE_MIN      (MI_MiB / MI_SLICE_SIZE)
#define MI_TRADE_MS_MIB   10
#define MI_TRADE_MS_SAVED 1000

typedef struct mi_trade_s {
  mi_atomic(size_t)  n_most; // slices that were taken, or free and backed, at most
  mi_atomic(int64_t) spent;  // the time until then is spent; 0: nobody has asked yet
} mi_trade_t;

// Do n slices that are taken, or free and backed, make a peak?
static inline bool _mi_trade_is_peak(const mi_trade_t* trade, size_t n) {
  return mi_unlikely(n > mi_load_relaxed(&trade->n_most));
}

// How many slices may go back for it (TD1, TD2); none if that is less than MI_TRADE_MIN.
size_t _mi_trade_allows(mi_trade_t* trade, size_t n, int64_t now);

// n_given went back, so that there are n.
void _mi_trade_note(mi_trade_t* trade, size_t n, size_t n_given);
