// Giving back what shared pages do not use.  Layer: heap.  See hollow.h.
#include "hollow.h"

#include "../arena/hole.h"
#include "../arena/purge.h"
#include "gaps.h"
#include "idle.h"
#include "pool.h"
#include "queue.h"

#define HOLLOW_ROUNDS 40  // HO1: four seconds, as long as memory is held at most (arena/recall.h)
#define HOLLOW_AGAIN  200 // HO1: for a list that stays as it is
#define HOLLOW_PAGES  128 // so many pages in a round, 2 ms
#define HOLLOW_MOST   (MI_SLICE_SIZE / 4 * 5)

// What rounds have seen of a list of a pool, under their lock.
typedef struct hollow_list_s {
  mi_page_t* first;
  uint8_t    n_quiet; // rounds
  bool       is_done; // since it is quiet
} hollow_list_t;

static mi_mostly_unused hollow_list_t hollow_lists[MI_POOLS][MI_POOL_LISTS];

// ---- pages ----------------------------------------------------------------------------------------------------------

// HO2
static bool hollow_wants_blocks(const mi_page_t* page, size_t n_free) {
  size_t n_used = page->capacity - n_free, size = _mi_page_block_size(page);
  return n_used * (_mi_prim_os_page_size() + size) <= HOLLOW_MOST && !_mi_page_has(page, MI_PAGE_IN_HEAP);
}

// HO3
static bool hollow_wants_gaps(const mi_page_t* page, size_t n_free) {
  size_t n_then = _mi_gap_map_at(page->gap_map)->n_hollow, n_used = page->capacity - n_free;
  return n_then == 0 || n_used < n_then - n_then / 4;
}

// The OS pages that lie in gaps.
static void hollow_give(mi_gap_map_t* map) {
  mi_page_t* page = map->page;
  uintptr_t  start = (uintptr_t)_mi_page_start(page);
  size_t     os_page = _mi_prim_os_page_size();
  map->n_hollow = _mi_page_used(page);
  for (size_t i = 0, n; i < MI_GAP_UNITS; i += n) {
    n = _mi_gap_map_length(map, i);
    uintptr_t from = mi_align_up(start + i * MI_GAP_UNIT, os_page);
    uintptr_t to = mi_align_down(start + (i + n) * MI_GAP_UNIT, os_page);
    if (_mi_gap_map_has(map->blocks, i) || from >= to) continue;
    if (!_mi_hole_give(_mi_page_region(page), _mi_page_slice(page), (void*)from, to - from)) return;
  }
}

static void hollow_put_back(mi_page_t* page) {
  while (!_mi_pool_share(page, MI_PAGE_CLAIMED)) {
    _mi_page_put_free(page, _mi_page_word_take(&page->word, MI_PAGE_CLAIMED));
    if (_mi_page_used(page) == 0) {
      _mi_queue_leave_home(NULL, page);
      _mi_heap_delete_page(page);
      return;
    }
  }
}

static void hollow_page(mi_page_t* page) {
  page->next = NULL;
  mi_gap_map_t* map = _mi_gaps_claimed(page);
  if (map == NULL) {
    hollow_put_back(page);
    return;
  }
  hollow_give(map);
  _mi_gaps_share_claimed(page);
}

// ---- lists ----------------------------------------------------------------------------------------------------------

// Up to *n pages; *n is less those.  Who looks at the pages of all threads does not find them CLAIMED.
static void hollow_list(size_t k, size_t i, size_t* n) {
  _mi_lock_acquire(&_mi_idle_lock);
  mi_page_t* page = _mi_pool_claim(k, i, i == MI_POOL_GAPS ? &hollow_wants_gaps : &hollow_wants_blocks, n);
  for (mi_page_t* next; page != NULL; page = next) {
    next = page->next;
    hollow_page(page);
  }
  _mi_lock_release(&_mi_idle_lock);
}

// HO1: true if it is time for the list.
static bool hollow_is_due(hollow_list_t* list, mi_page_t* first) {
  if (first != list->first) {
    list->first = first;
    list->n_quiet = 0;
    list->is_done = false;
  }
  else if (++list->n_quiet >= HOLLOW_AGAIN) {
    list->n_quiet = HOLLOW_ROUNDS;
    list->is_done = false;
  }
  return first != NULL && !list->is_done && list->n_quiet >= HOLLOW_ROUNDS;
}

// True if there will be more to do.
static bool hollow_look_at(mi_pool_t* pools, size_t k, size_t i, size_t* n) {
  hollow_list_t* list = &hollow_lists[k][i];
  if (hollow_is_due(list, mi_load_relaxed(&pools[k].first[i])) && *n > 0) {
    hollow_list(k, i, n);
    list->first = mi_load_relaxed(&pools[k].first[i]); // that was us
    list->is_done = (*n > 0);
  }
  return list->first != NULL && !list->is_done;
}

bool _mi_hollow_round(void) {
  size_t     n_pools, n = HOLLOW_PAGES;
  bool       more = false;
  mi_pool_t* pools = _mi_pool_all(&_mi_heap_main, &n_pools);
  if (!MI_GAPS || !_mi_purge_has_thread()) return false; // HO4
  for (size_t k = 0; k < n_pools; k++) {
    for (size_t i = 0; i < MI_POOL_LISTS; i++) {
      bool has_gaps = (i == MI_POOL_GAPS ? k == 0 : _mi_gaps_fits(i));
      if (has_gaps && hollow_look_at(pools, k, i, &n)) more = true;
    }
  }
  return more;
}
