// Finding free blocks: on the theap's pages, in gaps, on shared and spare pages, on new ones.  Layer: heap.
#include "refill.h"

#include "../arena/purge_at_peak.h"
#include "../base/probe.h"
#include "drain.h"
#include "gaps.h"
#include "grow.h"
#include "outbox.h"
#include "pool.h"
#include "queue.h"
#include "spare.h"
#include "sparse.h"
#include "trim.h"

#define REFILL_FILLS_MAX 10 // from then on a bin takes as many blocks as a page can have

// A class with this many pages is growing: its next page will be filled, and may lie in a huge-page chunk.  After the first page, each
// REFILL_HUGE_SHARE that a thread has on average stands for one of these pages: a page that is not filled then costs little in comparison.
// Not so in secure full builds, where pages in huge-page chunks have no guard pages (page.h).
#define REFILL_HUGE_FROM  4
#define REFILL_HUGE_SHARE (2 * MI_MiB)

// In a page of several slices the program must fill the blocks, too (page/written.h).  Below this many bytes of pages that is not looked
// at, because there are no huge-page chunks yet (arena/place.c).
#define REFILL_HUGE_BYTES (4 * MI_MiB)

// How many bytes of new blocks are made at a time: the more pages a class has, the more (page.c).
static size_t refill_extend_bytes(const mi_class_state_t* state, const mi_page_t* page) {
  if (state->n_pages < 3) return 0;
  if (page->n_slices > 1) return page->n_slices * MI_SLICE_SIZE;
  return state->n_pages < 9 ? 16 * MI_KiB : 64 * MI_KiB;
}

// Free blocks of a page that the theap owns: new ones if there are no others; none if the page is full.  If new blocks are made, only the
// first is known to be zero.  So for calloc, blocks of a slice and more are made one by one, and none of them has to be cleared.
static mi_chain_t refill_from_page(mi_theap_t* theap, mi_page_t* page, bool* is_zero) {
  mi_class_state_t* state = &theap->classes[page->cls];
  if (page->free == NULL) {
    if (_mi_page_word_chain(mi_load_relaxed(&page->word)).first != NULL) {
      _mi_page_put_free(page, _mi_page_word_take(&page->word, MI_PAGE_OWNED));
    }
    else if (page->extended < page->capacity) {
      if (is_zero != NULL) *is_zero = (MI_FILL ? MI_HARDENED : _mi_page_has(page, MI_PAGE_IS_ZERO));
      bool is_alone = !MI_FILL && is_zero != NULL && *is_zero && _mi_page_block_size(page) >= MI_SLICE_SIZE;
      _mi_page_extend(page, is_alone ? 0 : refill_extend_bytes(state, page));
    }
  }
  return _mi_page_take_free(page, (size_t)MI_REFILL_FIRST << state->n_fills);
}

static bool refill_will_fill(mi_theap_t* theap, size_t cls) {
  size_t n = theap->classes[cls].n_pages, committed = (size_t)mi_load_relaxed(&_mi_stat_live.page_committed.current);
  size_t n_threads = mi_max((size_t)1, (size_t)mi_load_relaxed(&_mi_stat_live.threads.current));
  size_t n_more = (n == 0 || MI_HARDENED ? 0 : committed / n_threads / REFILL_HUGE_SHARE);
  if (n + n_more < REFILL_HUGE_FROM) return false;
  return cls < MI_CLASS_SEVERAL || (committed >= REFILL_HUGE_BYTES && _mi_written_is(&theap->written, cls));
}

static mi_page_t* refill_make_page(mi_theap_t* theap, size_t cls) {
  mi_heap_t* heap = _mi_theap_heap(theap);
  mi_page_t* page = _mi_page_new(cls, cls << MI_BIN_SHIFT, refill_will_fill(theap, cls), mi_load_relaxed(&heap->arena));
  if (page == NULL) return NULL;
  if (!_mi_heap_add_page(heap, page)) {
    _mi_page_delete(page);
    return NULL;
  }
  _mi_page_set_home(page, theap);
  theap->classes[cls].n_pages++;
  _mi_written_note(&theap->written, page, _mi_page_has(page, MI_PAGE_IS_ZERO));
  return page;
}

