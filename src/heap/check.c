// Checking theaps and heaps.  Layer: heap.  check.h says how.
#include "check.h"

#include <errno.h>
#include <string.h>

#include "../arena/purge.h"
#include "../support/format.h"
#include "../support/message.h"
#include "../support/trace.h"
#include "bin.h"
#include "check_page.h"
#include "fork.h"
#include "guard.h"
#include "outbox.h"
#include "pool.h"
#include "queue.h"
#include "sampler.h"

// ---- theaps ---------------------------------------------------------------------------------------------------------

static void check_bin(mi_check_t* c, const mi_theap_t* theap, const mi_bin_t* bin, size_t cls) {
  int64_t n = 0;
  for (const mi_block_t* block = bin->head; block != NULL; block = _mi_block_peek(block)) {
    const mi_page_t* page = _mi_view_page_of(block, cls);
    if (!_mi_check_page_that(c, page != NULL && _mi_check_page_is_page(page),
                             "H1: a link in a bin to where no block is", block, NULL))
      return;
    size_t offset = (size_t)((const char*)block - _mi_page_start(page));
    if (!_mi_check_page_that(c, offset % _mi_page_block_size(page) == 0, "H1: a link in a bin into a block", block,
                             page))
      return;
    if (!_mi_check_page_that(c, _mi_heap_of(page) == _mi_theap_heap(theap), "Q3: a block of another heap in a bin",
                             block, page))
      return;
    if (!_mi_check_page_that(c, ++n <= (int64_t)MI_PAGE_BLOCKS_MAX, "H3: a bin without an end", bin, NULL)) return;
  }
  // A round may have taken its room away (sampler.h, SA3; bin.h, BN1).
  bool is_counted = bin->slots >= 0 && n + bin->slots >= bin->limit && n + bin->slots <= (int64_t)MI_PAGE_BLOCKS_MAX;
  bool is_possible = bin->limit >= 0 && bin->limit <= _mi_size_class_info[cls].bin_limit;
  _mi_check_page_that(c, is_possible && (is_counted || _mi_bin_has_no_slots(bin->slots)), "H3: a bin that counts wrong",
                      bin, NULL);
}

// Or it is closed, and the sampler has the blocks (sampler.h, SA1).
static void check_bin_of(mi_check_t* c, const mi_theap_t* theap, size_t cls) {
  const mi_bin_t* bin = &theap->bins[cls];
  if (!_mi_bin_can_tell(theap, cls)) {
    c->has_unsettled = true;
    return;
  }
  bool is_closed = (theap->sampler != NULL && bin->limit == MI_SAMPLER_CLOSED && bin->head == NULL);
  check_bin(c, theap, is_closed ? &theap->sampler->bins[cls] : bin, cls);
}

static void check_queue(mi_check_t* c, const mi_theap_t* theap, const mi_page_list_t* list, size_t cls, bool is_full) {
  const mi_page_t* prev = NULL;
  size_t           n = 0;
  for (const mi_page_t* page = list->first; page != NULL; prev = page, page = page->next, n++) {
    if (!_mi_check_page_that(c, _mi_check_page_is_page(page), "a link in a list to where no page is", page, NULL))
      return;
    if (!_mi_check_page_that(c, page->prev == prev, "a list that goes back another way", page, page)) return;
    bool is_ours = _mi_page_kind(page) == MI_PAGE_BLOCKS && page->cls == cls && _mi_queue_owns(theap, (mi_page_t*)page);
    if (!_mi_check_page_that(c, is_ours, "H4: a list with a page that is not OWNED by its theap", page, page)) return;
    _mi_check_page_that(c, _mi_page_has(page, MI_PAGE_IS_FULL) == is_full, "H4: a page in the wrong list", page, page);
  }
  _mi_check_page_that(c, list->last == prev, "a list with another end", list, prev);
  _mi_check_page_that(c, list->count == n, "a list of another length", list, NULL);
  c->n_queued += n;
}

static void check_outbox(mi_check_t* c, const mi_theap_t* theap) {
  for (size_t i = 0; i < MI_OUTBOX_SIZE; i++) {
    const mi_batch_t* batch = &theap->outbox[i];
    if (batch->page == NULL) continue;
    bool is_page = _mi_check_page_is_page(batch->page) && _mi_page_kind(batch->page) == MI_PAGE_BLOCKS;
    if (!_mi_check_page_that(c, is_page, "an outbox with blocks of no page", batch->page, NULL)) continue;
    _mi_check_page_that(c, !_mi_page_has(batch->page, MI_PAGE_IN_HEAP), "Q4: an outbox with blocks of a heap",
                        batch->page, batch->page);
    bool is_counted = batch->count > 0 && batch->count <= batch->limit && batch->first != NULL && batch->last != NULL;
    _mi_check_page_that(c, is_counted, "an outbox that counts wrong", batch, batch->page);
  }
}

