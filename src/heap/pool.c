// Shared pages.  Layer: heap.
#include "pool.h"

#include "../support/stat.h"

typedef struct mi_pool_s {
  mi_lock_t             lock;
  mi_atomic(mi_page_t*) first;
} mi_pool_t;

static mi_pool_t pools[MI_CLASS_COUNT];

static void pool_push(mi_pool_t* pool, mi_page_t* page) {
  mi_page_t* first = mi_load_relaxed(&pool->first);
  page->next = first;
  page->prev = NULL;
  if (first != NULL) first->prev = page;
  mi_store_relaxed(&pool->first, page);
  _mi_stat_increase(&_mi_stats.pages_abandoned, 1);
}

static void pool_unlink(mi_pool_t* pool, mi_page_t* page) {
  if (page->prev != NULL) page->prev->next = page->next;
  else mi_store_relaxed(&pool->first, page->next);
  if (page->next != NULL) page->next->prev = page->prev;
  page->next = page->prev = NULL;
  _mi_stat_decrease(&_mi_stats.pages_abandoned, 1);
}

bool _mi_pool_share(mi_page_t* page, mi_page_state_t held) {
  mi_pool_t* pool = &pools[page->cls];
  mi_chain_t free;
  _mi_lock_acquire(&pool->lock);
  free.first = page->free;
  free.count = page->capacity - _mi_page_used(page);
  page->free = NULL; // it goes with the word
  pool_push(pool, page);
  bool shared = _mi_page_word_share(&page->word, held, free);
  if (!shared) {
    page->free = free.first;
    pool_unlink(pool, page);
  }
  _mi_lock_release(&pool->lock);
  return shared;
}

void _mi_page_regain(mi_page_t* page, mi_chain_t free) {
  size_t n_unmade = (size_t)(page->capacity - page->extended);
  mi_assert_internal(page->free == NULL && free.count >= n_unmade);
  page->free = free.first;
  _mi_page_set_used(page, page->extended - (free.count - n_unmade));
  mi_assert_expensive(_mi_page_is_valid(page));
}

mi_page_t* _mi_pool_adopt(size_t cls, mi_theap_t* home) {
  mi_pool_t* pool = &pools[cls];
  mi_chain_t free;
  if (mi_load_relaxed(&pool->first) == NULL) return NULL;
  _mi_lock_acquire(&pool->lock);
  mi_page_t* page = mi_load_relaxed(&pool->first);
  for (; page != NULL; page = page->next) {
    _mi_page_set_home(page, home); // before the word (P4); harmless if a claimer was faster, it deletes the page
    if (_mi_page_word_adopt(&page->word, &free)) {
      pool_unlink(pool, page);
      break;
    }
  }
  _mi_lock_release(&pool->lock);
  if (page == NULL) return NULL;
  _mi_page_regain(page, free);
  _mi_stat_count(&_mi_stats.pages_reclaim_on_alloc, 1);
  return page;
}

void _mi_pool_remove(mi_page_t* page) {
  mi_pool_t* pool = &pools[page->cls];
  _mi_lock_acquire(&pool->lock);
  pool_unlink(pool, page);
  _mi_lock_release(&pool->lock);
}

void _mi_pool_lock_all(void) {
  for (size_t i = 0; i < MI_CLASS_COUNT; i++) _mi_lock_acquire(&pools[i].lock);
}

void _mi_pool_unlock_all(void) {
  for (size_t i = 0; i < MI_CLASS_COUNT; i++) _mi_lock_release(&pools[i].lock);
}
