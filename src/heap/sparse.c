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

// So many pages become gap pages at a time, or this share of all, up to a maximum.
#define SPARSE_PAGES       64
#define SPARSE_PAGES_SHARE 8
#define SPARSE_PAGES_MOST  512

// SP5
#define SPARSE_COUNTS 4096
#define SPARSE_LOOKS  2048

// A class keeps so many pages with room for itself, and this number times as many as it had refills since the last look.
#define SPARSE_KEPT  2
#define SPARSE_AHEAD 4

// SP3
#define SPARSE_TRIES 4

// SP4
#define SPARSE_SHARED_MIN (32 * MI_MiB)

static size_t sparse_free_bytes(const mi_page_t* page) {
  return (page->capacity - _mi_page_used(page)) * _mi_page_block_size(page);
}

// All of one slice.
static size_t sparse_n_pages(const mi_theap_t* theap) {
  size_t n = (theap->gaps == NULL ? 0 : theap->gaps->n_pages);
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    const mi_class_state_t* state = &theap->classes[cls];
    if (_mi_gaps_fits(cls)) n += mi_max(state->queue.count + state->full.count, state->n_pages);
  }
  return n;
}

// Those with room.
static size_t sparse_n_queued(const mi_theap_t* theap) {
  size_t n = 0;
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    if (_mi_gaps_fits(cls)) n += theap->classes[cls].queue.count;
  }
  return n;
}

// Counts what is free in pages of the class at hand, from the last one on; those that were counted come to the front if others are left.
static void sparse_count_class(mi_theap_t* theap, size_t* n_counts) {
  mi_sparse_t* look = &theap->sparse;
  mi_page_t*   page = theap->classes[look->cls].queue.last;
  for (; page != NULL && look->n_left > 0 && *n_counts > 0; page = page->prev, look->n_left--, --*n_counts)
    look->n_free += sparse_free_bytes(page);
  if (page == NULL) look->n_left = 0; // others have left the queue
  else if (look->n_left > 0) _mi_queue_bring_forward(theap, page);
}

// Goes on with counting.  True when it is through: *n_free is what is free then, in bytes.
static bool sparse_count(mi_theap_t* theap, size_t* n_free) {
  mi_sparse_t* look = &theap->sparse;
  size_t       n_counts = SPARSE_COUNTS;
  for (; look->cls < MI_CLASS_COUNT; look->cls++, look->is_begun = false) {
    if (!_mi_gaps_fits(look->cls)) continue;
    if (!look->is_begun) look->n_left = (uint32_t)theap->classes[look->cls].queue.count;
    look->is_begun = true;
    sparse_count_class(theap, &n_counts);
    if (look->n_left > 0) break;
  }
  _mi_theap_count(theap, MI_COUNT_SEARCHED, SPARSE_COUNTS - n_counts);
  if (look->cls < MI_CLASS_COUNT) return false;
  *n_free = look->n_free + (theap->gaps == NULL ? 0 : theap->gaps->n_free * MI_GAP_UNIT);
  look->n_free = look->cls = 0;
  return true;
}

static bool sparse_holds_little(const mi_page_t* page) {
  return sparse_free_bytes(page) >= MI_SLICE_SIZE / SPARSE_SHARE;
}

// At most *n pages, and *n_looks are looked at; both are less those.  Pages that were looked at in vain come to the front then, so
// that the others have their turn.
static void sparse_make_of(mi_theap_t* theap, size_t cls, size_t* n, size_t* n_looks) {
  mi_page_list_t* queue = &theap->classes[cls].queue;
  mi_page_t*      page = queue->last;
  size_t          kept = SPARSE_KEPT + SPARSE_AHEAD * (size_t)theap->classes[cls].n_refills;
  for (mi_page_t* prev; *n > 0 && *n_looks > 0 && page != NULL && queue->count > kept; page = prev, --*n_looks) {
    prev = page->prev;
    if (!sparse_holds_little(page) || !_mi_gaps_can_make(theap, page)) continue;
    *n = (_mi_gaps_make(theap, page) ? *n - 1 : 0); // 0: there is no map for another page, or no memory for one
  }
  if (*n_looks == 0 && page != NULL) _mi_queue_bring_forward(theap, page);
}