static void check_nothing_left(mi_check_t* c, const mi_theap_t* theap) {
  bool is_empty = true;
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    const mi_class_state_t* state = &theap->classes[cls];
    if (theap->bins[cls].head != NULL || state->queue.first != NULL || state->full.first != NULL) is_empty = false;
  }
  for (size_t i = 0; i < MI_OUTBOX_SIZE; i++) is_empty = is_empty && theap->outbox[i].page == NULL;
  _mi_check_page_that(c, is_empty, "a theap that no thread has is not empty", theap, NULL);
}

// Is what is said to point to the theap a link that leads there?
static bool check_is_in_list(const mi_theap_t* thread, const mi_theap_t* theap) {
  mi_theap_t* const* at = theap->thread_at;
  bool               is_first = (at == &thread->thread_next || at == &thread->retired);
  const char*        before = (const char*)at - offsetof(mi_theap_t, thread_next);
  return (is_first || _mi_check_page_is_theap((const mi_theap_t*)(const void*)before)) && *at == theap;
}

// H6: is it among those of its thread?
static void check_thread(mi_check_t* c, const mi_theap_t* theap) {
  const mi_theap_t* thread = mi_load_relaxed(&((mi_theap_t*)theap)->thread);
  if (!_mi_theap_is_live(theap) || theap->is_late) {
    _mi_check_page_that(c, thread == NULL, "H6: a theap of a thread that is gone", theap, NULL);
    return;
  }
  if (!_mi_check_page_that(c, _mi_check_page_is_theap(thread), "H6: a theap of no thread", theap, NULL)) return;
  _mi_check_page_that(c, theap == thread || check_is_in_list(thread, theap),
                      "H6: a theap that its thread does not know", theap, NULL);
}

// What its thread remembers of the heap.
static void check_cache(mi_check_t* c, const mi_theap_t* backing, const mi_heap_t* heap) {
  const mi_theap_cached_t* cached = _mi_heap_cached((mi_theap_t*)backing, (mi_heap_t*)heap);
  if (cached->id != mi_load_relaxed(&((mi_heap_t*)heap)->id)) return;
  bool is_right = _mi_check_page_is_theap(cached->theap) && _mi_theap_heap(cached->theap) == heap &&
                  mi_load_relaxed(&cached->theap->thread) == backing;
  _mi_check_page_that(c, is_right, "Q5: a thread that remembers another theap", backing, NULL);
}

static void check_theap(mi_check_t* c, const mi_theap_t* theap) {
  check_thread(c, theap);
  if (!_mi_theap_is_live(theap)) {
    check_nothing_left(c, theap);
    return;
  }
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    const mi_class_state_t* state = &theap->classes[cls];
    check_bin_of(c, theap, cls);
    check_queue(c, theap, &state->queue, cls, false);
    check_queue(c, theap, &state->full, cls, true);
  }
  check_outbox(c, theap);
}

static void check_theaps(mi_check_t* c) {
  for (const mi_theap_t* theap = _mi_registry_first(); theap != NULL; theap = theap->next) {
    if (_mi_theap_heap(theap) == NULL) {
      if (c->heap == NULL) check_nothing_left(c, theap);
    }
    else if (_mi_check_page_wants(c, _mi_theap_heap(theap))) {
      if (_mi_check_page_that(c, _mi_check_page_is_heap(_mi_theap_heap(theap)),
                              "Q3: a theap of a heap that is not in use", theap, NULL))
        check_theap(c, theap);
    }
  }
}

// ---- heaps ----------------------------------------------------------------------------------------------------------

static void check_pool(mi_check_t* c, const mi_heap_t* heap, size_t cls) {
  const mi_page_t* prev = NULL;
  const mi_page_t* page = mi_load_relaxed(&((mi_heap_t*)heap)->pools[cls].first);
  for (; page != NULL; prev = page, page = page->next) {
    if (!_mi_check_page_that(c, _mi_check_page_is_page(page), "a link in a pool to where no page is", page, NULL))
      return;
    if (!_mi_check_page_that(c, page->prev == prev, "a pool that goes back another way", page, page)) return;
    uint64_t word = mi_load_relaxed(&((mi_page_t*)page)->word);
    bool     is_shared = (_mi_page_word_state(word) == MI_PAGE_SHARED);
    if (is_shared) c->n_pooled++;
    bool is_ours = _mi_page_kind(page) == MI_PAGE_BLOCKS && page->cls == cls && is_shared && _mi_heap_of(page) == heap;
    if (!_mi_check_page_that(c, is_ours, "PO1: a pool with a page that is not for it", page, page)) return;
  }
}

