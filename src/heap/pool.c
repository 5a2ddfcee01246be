// Shared pages.  Layer: heap.
#include "pool.h"

#include "../base/probe.h"
#include "../support/stat.h"

static mi_page_t* pool_last_gaps; // under the lock of their pool

static mi_lock_t* pool_lock(mi_heap_t* heap, size_t i) {
  return heap == &_mi_heap_main ? &heap->pools[i].lock : &heap->lock;
}

// The heap of a page, with the lock of its pool, the i-th, held: the heap may be deleted while we wait (heap.h, Q2).
static mi_heap_t* pool_lock_of(mi_page_t* page, size_t i) {
  for (;;) {
    mi_heap_t* heap = _mi_heap_of(page);
    _mi_lock_acquire(pool_lock(heap, i));
    if (mi_likely(heap == _mi_heap_of(page))) return heap;
    _mi_lock_release(pool_lock(heap, i));
  }
}

static void pool_push(mi_pool_t* pool, mi_page_t* page) {
  mi_page_t* first = mi_load_relaxed(&pool->first);
  page->next = first;
  page->prev = NULL;
  if (first != NULL) first->prev = page;
  mi_store_relaxed(&pool->first, page);
}

// All gap pages are of the main heap.
static bool pool_is_of_gaps(const mi_pool_t* pool) {
  return pool == &_mi_heap_main.pools[MI_POOL_GAPS];
}

static void pool_append_gaps(mi_pool_t* pool, mi_page_t* page) {
  page->next = NULL;
  page->prev = pool_last_gaps;
  if (page->prev != NULL) page->prev->next = page;
  else mi_store_relaxed(&pool->first, page);
  pool_last_gaps = page;
}

static void pool_add(mi_pool_t* pool, mi_page_t* page) {
  if (pool_is_of_gaps(pool)) pool_append_gaps(pool, page);
  else pool_push(pool, page);
}

static void pool_unlink(mi_pool_t* pool, mi_page_t* page) {
  if (pool_is_of_gaps(pool) && pool_last_gaps == page) pool_last_gaps = page->prev;
  if (page->prev != NULL) page->prev->next = page->next;
  else mi_store_relaxed(&pool->first, page->next);
  if (page->next != NULL) page->next->prev = page->prev;
  page->next = page->prev = NULL;
}

bool _mi_pool_share(mi_page_t* page, mi_page_state_t held) {
  _mi_theap_undrain(page);
  size_t     i = _mi_pool_of(page);
  mi_heap_t* heap = pool_lock_of(page, i);
  mi_pool_t* pool = &heap->pools[i];
  mi_chain_t free;
  free.first = page->free;
  free.count = page->capacity - _mi_page_used(page);
  page->free = NULL; // it goes with the word
  pool_add(pool, page);
  bool shared = _mi_page_word_share(&page->word, held, free);
  if (!shared) {
    page->free = free.first;
    pool_unlink(pool, page);
  }
  _mi_lock_release(pool_lock(heap, i));
  if (!shared) return false;
  _mi_stat_increase(&_mi_stat_live.pages_abandoned, 1);
  MI_PROBE3(page_share, page, _mi_page_block_size(page), free.count);
  return true;
}

mi_page_t* _mi_pool_adopt(size_t i, mi_theap_t* home) {
  mi_heap_t* heap =
      _mi_theap_heap(home); // when it has ended its pool is empty, or its page serves as well (heap.h, Q8)
  mi_pool_t* pool = &heap->pools[i];
  mi_chain_t free;
  if (mi_load_relaxed(&pool->first) == NULL) return NULL;
  _mi_lock_acquire(pool_lock(heap, i));
  mi_page_t* page = mi_load_relaxed(&pool->first);
  // What cannot be adopted has a claimer that waits for this lock, and each of them waits for one page.
  for (; page != NULL; page = page->next) {
    _mi_page_set_home(page, home); // before the word (P4); harmless if a claimer was faster, it deletes the page
    if (_mi_page_word_adopt(&page->word, &free)) {
      pool_unlink(pool, page);
      break;
    }
  }
  _mi_lock_release(pool_lock(heap, i));
  if (page == NULL) return NULL;
  _mi_page_unpack(page, free);
  _mi_stat_decrease(&_mi_stat_live.pages_abandoned, 1);
  _mi_stat_count(&_mi_stat_live.pages_reclaim_on_alloc, 1);
  MI_PROBE3(page_adopt, page, _mi_page_block_size(page), free.count);
  return page;
}

void _mi_pool_remove(mi_page_t* page) {
  size_t     i = _mi_pool_of(page);
  mi_heap_t* heap = pool_lock_of(page, i);
  pool_unlink(&heap->pools[i], page);
  _mi_lock_release(pool_lock(heap, i));
  _mi_stat_decrease(&_mi_stat_live.pages_abandoned, 1);
}

void _mi_pool_forget(mi_page_t* page) {
  mi_pool_t* pool = &_mi_heap_of(page)->pools[_mi_pool_of(page)];
  if (page->next == NULL && page->prev == NULL && mi_load_relaxed(&pool->first) != page) return;
  pool_unlink(pool, page);
  _mi_stat_decrease(&_mi_stat_live.pages_abandoned, 1);
}

void _mi_pool_hand_over(mi_heap_t* from, void (*change)(mi_heap_t* from, mi_page_t* page), size_t* n_max) {
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    mi_pool_t* pool = &from->pools[cls];
    if (mi_load_relaxed(&pool->first) == NULL) continue;
    _mi_lock_acquire(pool_lock(&_mi_heap_main, cls));
    for (mi_page_t* page; *n_max > 0 && (page = mi_load_relaxed(&pool->first)) != NULL; --*n_max) {
      pool_unlink(pool, page);
      change(from, page);
      pool_push(&_mi_heap_main.pools[cls], page);
    }
    _mi_lock_release(pool_lock(&_mi_heap_main, cls));
  }
}

void _mi_pool_lock_main(void) {
  for (size_t i = 0; i < MI_POOL_COUNT; i++) _mi_lock_acquire(&_mi_heap_main.pools[i].lock);
}

void _mi_pool_unlock_main(void) {
  for (size_t i = 0; i < MI_POOL_COUNT; i++) _mi_lock_release(&_mi_heap_main.pools[i].lock);
}
