// Shared pages.  Layer: heap.
#include "pool.h"

#include "../base/probe.h"
#include "../support/stat.h"

// So many pages of a list are looked at while its lock is held.
#define POOL_LOOKS 4096

static mi_pool_t  pool_main[MI_POOLS];
static mi_page_t* pool_last_gaps; // under the lock of their pool
static size_t     pool_n_locked;  // by a fork

mi_pool_t* _mi_pool_all(mi_heap_t* heap, size_t* n) {
  bool is_main = (heap == &_mi_heap_main);
  *n = is_main ? mi_min(_mi_registry_count(), MI_POOLS) : 1;
  return is_main ? pool_main : &heap->pool;
}

static mi_lock_t* pool_lock(mi_heap_t* heap, mi_pool_t* pool) {
  return heap == &_mi_heap_main ? &pool->lock : &heap->lock;
}

typedef mi_pool_t* pool_choice_t(mi_heap_t* heap, const mi_page_t* page);

// Where a page of that heap is to be shared.
static mi_pool_t* pool_for(mi_heap_t* heap, const mi_page_t* page) {
  if (heap != &_mi_heap_main) return &heap->pool;
  if (_mi_pool_list_of(page) == MI_POOL_GAPS) return &pool_main[0];
  return &pool_main[mi_load_relaxed(&((mi_page_t*)page)->home)->number % MI_POOLS];
}

// Where it is.
static mi_pool_t* pool_of(mi_heap_t* heap, const mi_page_t* page) {
  if (heap != &_mi_heap_main) return &heap->pool;
  return page->pool;
}

// The pool of choice, with its lock held: the heap may be deleted while we wait (heap.h, Q2).
static mi_always_inline mi_pool_t* pool_lock_one(mi_page_t* page, pool_choice_t* choice, mi_heap_t** of) {
  for (;;) {
    mi_heap_t* heap = *of = _mi_heap_of(page);
    mi_pool_t* pool = choice(heap, page);
    _mi_lock_acquire(pool_lock(heap, pool));
    if (mi_likely(heap == _mi_heap_of(page))) return pool;
    _mi_lock_release(pool_lock(heap, pool));
  }
}

// Shared pages are counted in the pools of the main heap, under their locks: with many threads a number of all pools would cost
// more than the rest.  Those of other heaps are few.
static void pool_count(mi_heap_t* heap, mi_pool_t* pool, int n) {
  if (heap != &_mi_heap_main) _mi_stat_change(&_mi_stat_live.pages_abandoned, n);
  else _mi_stat_change_alone(&pool->n_pages, n);
}

mi_stat_count_t _mi_pool_count(void) {
  size_t          n;
  mi_pool_t*      pools = _mi_pool_all(&_mi_heap_main, &n);
  mi_stat_count_t sum = _mi_stat_read(&_mi_stat_live.pages_abandoned);
  for (size_t k = 0; k < n; k++) {
    mi_stat_count_t one = _mi_stat_read(&pools[k].n_pages);
    sum.current += one.current;
    sum.peak += one.peak;
    sum.total += one.total;
  }
  return sum;
}

void _mi_pool_count_reset(void) {
  size_t     n;
  mi_pool_t* pools = _mi_pool_all(&_mi_heap_main, &n);
  for (size_t k = 0; k < n; k++) _mi_stat_reset_count(&pools[k].n_pages);
}

// ---- lists ----------------------------------------------------------------------------------------------------------

static void pool_push(mi_pool_t* pool, mi_page_t* page, size_t i) {
  mi_page_t* first = mi_load_relaxed(&pool->first[i]);
  page->next = first;
  page->prev = NULL;
  if (first != NULL) first->prev = page;
  mi_store_relaxed(&pool->first[i], page);
}

static void pool_append_gaps(mi_pool_t* pool, mi_page_t* page) {
  page->next = NULL;
  page->prev = pool_last_gaps;
  if (page->prev != NULL) page->prev->next = page;
  else mi_store_relaxed(&pool->first[MI_POOL_GAPS], page);
  pool_last_gaps = page;
}

