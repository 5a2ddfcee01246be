// Blocks on their way back to pages of other threads.  Layer: heap.
//
// A free from another thread costs an atomic operation on a cache line that another processor uses.  The outbox collects
// blocks of the same page and pushes them as one chain: programs that hand over blocks free neighbours together, so most
// batches get large, and none waits long: a batch is closed at 32 blocks or 4 KiB (outbox_limit), when another page
// wants its slot, and whenever the theap is released.
#include "../base/probe.h"
#include "background.h"
#include "heap.h"
#include "pool.h"
#include "theap.h"

// The caller has claimed the page: it decides what becomes of it.  `theap` NULL: a thread without one.
static void outbox_claimed(mi_theap_t* theap, mi_page_t* page, mi_page_state_t was) {
  if (was == MI_PAGE_SHARED) _mi_pool_remove(page);
  _mi_page_unpack(page, _mi_page_word_take(&page->word, MI_PAGE_CLAIMED));
  for (;;) {
    if (_mi_page_used(page) == 0) {
      if (theap != NULL) {
        _mi_theap_page_delete(theap, page);
      }
      else {
        _mi_heap_delete_page(page);
        _mi_background_freed();
      }
      return;
    }
    // The thread that used to own it, and frees into it again, is the one that will use it again.
    if (theap != NULL && mi_load_relaxed(&page->home) == theap) {
      _mi_page_put_free(page, _mi_page_word_own(&page->word));
      _mi_theap_page_enqueue(theap, page);
      _mi_theap_count(theap, MI_COUNT_CLAIMED, 1);
      return;
    }
    if (_mi_pool_share(page, MI_PAGE_CLAIMED)) return;
    _mi_page_put_free(page, _mi_page_word_take(&page->word, MI_PAGE_CLAIMED));
  }
}

static void outbox_push(mi_theap_t* theap, mi_page_t* page, mi_block_t* first, mi_block_t* last, size_t n) {
  mi_page_state_t was;
  size_t          claim_at = _mi_class_info[page->cls].claim_at;
  mi_page_state_t now = _mi_page_word_push(&page->word, first, last, n, claim_at, page->capacity, &was);
  MI_PROBE3(batch, page, n, now == MI_PAGE_CLAIMED);
  if (now == MI_PAGE_CLAIMED) outbox_claimed(theap, page, was);
}

static void outbox_close(mi_theap_t* theap, mi_batch_t* batch) {
  mi_page_t* page = batch->page;
  batch->page = NULL;
  theap->n_slow_frees += batch->count - 1; // the one that closes it is counted by itself
  outbox_push(theap, page, batch->first, batch->last, batch->count);
}

void _mi_outbox_add(mi_theap_t* theap, mi_page_t* page, mi_block_t* block) {
  mi_batch_t* batch = _mi_outbox_batch(theap, page);
  if (batch->page != page) {
    if (mi_unlikely(_mi_page_has(page, MI_PAGE_IN_HEAP))) {
      outbox_push(theap, page, block, block, 1); // heap.h, Q4
      return;
    }
    if (batch->page != NULL) outbox_close(theap, batch);
    batch->page = page;
    batch->first = NULL;
    batch->last = block;
    batch->count = 0;
    batch->limit = _mi_class_info[page->cls].outbox_limit;
  }
  _mi_outbox_link(batch, block);
  if (batch->count >= batch->limit) outbox_close(theap, batch);
}

void _mi_outbox_flush(mi_theap_t* theap) {
  for (size_t i = 0; i < MI_OUTBOX_SIZE; i++) {
    if (theap->outbox[i].page != NULL) outbox_close(theap, &theap->outbox[i]);
  }
}

void _mi_page_free_remote(mi_page_t* page, void* block) {
  mi_block_t* b = (mi_block_t*)block;
  outbox_push(NULL, page, b, b, 1);
}
