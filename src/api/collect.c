// Giving memory back when the program asks for it.  Layer: api.
#include "../arena/purge.h"
#include "../heap/warm.h"
#include "../heap/thread.h"
#include "../support/stat.h"
#include "hooks.h"

void mi_collect(bool force) mi_attr_noexcept {
  _mi_hooks_deferred_free(force);
  _mi_warm_collect();
  if (force) _mi_purge_to(0);
}

// Bytes of pages and large blocks, and what other threads keep: what cannot go back here.
static size_t collect_held(void) {
  int64_t pages = mi_load_relaxed(&_mi_stat_live.page_committed.current);
  int64_t large = mi_load_relaxed(&_mi_stat_live.malloc_huge.current);
  size_t  backed = _mi_purge_n_backed(), purgeable = _mi_chunk_purgeable();
  size_t  n_kept = backed - mi_min(backed, purgeable);
  return (pages > 0 ? (size_t)pages : 0) + (large > 0 ? (size_t)large : 0) + n_kept * MI_SLICE_SIZE;
}

void mi_collect_reduce(size_t target) mi_attr_noexcept {
  if (target > 0 && collect_held() + _mi_chunk_purgeable() * MI_SLICE_SIZE <= target) return;
  mi_collect(false);
  size_t held = collect_held(); // less, if pages became empty
  _mi_purge_to((target - mi_min(target, held)) / MI_SLICE_SIZE);
}