// All gap pages are of the main heap.
static void pool_add(mi_pool_t* pool, mi_page_t* page, size_t i) {
  page->free = NULL; // what was there goes with the word
  page->pool = pool;
  if (i == MI_POOL_GAPS) pool_append_gaps(pool, page);
  else pool_push(pool, page, i);
}

static void pool_unlink(mi_pool_t* pool, mi_page_t* page, size_t i) {
  if (i == MI_POOL_GAPS && pool_last_gaps == page) pool_last_gaps = page->prev;
  if (page->prev != NULL) page->prev->next = page->next;
  else mi_store_relaxed(&pool->first[i], page->next);
  if (page->next != NULL) page->next->prev = page->prev;
  page->next = page->prev = NULL;
}

// ---- sharing and adopting -------------------------------------------------------------------------------------------

bool _mi_pool_share(mi_page_t* page, mi_page_state_t held) {
  _mi_theap_undrain(page);
  size_t     i = _mi_pool_list_of(page);
  mi_heap_t* heap;
  mi_pool_t* pool = pool_lock_one(page, &pool_for, &heap);
  mi_chain_t free;
  free.first = page->free;
  free.count = page->capacity - _mi_page_used(page);
  pool_add(pool, page, i);
  bool shared = _mi_page_word_share(&page->word, held, free);
  if (shared) {
    pool_count(heap, pool, 1);
  }
  else {
    pool_unlink(pool, page, i);
    page->free = free.first;
  }
  _mi_lock_release(pool_lock(heap, pool));
  if (!shared) return false;
  MI_PROBE3(page_share, page, _mi_page_block_size(page), free.count);
  return true;
}

// The page of list i was one of the theap `before`, and is one of `home` from now on.
static void pool_count_home(const mi_page_t* page, size_t i, mi_theap_t* before, mi_theap_t* home) {
  if (before == home || i == MI_POOL_GAPS) return;
  if (before != NULL) _mi_theap_count_left(before, page->cls);
  home->classes[page->cls].n_pages++;
}

static mi_noinline mi_page_t* pool_adopt_from(mi_heap_t* heap, mi_pool_t* pool, size_t i, mi_theap_t* home) {
  mi_chain_t free;
  _mi_lock_acquire(pool_lock(heap, pool));
  mi_page_t* page = mi_load_relaxed(&pool->first[i]);
  // What cannot be adopted has a claimer that waits for this lock, and each of them waits for one page.
  for (; page != NULL; page = page->next) {
    mi_theap_t* before = mi_load_relaxed(&page->home);
    pool_count_home(page, i, before, home);
    _mi_page_set_home(page, home); // before the word (P4); harmless if a claimer was faster, it deletes the page
    if (_mi_page_word_adopt(&page->word, MI_PAGE_OWNED, &free)) {
      pool_unlink(pool, page, i);
      pool_count(heap, pool, -1);
      break;
    }
  }
  _mi_lock_release(pool_lock(heap, pool));
  if (page == NULL) return NULL;
  page->free = NULL; // no pool from now on
  _mi_page_unpack(page, free);
  _mi_theap_count(home, MI_COUNT_ADOPTED, 1);
  MI_PROBE3(page_adopt, page, _mi_page_block_size(page), free.count);
  return page;
}

mi_page_t* _mi_pool_adopt(size_t i, mi_theap_t* home) {
  mi_heap_t* heap =
      _mi_theap_heap(home); // when it has ended its pool is empty, or its page serves as well (heap.h, Q8)
  size_t     n;
  mi_pool_t* pools = _mi_pool_all(heap, &n);
  mi_page_t* page = NULL;
  if (i == MI_POOL_GAPS) n = 1;
  size_t at = (n == 1 ? 0 : home->number % MI_POOLS);
  for (size_t k = 0; k < n && page == NULL; k++) {
    if (mi_load_relaxed(&pools[at].first[i]) != NULL) page = pool_adopt_from(heap, &pools[at], i, home);
    if (++at == n) at = 0;
  }
  return page;
}

