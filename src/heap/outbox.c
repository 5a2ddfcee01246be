// Returning blocks to pages, one by one or in batches.  Layer: heap.
#include "outbox.h"

#include "../base/probe.h"
#include "bin.h"
#include "event.h"
#include "gaps.h"
#include "pool.h"
#include "spare.h"

static void outbox_delete_page(mi_theap_t* theap, mi_page_t* page) {
  if (_mi_gaps_is(page)) {
    _mi_gaps_unmake(page); // it is of no class
  }
  else {
    _mi_queue_leave_home(theap, page);
    if (_mi_spare_keep(page)) return;
  }
  _mi_heap_delete_page(page);
  if (theap != NULL) theap->has_deleted = true;
  else _mi_event_freed();
}

// Does the home of the page free into it?  `theap` NULL: a thread without one.
static bool outbox_is_home(const mi_theap_t* theap, const mi_page_t* page) {
  return theap != NULL && mi_load_relaxed(&((mi_page_t*)page)->home) == theap;
}

// The caller has claimed the page: it decides what becomes of it.  `theap` NULL: a thread without one.
static mi_noinline void outbox_claimed(mi_theap_t* theap, mi_page_t* page, mi_page_state_t was) {
  if (was == MI_PAGE_SHARED) _mi_pool_remove(page);
  _mi_page_unpack(page, _mi_page_word_take(&page->word, MI_PAGE_CLAIMED));
  for (;;) {
    if (_mi_page_used(page) == 0) {
      outbox_delete_page(theap, page);
      return;
    }
    // The thread that used to own it, and frees into it again, is the one that will use it again.
    if (outbox_is_home(theap, page)) {
      _mi_page_put_free(page, _mi_page_word_own(&page->word));
      _mi_queue_add(theap, page);
      _mi_theap_count(theap, MI_COUNT_CLAIMED, 1);
      return;
    }
    if (_mi_pool_share(page, MI_PAGE_CLAIMED)) return;
    _mi_page_put_free(page, _mi_page_word_take(&page->word, MI_PAGE_CLAIMED));
  }
}

static void outbox_push(mi_theap_t* theap, mi_page_t* page, mi_block_t* first, mi_block_t* last, size_t n) {
  mi_page_state_t        was;
  const mi_class_info_t* info = &_mi_size_class_info[page->cls];
  size_t                 claim_at = (outbox_is_home(theap, page) ? info->claim_own_at : info->claim_at);
  mi_page_state_t now = _mi_page_word_push(&page->word, first, last, n, claim_at, _mi_page_capacity_of(page), &was);
  MI_PROBE3(batch, page, n, now == MI_PAGE_CLAIMED);
  if (now == MI_PAGE_CLAIMED) outbox_claimed(theap, page, was);
}

void _mi_outbox_push(mi_page_t* page, mi_block_t* block) {
  outbox_push(NULL, page, block, block, 1);
}

static void outbox_close(mi_theap_t* theap, mi_batch_t* batch) {
  mi_page_t* page = batch->page;
  batch->page = NULL;
  theap->trim.n_slow_frees += batch->count - 1; // the one that closes it is counted by itself
  outbox_push(theap, page, batch->first, batch->last, batch->count);
}

static void outbox_open(mi_theap_t* theap, mi_batch_t* batch, mi_page_t* page, mi_block_t* block, uint32_t limit) {
  if (batch->page != NULL) outbox_close(theap, batch);
  batch->page = page;
  batch->first = NULL;
  batch->last = block;
  batch->count = 0;
  batch->limit = limit;
  _mi_outbox_link(batch, block);
}

void _mi_outbox_add(mi_theap_t* theap, mi_page_t* page, mi_block_t* block) {
  mi_batch_t* batch = _mi_outbox_batch(theap, page);
  if (batch->page == page) {
    _mi_outbox_link(batch, block);
    if (batch->count >= batch->limit) outbox_close(theap, batch);
    return;
  }
  uint32_t limit = _mi_size_class_info[page->cls].outbox_limit;
  // One block is a batch, and the other page keeps its slot.
  bool     is_alone = (limit <= 1 || _mi_page_has(page, MI_PAGE_IN_HEAP)); // heap.h, Q4
  if (is_alone) outbox_push(theap, page, block, block, 1);
  else outbox_open(theap, batch, page, block, limit);
}

void _mi_outbox_flush(mi_theap_t* theap) {
  for (size_t i = 0; i < MI_OUTBOX_SIZE; i++) {
    if (theap->outbox[i].page != NULL) outbox_close(theap, &theap->outbox[i]);
  }
}

// ---- pages of its own and of others ------------------------------------------------------------------------------------

// Blocks of one slice, from first to last, in one step.
static void outbox_return_run(mi_theap_t* theap, mi_block_t* first, mi_block_t* last, size_t n) {
  mi_page_t* page = _mi_page_of(first);
  bool       is_owned = _mi_queue_owns(theap, page), has_gaps = _mi_gaps_is(page);
  if (mi_likely(is_owned && !has_gaps)) {
    _mi_page_put_some(page, first, last, n);
    _mi_queue_freed_one(theap, page);
    return;
  }
  for (mi_block_t* next; n > 0; n--, first = next) {
    next = _mi_page_next_block(first);
    if (is_owned) _mi_gaps_free(theap, page, first);
    else _mi_outbox_add(theap, page, first);
  }
}

void _mi_outbox_return_list(mi_theap_t* theap, mi_block_t* first) {
  while (first != NULL) {
    mi_block_t* last = first;
    mi_block_t* next = _mi_page_next_block(first);
    size_t      n = 1;
    for (; next != NULL && ((uintptr_t)next ^ (uintptr_t)first) < MI_SLICE_SIZE; n++) {
      last = next;
      next = _mi_page_next_block(last);
    }
    outbox_return_run(theap, first, last, n);
    first = next;
  }
}

void _mi_outbox_return_bin(mi_theap_t* theap, size_t cls) {
  mi_bin_t*   bin = &theap->bins[cls];
  mi_block_t* first = bin->head;
  bool        keeps_none = _mi_bin_has_no_slots(bin->slots) && _mi_event_is_sampling();
  bin->head = NULL;
  theap->classes[cls].book.total = bin->limit;
  bin->slots = (keeps_none ? MI_BIN_NO_SLOTS : bin->limit); // sampler.h, SA3
  _mi_outbox_return_list(theap, first);
  if (theap->return_offset != 0) _mi_outbox_flush_returns(theap, cls);
}

void _mi_outbox_flush_returns(mi_theap_t* theap, size_t cls) {
  mi_bin_t*   returns = &theap->returns[cls];
  mi_block_t* first = returns->head;
  returns->head = NULL;
  returns->slots = _mi_size_class_info[cls].bin_limit;
  _mi_outbox_return_list(theap, first);
}