static void check_list(mi_check_t* c, const mi_heap_t* heap) {
  const mi_page_t* prev = NULL;
  size_t           n = 0;
  for (const mi_page_t* page = heap->pages; page != NULL; n++) {
    if (!_mi_check_page_that(c, _mi_check_page_is_page(page), "a link of a heap to where no page is", page, NULL))
      return;
    bool is_ours = _mi_page_has(page, MI_PAGE_IN_HEAP) && _mi_heap_of(page) == heap;
    if (!_mi_check_page_that(c, is_ours, "Q1: a heap with a page that is not its own", page, page)) return;
    const mi_page_heap_link_t* link = _mi_page_heap_link(page);
    if (!_mi_check_page_that(c, link->prev == prev, "a heap's list that goes back another way", page, page)) return;
    prev = page;
    page = link->next;
  }
  _mi_check_page_that(c, n == heap->n_pages, "a heap with another number of pages", heap, NULL);
  c->n_listed += n;
}

static void check_heap(mi_check_t* c, const mi_heap_t* heap) {
  for (const mi_theap_t* theap = heap->theaps; theap != NULL; theap = theap->heap_next) {
    if (!_mi_check_page_that(c, _mi_theap_heap(theap) == heap, "Q3: a heap with a theap that is not its own", theap,
                             NULL))
      break;
    const mi_theap_t* thread = mi_load_relaxed(&((mi_theap_t*)theap)->thread);
    if (_mi_theap_is_live(theap) && _mi_check_page_is_theap(thread)) check_cache(c, thread, heap);
  }
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) check_pool(c, heap, cls);
  if (heap == &_mi_heap_main) return;
  check_list(c, heap);
}

static void check_heaps(mi_check_t* c) {
  if (_mi_check_page_wants(c, &_mi_heap_main)) check_heap(c, &_mi_heap_main);
  for (const mi_heap_t* heap = NULL; (heap = _mi_heap_next(heap)) != NULL;) {
    if (_mi_check_page_wants(c, heap)) check_heap(c, heap);
  }
}

// ---- all of it ------------------------------------------------------------------------------------------------------

static void check_locked(mi_check_t* c) {
  check_heaps(c);
  check_theaps(c);
  _mi_check_page_all(c);
  if (c->faults.n > 0) return; // lists were not walked to their ends
  _mi_check_page_that(c, c->n_owned == c->n_queued, "H4: pages that are OWNED but in no list", c->heap, NULL);
  _mi_check_page_that(c, c->n_in_heaps == c->n_listed, "Q1: pages of heaps that are in no list", c->heap, NULL);
  _mi_check_page_that(c, c->n_shared == c->n_pooled, "PO1: pages that are SHARED but in no pool", c->heap, NULL);
}

static void check_report_fault(const mi_damage_t* fault) {
  char where[100] = "";
  if (fault->block_size > 0) {
    _mi_format(where, sizeof(where), ", page %p of blocks of %zu bytes", (const void*)fault->page, fault->block_size);
  }
  else if (fault->page != NULL) {
    _mi_format(where, sizeof(where), ", page %p of a large block", (const void*)fault->page);
  }
  if (fault->what == _mi_check_page_margin) _mi_guard_explain(fault->page);
  if (fault->what == _mi_check_page_overflow) _mi_trace_explain(fault->at);
  _mi_message_error(EFAULT, "heap check: %s: %p%s\n", fault->what, fault->at, where);
}

static void check_report(const mi_faults_t* faults) {
  for (size_t i = 0; i < mi_min(faults->n, MI_FAULTS_KEPT); i++) check_report_fault(&faults->kept[i]);
  if (faults->n > MI_FAULTS_KEPT) {
    _mi_message_error(EFAULT, "heap check: %zu more faults\n", faults->n - MI_FAULTS_KEPT);
  }
}

bool _mi_check(mi_heap_t* heap) {
  mi_check_t c;
  _mi_fork_adopt_orphans();
  memset(&c, 0, offsetof(mi_check_t, view));
  c.heap = heap;
  _mi_fork_lock_all();
  check_locked(&c);
  _mi_fork_unlock_all();
  check_report(&c.faults);
  return c.faults.n == 0;
}
