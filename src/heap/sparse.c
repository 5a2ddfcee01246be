// Pages that hold little.  Layer: heap.  sparse.h has the rules.
#include "sparse.h"

#include "gaps.h"
#include "pool.h"

// SP1
#define SPARSE_SHARE 4
#define SPARSE_MIN   (2 * MI_MiB)

// SP2
#define SPARSE_PERIOD       16 // after a look that found too much
#define SPARSE_PERIOD_ELSE  32
#define SPARSE_PERIOD_SHARE 32

// So many pages become gap pages at a time, or this share of all.
#define SPARSE_PAGES       64
#define SPARSE_PAGES_SHARE 8

// A class keeps so many pages with room for itself, and this number times as many as it had refills since the last look.
#define SPARSE_KEPT  2
#define SPARSE_AHEAD 4

// SP3
#define SPARSE_TRIES 4

// SP4
#define SPARSE_SHARED_MIN (32 * MI_MiB)

typedef struct sparse_s {
  size_t n_free;  // bytes
  size_t n_pages; // of one slice
} sparse_t;

static size_t sparse_free_bytes(const mi_page_t* page) {
  return (page->capacity - _mi_page_used(page)) * _mi_page_block_size(page);
}

static void sparse_count(const mi_theap_t* theap, sparse_t* sum) {
  sum->n_free = (theap->gaps == NULL ? 0 : theap->gaps->n_free * MI_GAP_UNIT);
  sum->n_pages = (theap->gaps == NULL ? 0 : theap->gaps->n_pages);
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    const mi_class_state_t* state = &theap->classes[cls];
    if (!_mi_gaps_fits(cls)) continue;
    for (const mi_page_t* page = state->queue.first; page != NULL; page = page->next)
      sum->n_free += sparse_free_bytes(page);
    sum->n_pages += mi_max(state->queue.count + state->full.count, state->n_pages);
  }
}

static bool sparse_holds_little(const mi_page_t* page) {
  return sparse_free_bytes(page) >= MI_SLICE_SIZE / SPARSE_SHARE;
}

static size_t sparse_make_of(mi_theap_t* theap, size_t cls, size_t n_max) {
  mi_page_list_t* queue = &theap->classes[cls].queue;
  mi_page_t*      page = queue->last;
  size_t          n = 0, kept = SPARSE_KEPT + SPARSE_AHEAD * (size_t)theap->classes[cls].n_refills;
  for (mi_page_t* prev; n < n_max && page != NULL && queue->count > kept; page = prev) {
    prev = page->prev;
    if (sparse_holds_little(page) && _mi_gaps_make(theap, page)) n++;
  }
  return n;
}

// Each time it begins with the class after that at which it ended.
static size_t sparse_make(mi_theap_t* theap, size_t for_cls, size_t n_max) {
  size_t n = 0;
  for (size_t i = 0; i < MI_CLASS_COUNT && n < n_max; i++) {
    theap->sparse_cls = (theap->sparse_cls + 1) % MI_CLASS_COUNT;
    if (theap->sparse_cls != for_cls && _mi_gaps_fits(theap->sparse_cls))
      n += sparse_make_of(theap, theap->sparse_cls, n_max - n);
  }
  return n;
}

// Of pages that no thread has: the theap's own, which it has let go of, or those of ended threads.  The first of a class that is
// not sparse is left in the theap's queue, until the theap lets go of it again.
static size_t sparse_adopt(mi_theap_t* theap, size_t cls, size_t n_max) {
  size_t     n = 0;
  mi_page_t* page;
  for (bool goes_on = true; goes_on && n < n_max && (page = _mi_pool_adopt(cls, theap)) != NULL; n += goes_on) {
    _mi_queue_add(theap, page);
    goes_on = sparse_holds_little(page) && _mi_gaps_make(theap, page);
  }
  return n;
}

