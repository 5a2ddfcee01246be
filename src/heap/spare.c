// Empty pages that wait.  Layer: heap.  See spare.h.
#include "spare.h"

#include "../arena/purge.h"
#include "../arena/purge_keep.h"
#include "../arena/space.h"
#include "../support/stat.h"

// Up to this size blocks are linked anew: their links are in lines that another processor may have written last, and a list in the
// order of frees is followed through them one by one.
#define SPARE_UNMAKE_MAX MI_KiB

typedef struct spare_class_s {
  mi_atomic(mi_page_t*) first;
  mi_atomic(uint32_t)   n_wanted;        // in this round so far
  uint32_t              n_wanted_before; // in the last one
  uint32_t              n;               // under the lock, as what follows
  uint32_t              n_low;           // least of those in this round
} spare_class_t;

mi_lock_t _mi_spare_lock;

static spare_class_t     spares[MI_CLASS_COUNT];
static mi_atomic(size_t) spare_n_slices;

// What waits is no page for the statistics, but free memory (EP3).
static void spare_count(size_t n_slices, bool is_page) {
  int64_t bytes = (int64_t)(n_slices * MI_SLICE_SIZE);
  _mi_stat_change(&_mi_stat_live.pages, is_page ? 1 : -1);
  _mi_stat_change(&_mi_stat_live.page_committed, is_page ? bytes : -bytes);
}

// It is going to be deleted, which counts it as gone: it was that already, and is not made once more.
static void spare_uncount_wait(size_t n_slices) {
  _mi_stat_restore(&_mi_stat_live.pages, 1);
  _mi_stat_restore(&_mi_stat_live.page_committed, (int64_t)(n_slices * MI_SLICE_SIZE));
}

// ---- keeping ----------------------------------------------------------------------------------------------------------

static bool spare_may_keep(const mi_page_t* page) {
  return !MI_HARDENED && !MI_TRACK && _mi_page_kind(page) == MI_PAGE_BLOCKS && !_mi_page_has(page, MI_PAGE_IN_HEAP) &&
         _mi_page_region(page)->origin == MI_REGION_OWN && !mi_load_relaxed(&_mi_space_is_short);
}

// EP2, EP3
static bool spare_allow(spare_class_t* spare, size_t n_slices) {
  uint32_t n_wanted = mi_load_relaxed(&spare->n_wanted);
  return spare->n < mi_max(n_wanted, spare->n_wanted_before) && _mi_purge_keep_waiting(n_slices);
}

bool _mi_spare_keep(mi_page_t* page) {
  spare_class_t* spare = &spares[page->cls];
  if (!spare_may_keep(page)) return false;
  _mi_lock_acquire(&_mi_spare_lock);
  size_t n_slices = page->n_slices; // somebody else's when the lock is released
  bool   ok = spare_allow(spare, n_slices);
  if (ok) {
    _mi_page_set_home(page, NULL);
    page->next = mi_load_relaxed(&spare->first);
    mi_store_relaxed(&spare->first, page);
    spare->n++;
    mi_store_relaxed(&spare_n_slices, mi_load_relaxed(&spare_n_slices) + n_slices);
  }
  _mi_lock_release(&_mi_spare_lock);
  if (ok) spare_count(n_slices, false);
  return ok;
}

// The caller holds the lock, and there is one.
static mi_page_t* spare_pop(spare_class_t* spare, bool is_used) {
  mi_page_t* page = mi_load_relaxed(&spare->first);
  mi_store_relaxed(&spare->first, page->next);
  if (--spare->n < spare->n_low) spare->n_low = spare->n;
  mi_store_relaxed(&spare_n_slices, mi_load_relaxed(&spare_n_slices) - page->n_slices);
  _mi_purge_keep_end_wait(page->n_slices, is_used);
  return page;
}

// As a page that was just made: its blocks are linked anew, in the order of their addresses.
static void spare_unmake(mi_page_t* page) {
  page->free = NULL;
  page->extended = 0;
  _mi_page_clear(page, MI_PAGE_IS_ZERO);
}