// Each time it begins with the class after that at which it ended.
static void sparse_make(mi_theap_t* theap, size_t for_cls, size_t n) {
  size_t n_looks = SPARSE_LOOKS;
  for (size_t i = 0; i < MI_CLASS_COUNT && n > 0 && n_looks > 0; i++) {
    theap->sparse.made_cls = (theap->sparse.made_cls + 1) % MI_CLASS_COUNT;
    if (theap->sparse.made_cls != for_cls && _mi_gaps_fits(theap->sparse.made_cls))
      sparse_make_of(theap, theap->sparse.made_cls, &n, &n_looks);
  }
  size_t n_looked = SPARSE_LOOKS - n_looks,
         n_left = theap->sparse.n_to_make - mi_min(theap->sparse.n_to_make, n_looked);
  bool is_through = (n > 0 && n_looks > 0); // all classes
  theap->sparse.n_to_make = (is_through ? 0 : (uint32_t)n_left);
  _mi_theap_count(theap, MI_COUNT_SEARCHED, n_looked);
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

static bool sparse_is(const mi_theap_t* theap, size_t n_free) {
  return n_free >= SPARSE_MIN && n_free >= sparse_n_pages(theap) * MI_SLICE_SIZE / SPARSE_SHARE;
}

// Nobody has counted what is free in shared pages; but each has room.
static bool sparse_has_shared(const mi_theap_t* theap) {
  size_t  min = (theap->was_emptied ? SPARSE_MIN : SPARSE_SHARED_MIN);
  int64_t n = _mi_pool_count().current;
  return n >= (int64_t)(min / MI_SLICE_SIZE) && (size_t)n >= sparse_n_pages(theap) / SPARSE_SHARE;
}

// True if pages are to become gap pages, or there is more to count.
static bool sparse_has_more(mi_theap_t* theap) {
  size_t n_free;
  if (mi_unlikely(_mi_gap_map_none_left())) {
    theap->sparse.n_to_make = 0;
    return false;
  }
  if (theap->sparse.n_to_make > 0) return true;
  if (!sparse_count(theap, &n_free)) return true;
  if (!sparse_is(theap, n_free)) return false;
  theap->sparse.n_to_make = (uint32_t)sparse_n_queued(theap);
  return true;
}

static void sparse_look(mi_theap_t* theap, size_t cls) {
  _mi_queue_note_left(theap);
  _mi_gaps_collect(theap, SPARSE_PAGES);
  bool   has_more = sparse_has_more(theap);
  size_t n_pages = sparse_n_pages(theap);
  theap->sparse.n_to_look = (uint32_t)(has_more ? 0 : mi_max(SPARSE_PERIOD_ELSE, n_pages / SPARSE_PERIOD_SHARE));
  if (theap->sparse.n_to_make > 0)
    sparse_make(theap, cls, mi_clamp(n_pages / SPARSE_PAGES_SHARE, SPARSE_PAGES, SPARSE_PAGES_MOST));
  if (sparse_n_queued(theap) <= SPARSE_COUNTS) theap->sparse.n_to_make = 0; // they are counted again at once
  for (size_t i = 0; i < MI_CLASS_COUNT; i++) theap->classes[i].n_refills = 0;
}

// Other heaps have no gap pages (gaps.h, GP5).
static bool sparse_serves(mi_theap_t* theap, size_t cls) {
  return _mi_gaps_fits(cls) && mi_load_relaxed(&theap->thread) != NULL && _mi_theap_heap(theap) == &_mi_heap_main;
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
  if (++theap->sparse.n_requests < mi_max(SPARSE_PERIOD, theap->sparse.n_to_look)) return chain;
  theap->sparse.n_requests = 0;
  sparse_look(theap, cls);
  return sparse_take_own(theap, cls);
}

// ---- shared pages -------------------------------------------------------------------------------------------------------

static void sparse_look_at_shared(mi_theap_t* theap, size_t cls) {
  if (!_mi_gap_map_none_left() && sparse_has_shared(theap)) sparse_adopt_all(theap, cls);
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
  if (chain.first != NULL || ++theap->sparse.n_misses < SPARSE_PERIOD) return chain;
  theap->sparse.n_misses = 0;
  sparse_look_at_shared(theap, cls);
  return sparse_take_own(theap, cls);
}