static size_t sparse_adopt_all(mi_theap_t* theap, size_t for_cls) {
  size_t n = 0;
  for (size_t cls = 0; cls < MI_CLASS_COUNT && n < SPARSE_PAGES; cls++) {
    if (cls != for_cls && theap->classes[cls].n_refills == 0 && _mi_gaps_fits(cls))
      n += sparse_adopt(theap, cls, SPARSE_PAGES - n);
  }
  return n;
}

static bool sparse_is(const sparse_t* sum) {
  return sum->n_free >= SPARSE_MIN && sum->n_free >= sum->n_pages * MI_SLICE_SIZE / SPARSE_SHARE;
}

// Nobody has counted what is free in shared pages; but each has room.
static bool sparse_has_shared(const mi_theap_t* theap) {
  size_t   min = (theap->was_emptied ? SPARSE_MIN : SPARSE_SHARED_MIN);
  int64_t  n = _mi_pool_count().current;
  sparse_t sum;
  if (n < (int64_t)(min / MI_SLICE_SIZE)) return false;
  sparse_count(theap, &sum);
  return (size_t)n >= sum.n_pages / SPARSE_SHARE;
}

static void sparse_look(mi_theap_t* theap, size_t cls) {
  sparse_t sum;
  _mi_gaps_collect(theap, SPARSE_PAGES);
  sparse_count(theap, &sum);
  theap->n_to_look = (uint32_t)(sparse_is(&sum) ? 0 : mi_max(SPARSE_PERIOD_ELSE, sum.n_pages / SPARSE_PERIOD_SHARE));
  if (sparse_is(&sum)) sparse_make(theap, cls, mi_max(SPARSE_PAGES, sum.n_pages / SPARSE_PAGES_SHARE));
  for (size_t i = 0; i < MI_CLASS_COUNT; i++) theap->classes[i].n_refills = 0;
}

static bool sparse_serves(mi_theap_t* theap, size_t cls) {
  return _mi_gaps_fits(cls) && mi_load_relaxed(&theap->thread) != NULL;
}

static mi_chain_t sparse_take_own(mi_theap_t* theap, size_t cls) {
  const mi_chain_t none = {NULL, 0};
  return theap->gaps == NULL ? none : _mi_gaps_take(theap, cls);
}

mi_chain_t _mi_sparse_take(mi_theap_t* theap, size_t cls) {
  mi_chain_t chain = {NULL, 0};
  if (!sparse_serves(theap, cls)) return chain;
  chain = sparse_take_own(theap, cls);
  if (chain.first != NULL) return chain;
  if (theap->gaps != NULL) theap->gaps->n_quiet = 0; // gaps.h, GP7
  if (++theap->n_page_requests < mi_max(SPARSE_PERIOD, theap->n_to_look)) return chain;
  theap->n_page_requests = 0;
  sparse_look(theap, cls);
  return sparse_take_own(theap, cls);
}

// ---- shared pages -------------------------------------------------------------------------------------------------------

static void sparse_look_at_shared(mi_theap_t* theap, size_t cls) {
  if (sparse_has_shared(theap)) sparse_adopt_all(theap, cls);
  theap->was_emptied = false;
}

mi_chain_t _mi_sparse_take_shared(mi_theap_t* theap, size_t cls) {
  mi_chain_t chain = {NULL, 0};
  mi_page_t* page;
  if (!sparse_serves(theap, cls)) return chain;
  for (int tries = 0; tries < SPARSE_TRIES && chain.first == NULL; tries++) {
    if ((page = _mi_pool_adopt(MI_POOL_GAPS, theap)) == NULL) break;
    if (_mi_gaps_adopt(theap, page)) chain = _mi_gaps_take(theap, cls);
  }
  if (chain.first != NULL || ++theap->n_page_misses < SPARSE_PERIOD) return chain;
  theap->n_page_misses = 0;
  sparse_look_at_shared(theap, cls);
  return sparse_take_own(theap, cls);
}