mi_page_t* _mi_spare_take(size_t cls, mi_theap_t* home) {
  spare_class_t* spare = &spares[cls];
  if (MI_HARDENED || MI_TRACK || _mi_theap_heap(home) != &_mi_heap_main) return NULL;
  mi_store_relaxed(&spare->n_wanted, mi_load_relaxed(&spare->n_wanted) + 1); // of two at the same time one may be lost
  if (mi_load_relaxed(&spare->first) == NULL) return NULL;
  _mi_lock_acquire(&_mi_spare_lock);
  mi_page_t* page = (spare->n == 0 ? NULL : spare_pop(spare, true));
  _mi_lock_release(&_mi_spare_lock);
  if (page == NULL) return NULL;
  spare_count(page->n_slices, true);
  page->next = NULL;
  if (_mi_page_block_size(page) <= SPARE_UNMAKE_MAX) spare_unmake(page);
  _mi_page_set_home(page, home); // before the word (P4)
  mi_store_release(&page->word, _mi_page_word_make(MI_PAGE_OWNED, 0, NULL));
  return page;
}

// ---- giving back ------------------------------------------------------------------------------------------------------

// So many slices or a few more, linked by `next`.  The caller holds the lock.
static mi_page_t* spare_pop_some(spare_class_t* spare, size_t n_slices) {
  mi_page_t* pages = NULL;
  for (size_t n = 0; n < n_slices && spare->n > 0;) {
    mi_page_t* page = spare_pop(spare, false);
    n += page->n_slices;
    page->next = pages;
    pages = page;
  }
  return pages;
}

// How many slices that were.
static size_t spare_delete(mi_page_t* pages) {
  size_t n_slices = 0;
  for (mi_page_t *page = pages, *next; page != NULL; page = next) {
    next = page->next;
    n_slices += page->n_slices;
    spare_uncount_wait(page->n_slices);
    _mi_page_delete(page);
  }
  return n_slices;
}

static size_t spare_drop(spare_class_t* spare, size_t n) {
  if (mi_load_relaxed(&spare->first) == NULL) return 0;
  _mi_lock_acquire(&_mi_spare_lock);
  mi_page_t* pages = spare_pop_some(spare, n);
  _mi_lock_release(&_mi_spare_lock);
  return spare_delete(pages);
}

bool _mi_spare_relieve(size_t n) {
  size_t n_given = 0;
  if (mi_likely(mi_load_relaxed(&spare_n_slices) == 0)) return false;
  for (size_t cls = MI_CLASS_COUNT; cls > 0 && n_given < n; cls--) n_given += spare_drop(&spares[cls - 1], n - n_given);
  return n_given > 0;
}

bool _mi_spare_make_room(size_t cls) {
  size_t n = _mi_size_class_info[cls].n_slices;
  if (mi_likely(mi_load_relaxed(&spare_n_slices) == 0)) return false;
  return (_mi_size_class_block(cls) > MI_SLICE_SIZE || _mi_chunk_purgeable() < n) && _mi_spare_relieve(n);
}

void _mi_spare_drop_all(void) {
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) spare_drop(&spares[cls], SIZE_MAX);
}

void _mi_spare_drop_unused(void) {
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    spare_class_t* spare = &spares[cls];
    _mi_lock_acquire(&_mi_spare_lock);
    mi_page_t* pages = spare_pop_some(spare, spare->n_low * _mi_size_class_info[cls].n_slices);
    spare->n_low = spare->n;
    spare->n_wanted_before = mi_exchange_acq_rel(&spare->n_wanted, 0u);
    _mi_lock_release(&_mi_spare_lock);
    spare_delete(pages);
  }
}

void _mi_spare_forget(void) {
  _mi_purge_keep_end_wait(mi_load_relaxed(&spare_n_slices), false);
  mi_store_relaxed(&spare_n_slices, (size_t)0);
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    mi_store_relaxed(&spares[cls].first, (mi_page_t*)NULL);
    spares[cls].n = spares[cls].n_low = 0;
  }
}
