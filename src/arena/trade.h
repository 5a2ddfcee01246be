// Trades: free memory goes back for memory that is needed, when a process would become larger than it ever was.  Layer: arena.
//
// Memory that is free and backed does not serve each request: it may lie in chunks of another kind, or in pieces that are too short.  So a
// process whose requests change grows, although much of its memory is free.
//
// TD1  When slices are handed out that are not backed, and the slices that are taken or free and backed are more than ever before, as many
//      free slices go back: the process grows only when nothing else is left.  A trade is a MiB at least, so that not each request makes
//      one.
// TD2  Each MiB that goes back in trade uses up 10 ms of the processor time that the process has had, of which at most a second is saved
//      up.  To give a MiB back and to take it again costs 0.4 ms, so no more than a twenty-fifth of the processor time is spent, also if
//      the process sleeps most of the time.  When no time is left, the process grows.
// TD3  Memory that went back in trade and is needed again does not count as recalled (recall.h): otherwise more would be held for it, and
//      that would be traded next.
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
