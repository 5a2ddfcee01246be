// Statistics of the process, kept in every build.  Layer: support.
//
// Events that cost at least a page of blocks or a system call are counted here as they happen.  Blocks are not: a
// counter in malloc would cost more than the rest of it.  They are counted when somebody asks (api/stats.c).
//
// All operations are relaxed: a number is exact once the threads that change it have been waited for, and numbers of
// different fields need not be of one moment.  A decrease may be seen before the increase it belongs to: only
// _mi_stat_snapshot promises that nothing is negative and current <= peak <= total.  A total of more than 8 EiB stays there when it is
// read, up to 16 EiB.
#pragma once

#include "../base/atomic.h"
#include "../base/mode.h"
#include "../base/public.h"

typedef struct mi_live_count_s {
  mi_atomic(int64_t) total;
  mi_atomic(int64_t) peak;
  mi_atomic(int64_t) current;
} mi_live_count_t;

typedef struct mi_live_counter_s {
  mi_atomic(int64_t) total;
} mi_live_counter_t;

typedef struct mi_live_stats_s {
#define MI_STAT_COUNT(name)   mi_live_count_t name;
#define MI_STAT_COUNTER(name) mi_live_counter_t name;
  MI_STAT_FIELDS()
#undef MI_STAT_COUNT
#undef MI_STAT_COUNTER
#if MI_API_LEVEL < 3 // the structure of that level has no place for them, the table has
  mi_live_count_t heaps;
  mi_live_count_t theaps;
#endif
} mi_aligned(MI_TRACK_VALGRIND ? 4096 : 8) mi_live_stats_t; // in OS pages of their own if they have to be hidden

extern mi_live_stats_t _mi_stat_live;

// Fields that have no writer here come from elsewhere: system calls from prim/prim.h, what theaps count from
// heap/heap_stats.h.

// n >= 0.
static inline void _mi_stat_count(mi_live_counter_t* counter, int64_t n) {
  mi_fetch_add_relaxed(&counter->total, n);
}

static inline void _mi_stat_increase(mi_live_count_t* count, int64_t n) {
  int64_t now = mi_fetch_add_relaxed(&count->current, n) + n;
  mi_fetch_add_relaxed(&count->total, n);
  int64_t peak = mi_load_relaxed(&count->peak);
  while (now > peak && !mi_cas_weak(&count->peak, &peak, now, relaxed, relaxed)) {
  }
}

static inline void _mi_stat_decrease(mi_live_count_t* count, int64_t n) {
  mi_fetch_sub_relaxed(&count->current, n);
}

// What was decreased is there all the same: neither the total nor the peak changes.
static inline void _mi_stat_restore(mi_live_count_t* count, int64_t n) {
  mi_fetch_add_relaxed(&count->current, n);
}

// n may be negative.
static inline void _mi_stat_change(mi_live_count_t* count, int64_t n) {
  if (n >= 0) _mi_stat_increase(count, n);
  else _mi_stat_decrease(count, -n);
}

// n is 1 or -1, and nobody else changes it meanwhile.
static inline void _mi_stat_change_alone(mi_live_count_t* count, int n) {
  int64_t now = mi_load_relaxed(&count->current) + n;
  mi_store_relaxed(&count->current, now);
  if (n > 0) mi_store_relaxed(&count->total, mi_load_relaxed(&count->total) + 1);
  if (now > mi_load_relaxed(&count->peak)) mi_store_relaxed(&count->peak, now);
}

// A number as it is now: not negative, and current <= peak <= total.
mi_stat_count_t _mi_stat_read(mi_live_count_t* live);

// Fills in everything; bins and reserved fields are 0.
void _mi_stat_snapshot(mi_stats_t* out);

// Totals and peaks become what is current, counters 0.
void _mi_stat_reset_count(mi_live_count_t* count);
void _mi_stat_reset(void);

// The time of the process, in milliseconds from the first of these calls on, or in the child of a fork from the third.  -1: not known.
void    _mi_stat_start_clock(void);
int64_t _mi_stat_elapsed_ms(void);
void    _mi_stat_after_fork(void);