mi_page_t* _mi_pool_claim(size_t k, size_t i, bool (*wants)(const mi_page_t* page, size_t n_free), size_t* n) {
  mi_pool_t* pool = &pool_main[k];
  mi_page_t* claimed = NULL;
  size_t     n_looks = POOL_LOOKS;
  _mi_lock_acquire(&pool->lock);
  mi_page_t* page = mi_load_relaxed(&pool->first[i]);
  for (mi_page_t* next; page != NULL && *n > 0 && n_looks > 0; page = next, n_looks--) {
    uint64_t   word = mi_load_relaxed(&page->word);
    mi_chain_t free = _mi_page_word_chain(word);
    next = page->next;
    if (_mi_page_word_state(word) != MI_PAGE_SHARED || !wants(page, free.count)) continue;
    if (!_mi_page_word_adopt(&page->word, MI_PAGE_CLAIMED, &free)) continue;
    pool_unlink(pool, page, i);
    pool_count(&_mi_heap_main, pool, -1);
    page->free = NULL; // no pool from now on
    _mi_page_unpack(page, free);
    page->next = claimed;
    claimed = page;
    --*n;
  }
  _mi_lock_release(&pool->lock);
  return claimed;
}

void _mi_pool_remove(mi_page_t* page) {
  mi_heap_t* heap;
  mi_pool_t* pool = pool_lock_one(page, &pool_of, &heap);
  pool_unlink(pool, page, _mi_pool_list_of(page));
  pool_count(heap, pool, -1);
  _mi_lock_release(pool_lock(heap, pool));
  page->free = NULL; // no pool from now on
}

// ---- when a thread forks, or a heap ends ------------------------------------------------------------------------------

// Is it the first one of its list in some pool?
static bool pool_begins_with(mi_heap_t* heap, const mi_page_t* page, size_t i) {
  size_t     n;
  mi_pool_t* pools = _mi_pool_all(heap, &n);
  while (n > 0 && mi_load_relaxed(&pools[n - 1].first[i]) != page) n--;
  return n > 0;
}

// A claimed page that has left its pool may have anything in the place of `pool`.
void _mi_pool_forget(mi_page_t* page) {
  size_t     i = _mi_pool_list_of(page);
  mi_heap_t* heap = _mi_heap_of(page);
  if (page->prev == NULL && !pool_begins_with(heap, page, i)) return;
  mi_pool_t* pool = pool_of(heap, page);
  pool_unlink(pool, page, i);
  pool_count(heap, pool, -1);
}

void _mi_pool_hand_over(mi_heap_t* from, void (*change)(mi_heap_t* from, mi_page_t* page), size_t* n_max) {
  for (size_t i = 0; i < MI_POOL_LISTS; i++) {
    for (mi_page_t* page; *n_max > 0 && (page = mi_load_relaxed(&from->pool.first[i])) != NULL; --*n_max) {
      mi_pool_t* pool = pool_for(&_mi_heap_main, page);
      _mi_lock_acquire(pool_lock(&_mi_heap_main, pool));
      pool_unlink(&from->pool, page, i);
      pool_add(pool, page, i); // before its claimer is told that its heap is the main one
      pool_count(from, &from->pool, -1);
      pool_count(&_mi_heap_main, pool, 1);
      change(from, page);
      _mi_lock_release(pool_lock(&_mi_heap_main, pool));
    }
  }
}

void _mi_pool_clear(mi_heap_t* heap) {
  for (size_t i = 0; i < MI_POOL_LISTS; i++) mi_store_relaxed(&heap->pool.first[i], (mi_page_t*)NULL);
}

void _mi_pool_lock_main(void) {
  size_t     n;
  mi_pool_t* pools = _mi_pool_all(&_mi_heap_main, &n);
  for (size_t k = 0; k < n; k++) _mi_lock_acquire(&pools[k].lock);
  pool_n_locked = n;
}

void _mi_pool_unlock_main(void) {
  for (size_t k = 0; k < pool_n_locked; k++) _mi_lock_release(&pool_main[k].lock);
}
