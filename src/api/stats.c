// Statistics as numbers.  Layer: api.
//
// Everything works on a snapshot: for the process the live counters (support/stat.h) and what theaps count, for heaps nothing but
// what a walk over their pages finds (heap/heap_stats.h); of the former, too, all numbers of blocks in size classes are from such
// a walk.
#include "stats.h"

#include <string.h>

#include "../heap/pool.h"
#include "../heap/subproc.h"
#include "../support/stat.h"
#include "alloc.h"
#include "subproc.h"

// Size classes and bins of the statistics are the same, up to the last bin: it takes all classes that are left.
#define STATS_BIN_LAST (MI_BIN_HUGE - 1)
mi_static_assert(MI_CLASS_COUNT > STATS_BIN_LAST, "each bin has a class");

size_t mi_stats_get_bin_size(size_t bin) mi_attr_noexcept {
  if (bin > MI_BIN_HUGE) return 0;
  if (bin == MI_BIN_HUGE) return PTRDIFF_MAX;
  return bin == STATS_BIN_LAST ? MI_CLASS_SIZE_MAX : _mi_size_class_block(bin);
}

// ---- snapshots ------------------------------------------------------------------------------------------------------

// Adds to a number that has no history.
static void stats_add(mi_stat_count_t* count, size_t n) {
  count->current += (int64_t)n;
  count->peak += (int64_t)n;
  count->total += (int64_t)n;
}

static void stats_add_classes(mi_stats_t* stats, const mi_heap_stats_t* blocks) {
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    const mi_class_stat_t* c = &blocks->classes[cls];
    size_t                 bin = mi_min(cls, STATS_BIN_LAST);
    stats_add(&stats->malloc_bins[bin], c->n_blocks_used);
    stats_add(&stats->page_bins[bin], c->n_pages);
    stats_add(&stats->malloc_normal, c->n_blocks_used * _mi_size_class_block(cls));
    stats->malloc_normal_count.total += (int64_t)c->n_blocks_used;
  }
  stats_add(&stats->malloc_bins[MI_BIN_HUGE], blocks->n_large);
}

static void stats_add_theaps(mi_stats_t* stats) {
  stats->malloc_huge_count.total += _mi_heap_stats_counted(MI_COUNT_LARGE_REUSED);
  stats->page_searches_count.total += _mi_heap_stats_counted(MI_COUNT_SEARCHES);
  stats->page_searches.total += _mi_heap_stats_counted(MI_COUNT_SEARCHED);
  stats->pages_reclaim_on_free.total += _mi_heap_stats_counted(MI_COUNT_CLAIMED);
  stats->pages_reclaim_on_alloc.total += _mi_heap_stats_counted(MI_COUNT_ADOPTED);
  stats->pages_reabandon_full.total += _mi_heap_stats_counted(MI_COUNT_PARKED);
}

// Pages and large blocks, which the process counts as they happen.
static void stats_add_pages(mi_stats_t* stats, const mi_heap_stats_t* blocks) {
  stats_add(&stats->pages, blocks->n_pages);
  stats_add(&stats->page_committed, blocks->n_page_bytes);
  stats_add(&stats->pages_abandoned, blocks->n_pages_shared);
  stats_add(&stats->malloc_huge, blocks->n_large_bytes);
  stats->malloc_huge_count.total += (int64_t)blocks->n_large;
}

static bool stats_add_walk(mi_snapshot_t* s, const mi_heap_t* heap, const mi_subproc_t* subproc) {
  mi_stats_t* stats = &s->stats;
  if (!_mi_heap_stats(&s->blocks, heap, subproc)) return false;
  stats_add_classes(stats, &s->blocks);
  if (!s->has_history) stats_add_pages(stats, &s->blocks);
  // The sum of two numbers of which one has no history.
  stats_add(&stats->malloc_requested, (size_t)(stats->malloc_normal.current + stats->malloc_huge.current));
  return true;
}