// A new page in exchange for other memory, as far as there is any: what the theap keeps and does not need, spare pages, and, if the page is
// not backed yet, memory that is free and backed.
static mi_page_t* refill_exchange(mi_theap_t* theap, size_t cls) {
  if (theap->grown.n_slices > 0) _mi_trim_grown(theap);
  _mi_trim_wide(theap, cls);
  if (_mi_spare_make_room(cls)) theap->has_deleted = true;
  mi_page_t* page = refill_make_page(theap, cls);
  if (page == NULL || !_mi_page_has(page, MI_PAGE_IS_ZERO)) return page;
  if (_mi_spare_relieve(page->n_slices)) theap->has_deleted = true;
  if (_mi_purge_at_peak()) _mi_trim_at_peak(theap);
  return page;
}

// When the theap has no page of the class with room: a page that may have a free block, or a chain of blocks out of gaps.  Neither when
// out of memory.
static mi_page_t* refill_search(mi_theap_t* theap, size_t cls, mi_chain_t* chain) {
  _mi_theap_count(theap, MI_COUNT_SEARCHES, 1);
  mi_page_t* page = _mi_pool_adopt(cls, theap);
  if (page == NULL && (page = _mi_spare_take(cls, theap)) != NULL) theap->classes[cls].n_pages++;
  if (page == NULL && (page = _mi_queue_refreed(theap, cls)) != NULL) return page;
  if (page == NULL) {
    *chain = _mi_sparse_take_shared(theap, cls);
    if (chain->first == NULL) page = refill_exchange(theap, cls);
  }
  if (page == NULL) return NULL;
  _mi_queue_add(theap, page);
  _mi_theap_count(theap, MI_COUNT_SEARCHED, 1);
  return page;
}

static mi_chain_t refill_find(mi_theap_t* theap, size_t cls, bool* is_zero) {
  mi_chain_t chain = {NULL, 0};
  for (;;) {
    mi_page_t* page = theap->classes[cls].queue.first;
    if (page == NULL) {
      chain = _mi_sparse_take(theap, cls);
      if (chain.first != NULL) return chain;
      page = refill_search(theap, cls, &chain);
    }
    if (page == NULL) return chain;
    chain = refill_from_page(theap, page, is_zero);
    if (mi_likely(chain.first != NULL)) return chain;
    _mi_queue_is_full(theap, page);
  }
}

// Returns the first block of a chain; the bin, which is empty, gets the others.  A bin that runs empty is in use, so it has its full limit
// again.
static mi_block_t* refill_bin(mi_theap_t* theap, size_t cls, mi_chain_t chain) {
  mi_bin_t* bin = &theap->bins[cls];
  int32_t   limit = (int32_t)_mi_grow_limit(theap, cls);
  int32_t   n = (int32_t)chain.count;
  bin->limit = limit;
  bin->slots = n > limit ? 1 : limit - n + 1;
  bin->head = _mi_page_next_block(chain.first);
  theap->classes[cls].book.total = bin->slots + n - 1;
  return chain.first;
}

// The same for a bin that may keep no blocks (trim.h, TI5): the others go back to their pages.
static mi_block_t* refill_alone(mi_theap_t* theap, size_t cls, mi_chain_t chain) {
  mi_bin_t* bin = &theap->bins[cls];
  bin->limit = bin->slots = theap->classes[cls].book.total = 0;
  _mi_outbox_return_list(theap, _mi_page_next_block(chain.first));
  return chain.first;
}

static mi_block_t* refill_entered(mi_theap_t* theap, size_t cls, bool* is_zero) {
  mi_class_state_t* state = &theap->classes[cls];
  uint32_t          round = mi_load_relaxed(&_mi_event_round);
  _mi_drain_end_class(theap, cls);
  mi_chain_t chain = refill_find(theap, cls, is_zero);
  MI_PROBE3(refill, theap, cls, chain.count);
  if (state->has_overflowed) _mi_grow_bin(theap, cls);
  state->n_unused = 0;
  state->round = round;
  if (mi_likely(state->n_refills < UINT16_MAX)) state->n_refills++;
  if (mi_unlikely(state->n_fills < REFILL_FILLS_MAX)) state->n_fills++;
  if (mi_unlikely(chain.first == NULL)) return NULL;
  return _mi_trim_may_keep(theap, cls) ? refill_bin(theap, cls, chain) : refill_alone(theap, cls, chain);
}

mi_block_t* _mi_refill(mi_theap_t* theap, size_t cls, bool* is_zero) {
  mi_assert_internal(theap->bins[cls].head == NULL);
  _mi_presence_enter(theap);
  bool        was_closed = (theap->bins[cls].head != NULL); // a round had closed the bin: it is open again
  mi_block_t* block = was_closed ? _mi_theap_pop(theap, cls) : refill_entered(theap, cls, is_zero);
  _mi_trim_by_round(theap);
  _mi_presence_leave(theap);
  return block;
}
