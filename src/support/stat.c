// Statistics of the process.  Layer: support.  Owns _mi_stat_live.
#include "stat.h"

#include "../prim/prim.h"

mi_static_assert(sizeof(size_t) != 8 || sizeof(mi_stats_t) == (MI_STAT_VERSION == 4 ? 4168 : 4368),
                 "programs have the layouts of these versions compiled in");

mi_live_stats_t _mi_stat_live;

static int64_t stat_max(int64_t a, int64_t b) {
  return a > b ? a : b;
}

mi_stat_count_t _mi_stat_read(mi_live_count_t* live) {
  mi_stat_count_t count;
  int64_t         total = mi_load_relaxed(&live->total);
  count.current = stat_max(0, mi_load_relaxed(&live->current));
  count.peak = stat_max(count.current, mi_load_relaxed(&live->peak));
  count.total = (total < 0 ? INT64_MAX : stat_max(count.peak, total)); // it only grows: that is from 8 EiB on
  return count;
}

// System calls are counted where they are made (prim/prim.h), those of a program's commit functions here: the
// difference to what the first were at the last reset.
static mi_prim_calls_t stat_calls_before;

#define STAT_CALLS(call)       stat_max(0, mi_load_relaxed(&_mi_prim_calls.call) - mi_load_relaxed(&stat_calls_before.call))
#define STAT_RESET_CALLS(call) mi_store_relaxed(&stat_calls_before.call, mi_load_relaxed(&_mi_prim_calls.call))

void _mi_stat_snapshot(mi_stats_t* out) {
  mi_stats_init(out);
#define MI_STAT_COUNT(name)   out->name = _mi_stat_read(&_mi_stat_live.name);
#define MI_STAT_COUNTER(name) out->name.total = stat_max(0, mi_load_relaxed(&_mi_stat_live.name.total));
  MI_STAT_FIELDS()
#undef MI_STAT_COUNT
#undef MI_STAT_COUNTER
  out->mmap_calls.total += STAT_CALLS(map);
  out->commit_calls.total += STAT_CALLS(commit);
  out->purge_calls.total += STAT_CALLS(purge);
  out->reset_calls.total += STAT_CALLS(discard);
  out->purged.total += STAT_CALLS(n_purged);
  out->reset.total += STAT_CALLS(n_discarded);
  out->pages_retire.total =
      out->pages.total - out->pages.current; // also since a reset, which sets the total to the current
}

void _mi_stat_reset_count(mi_live_count_t* live) {
  int64_t current = mi_load_relaxed(&live->current);
  mi_store_relaxed(&live->peak, current);
  mi_store_relaxed(&live->total, stat_max(0, current));
}

void _mi_stat_reset(void) {
#define MI_STAT_COUNT(name)   _mi_stat_reset_count(&_mi_stat_live.name);
#define MI_STAT_COUNTER(name) mi_store_relaxed(&_mi_stat_live.name.total, 0);
  MI_STAT_FIELDS()
#undef MI_STAT_COUNT
#undef MI_STAT_COUNTER
  STAT_RESET_CALLS(map);
  STAT_RESET_CALLS(commit);
  STAT_RESET_CALLS(purge);
  STAT_RESET_CALLS(discard);
  STAT_RESET_CALLS(n_purged);
  STAT_RESET_CALLS(n_discarded);
#if MI_API_LEVEL < 3
  _mi_stat_reset_count(&_mi_stat_live.heaps);
  _mi_stat_reset_count(&_mi_stat_live.theaps);
#endif
}

static int64_t stat_started_ms = -1;

void _mi_stat_start_clock(void) {
  stat_started_ms = _mi_prim_clock_ms();
}

int64_t _mi_stat_elapsed_ms(void) {
  return stat_started_ms < 0 ? -1 : _mi_prim_clock_ms() - stat_started_ms;
}

void _mi_stat_after_fork(void) {
  if (stat_started_ms >= 0) _mi_stat_start_clock();
}