// What is in pages is the heaps'.
static void stats_clear_pages(mi_stats_t* stats) {
  static const mi_stat_count_t none = {0, 0, 0};
  stats->pages = stats->page_committed = stats->pages_abandoned = stats->malloc_huge = none;
  stats->malloc_huge_count.total = 0;
}

static void stats_add_heaps(mi_snapshot_t* s, const mi_heap_t* heap, const mi_subproc_t* subproc) {
  size_t n_theaps;
  size_t n_heaps = _mi_heap_stats_count(heap != NULL ? heap->subproc : subproc, heap, &n_theaps);
  stats_add(&s->heaps, heap != NULL ? 1 : n_heaps);
  stats_add(&s->theaps, n_theaps);
}

// All threads begin in the main subprocess: its total is that of the process, and its peak is that at most.
static void stats_take_off_threads(mi_stats_t* stats) {
  int64_t n = (int64_t)_mi_subproc_n_moved_threads();
  stats->threads.current -= mi_min_signed(n, stats->threads.current);
}

bool _mi_stats_take(mi_snapshot_t* s, mi_heap_t* heap, const mi_subproc_t* subproc, bool exclusive) {
  memset(s, 0, sizeof(*s));
  mi_stats_header_init(&s->stats);
  s->has_history = (heap == NULL && subproc == NULL);
  if (_mi_stats_is_main(heap, subproc)) {
    _mi_stat_snapshot(&s->stats);
    stats_add_theaps(&s->stats);
    s->stats.pages_abandoned = _mi_pool_count();
    if (subproc != NULL) stats_take_off_threads(&s->stats);
  }
  else if (subproc != NULL) {
    stats_add(&s->stats.threads, mi_load_relaxed(&((mi_subproc_t*)subproc)->n_threads));
  }
  if (s->has_history) {
    s->heaps = _mi_stat_read(&_mi_stat_live.heaps);
    s->theaps = _mi_stat_read(&_mi_stat_live.theaps);
  }
  else {
    stats_clear_pages(&s->stats);
    stats_add_heaps(s, heap, subproc);
  }
#if MI_API_LEVEL >= 3
  s->stats.heaps = s->heaps;
  s->stats.theaps = s->theaps;
#endif
  return exclusive || stats_add_walk(s, heap, subproc);
}

// ---- the public functions -------------------------------------------------------------------------------------------

static bool stats_get(mi_stats_t* stats, mi_heap_t* heap, const mi_subproc_t* subproc, bool exclusive) {
  mi_snapshot_t s;
  if (!_mi_stats_is_known(stats)) return false;
  _mi_stats_take(&s, heap, subproc, exclusive);
  *stats = s.stats;
  return true;
}

bool mi_stats_get(mi_stats_t* stats) mi_attr_noexcept {
  return stats_get(stats, NULL, NULL, false);
}

bool mi_heap_stats_get(mi_heap_t* heap, mi_stats_t* stats) mi_attr_noexcept {
  return stats_get(stats, _mi_alloc_heap(heap), NULL, false);
}

bool mi_subproc_stats_get(mi_subproc_id_t subproc_id, mi_stats_t* stats) mi_attr_noexcept {
  return stats_get(stats, NULL, _mi_subproc_of_id(subproc_id), false);
}

bool mi_subproc_stats_get_exclusive(mi_subproc_id_t subproc_id, mi_stats_t* stats) mi_attr_noexcept {
  return stats_get(stats, NULL, _mi_subproc_of_id(subproc_id), true);
}

void mi_stats_reset(void) mi_attr_noexcept {
  _mi_stat_reset();
  _mi_heap_stats_reset();
  _mi_pool_count_reset();
}

void mi_stats_merge(void) mi_attr_noexcept {
  // Threads have no numbers of their own that would have to be added.
}

void mi_heap_stats_merge_to_subproc(mi_heap_t* heap) {
  (void)heap; // nor have heaps
}
