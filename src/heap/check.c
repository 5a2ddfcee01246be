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
#include "drain.h"
#include "fork.h"
#include "grow.h"
#include "guard.h"
#include "outbox.h"
#include "pool.h"
#include "queue.h"
#include "sampler.h"

// ---- lists of pages -------------------------------------------------------------------------------------------------

static const struct {
  const char *no_page, *not_own, *back, *lost;
} check_texts[MI_CHECK_LISTS] = {
    {"a link in a list to where no page is", "H4: a list with a page that is not for it",
     "a list that goes back another way", "H4: pages that are OWNED but in no list"},
    {"a link in a pool to where no page is", "PO1: a pool with a page that is not for it",
     "a pool that goes back another way", "PO1: pages that are SHARED but in no pool"},
    {"a link of a heap to where no page is", "Q1: a heap with a page that is not its own",
     "a heap's list that goes back another way", "Q1: pages of heaps that are in no list"},
};

typedef struct check_list_s {
  mi_check_list_t   kind;
  bool              is_full; // of the two queues of a class, that of full pages
  size_t            cls;     // or MI_POOL_GAPS; but of the list of a heap
  const mi_theap_t* theap;   // of a queue
  const mi_heap_t*  heap;
  const mi_pool_t*  pool;
} check_list_t;

// Is the page one that is to be in the list?  Then it is to be in no other.
static bool check_belongs(const check_list_t* list, const mi_page_t* page) {
  if (list->kind == MI_CHECK_HEAP) return _mi_page_has(page, MI_PAGE_IN_HEAP) && _mi_heap_of(page) == list->heap;
  if (_mi_page_kind(page) == MI_PAGE_LARGE || _mi_pool_list_of(page) != list->cls) return false;
  if (list->kind == MI_CHECK_QUEUE)
    return _mi_queue_owns(list->theap, (mi_page_t*)page) && _mi_page_has(page, MI_PAGE_IS_FULL) == list->is_full;
  uint64_t word = mi_load_relaxed(&((mi_page_t*)page)->word);
  return _mi_page_word_state(word) == MI_PAGE_SHARED && _mi_heap_of(page) == list->heap && page->pool == list->pool;
}

// Returns how many pages it has, and in *last the last one.  SIZE_MAX: it was not walked to its end.
static size_t check_list(mi_check_t* c, const check_list_t* list, const mi_page_t* page, const mi_page_t** last) {
  size_t n = 0;
  for (*last = NULL; page != NULL; n++) {
    bool is_page = _mi_check_page_is_page(page);
    if (!MI_CHECK(c, is_page, check_texts[list->kind].no_page, page, NULL)) return SIZE_MAX;
    if (!MI_CHECK(c, check_belongs(list, page), check_texts[list->kind].not_own, page, page)) return SIZE_MAX;
    const mi_page_heap_link_t* link = (list->kind == MI_CHECK_HEAP ? _mi_page_heap_link(page) : NULL);
    const mi_page_t*           prev = (link == NULL ? page->prev : link->prev);
    if (!MI_CHECK(c, prev == *last, check_texts[list->kind].back, page, page)) return SIZE_MAX;
    *last = page;
    page = (link == NULL ? page->next : link->next);
  }
  c->n_listed[list->kind] += n;
  return n;
}

static void check_queue(mi_check_t* c, const mi_theap_t* theap, const mi_page_list_t* queue, size_t cls, bool is_full) {
  const check_list_t list = {MI_CHECK_QUEUE, is_full, cls, theap, NULL, NULL};
  const mi_page_t*   last;
  size_t             n = check_list(c, &list, queue->first, &last);
  bool               is_right = (n == SIZE_MAX || (queue->last == last && queue->count == n));
  MI_CHECK(c, is_right, "a list with another end or length", queue, NULL);
}

// ---- theaps ---------------------------------------------------------------------------------------------------------

static void check_bin(mi_check_t* c, const mi_theap_t* theap, const mi_bin_t* bin, size_t cls) {
  int64_t n = 0;
  for (const mi_block_t* block = bin->head; block != NULL; block = _mi_block_peek(block)) {
    const mi_page_t* page = _mi_bin_page_of(block, cls);
    bool             is_block = (page != NULL && _mi_check_page_is_page(page));
    if (!MI_CHECK(c, is_block, "H1: a link in a bin to where no block is", block, NULL)) return;
    bool is_ours = (_mi_heap_of(page) == _mi_theap_heap(theap));
    if (!MI_CHECK(c, is_ours, "Q3: a block of another heap in a bin", block, page)) return;
    if (!MI_CHECK(c, ++n <= (int64_t)MI_PAGE_BLOCKS_MAX, "H3: a bin without an end", bin, NULL)) return;
  }
  // A round may have taken its room away (sampler.h, SA3; bin.h, BN1).
  bool is_counted = bin->slots >= 0 && n + bin->slots >= bin->limit && n + bin->slots <= (int64_t)MI_PAGE_BLOCKS_MAX;
  bool is_possible = bin->limit >= 0 && bin->limit <= (int32_t)_mi_grow_limit_max(cls);
  bool is_right = is_possible && (is_counted || _mi_bin_has_no_slots(bin->slots));
  MI_CHECK(c, is_right, "H3: a bin that counts wrong", bin, NULL);
}

// What a theap has that no thread has.
static const char check_left[] = "a theap that no thread has is not empty";

static void check_class(mi_check_t* c, const mi_theap_t* theap, size_t cls) {
  const mi_bin_t*         bin = &theap->bins[cls];
  const mi_class_state_t* state = &theap->classes[cls];
  if (!_mi_theap_is_live(theap)) {
    bool is_empty = (bin->head == NULL && state->queue.first == NULL && state->full.first == NULL);
    MI_CHECK(c, is_empty, check_left, theap, NULL);
    return;
  }
  bool is_closed = (theap->sampler != NULL && bin->limit == MI_SAMPLER_CLOSED && bin->head == NULL);
  if (!_mi_bin_can_tell(theap, cls)) c->has_unsettled = true;
  else check_bin(c, theap, is_closed ? &theap->sampler->bins[cls] : bin, cls); // sampler.h, SA1
  check_queue(c, theap, &state->queue, cls, false);
  check_queue(c, theap, &state->full, cls, true);
}

static void check_drain(mi_check_t* c, const mi_theap_t* theap, const mi_drain_t* drain) {
  int64_t n = 0;
  if (_mi_bin_are_closed(theap)) return;
  for (const mi_block_t* block = drain->bin.head; block != NULL; block = _mi_block_peek(block), n++) {
    const mi_page_t* page = _mi_page_of(block);
    bool             is_of_page = (page != NULL && (page == drain->page || drain->page == NULL));
    if (!MI_CHECK(c, is_of_page, "DR1: a drain with a block of another page", block, page)) return;
    if (!MI_CHECK(c, n < MI_DRAIN_MAX, "DR3: a drain with too many blocks", drain, drain->page)) return;
  }
  MI_CHECK(c, n == drain->book.total - drain->bin.slots, "H7: a drain that counts wrong", drain, NULL);
}

static bool check_has_blocks(const mi_batch_t* batch) {
  size_t n = 0;
  for (const mi_block_t* block = batch->first; block != NULL && n <= batch->count; block = _mi_block_peek(block), n++) {
    if (_mi_page_of(block) != batch->page) return false;
  }
  return n == batch->count;
}

static void check_batch(mi_check_t* c, const mi_theap_t* theap, const mi_batch_t* batch) {
  const mi_page_t* page = batch->page;
  bool             is_page = _mi_check_page_is_page(page) && _mi_page_kind(page) != MI_PAGE_LARGE;
  bool is_counted = batch->count > 0 && batch->count <= batch->limit && batch->first != NULL && batch->last != NULL;
  MI_CHECK(c, _mi_theap_is_live(theap), check_left, theap, NULL);
  if (!MI_CHECK(c, is_page, "an outbox with blocks of no page", page, NULL)) return;
  MI_CHECK(c, !_mi_page_has(page, MI_PAGE_IN_HEAP), "Q4: an outbox with blocks of a heap", page, page);
  MI_CHECK(c, is_counted, "an outbox that counts wrong", batch, page);
  if (c->waiting == 0) return; // views of pages find it
  MI_CHECK(c, check_has_blocks(batch), "a batch of another length", batch, page);
}

// Is what is said to point to the theap a link that leads there?
static bool check_is_in_list(const mi_theap_t* thread, const mi_theap_t* theap) {
  mi_theap_t* const* at = theap->in_thread.at;
  bool               is_first = (at == &thread->in_thread.next || at == &thread->retired);
  const char*        before = (const char*)at - offsetof(mi_theap_t, in_thread.next);
  return (is_first || _mi_check_page_is_theap((const mi_theap_t*)(const void*)before)) && *at == theap;
}

// H6: is it among those of its thread?  And is what that remembers of the heap right?
static void check_thread(mi_check_t* c, const mi_theap_t* theap, const mi_heap_t* heap) {
  mi_theap_t* thread = mi_load_relaxed(&((mi_theap_t*)theap)->thread);
  if (!_mi_theap_is_live(theap) || mi_load_relaxed(&theap->is_late)) {
    MI_CHECK(c, thread == NULL, "H6: a theap of a thread that is gone", theap, NULL);
    return;
  }
  if (!MI_CHECK(c, _mi_check_page_is_theap(thread), "H6: a theap of no thread", theap, NULL)) return;
  bool is_known = (theap == thread || check_is_in_list(thread, theap));
  MI_CHECK(c, is_known, "H6: a theap that its thread does not know", theap, NULL);
  // While one heap is checked another thread may be about to remember another heap in its place.
  if (c->heap != NULL && thread != _mi_theap_backing()) return;
  const mi_theap_cached_t* cached = _mi_heap_cached(thread, (mi_heap_t*)heap);
  if (cached->id != mi_load_relaxed(&((mi_heap_t*)heap)->id)) return;
  bool is_right = _mi_check_page_is_theap(cached->theap) && _mi_theap_heap(cached->theap) == heap &&
                  mi_load_relaxed(&cached->theap->thread) == thread;
  MI_CHECK(c, is_right, "Q5: a thread that remembers another theap", thread, NULL);
}

static void check_theap(mi_check_t* c, const mi_theap_t* theap) {
  const mi_heap_t* heap = _mi_theap_heap(theap);
  if (!_mi_check_page_wants(c, heap)) return;
  if (heap != NULL) {
    if (!MI_CHECK(c, _mi_check_page_is_heap(heap), "Q3: a theap of a heap that is not in use", theap, NULL)) return;
    check_thread(c, theap, heap);
  }
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) check_class(c, theap, cls);
  for (size_t i = 0; i < MI_DRAINS; i++) check_drain(c, theap, &theap->drains[i]);
  for (size_t i = 0; i < MI_OUTBOX_SIZE; i++) {
    if (theap->outbox[i].page != NULL) check_batch(c, theap, &theap->outbox[i]);
  }
}

// ---- heaps ----------------------------------------------------------------------------------------------------------

static void check_pools(mi_check_t* c, const mi_heap_t* heap) {
  const mi_page_t* last;
  size_t           n;
  mi_pool_t*       pools = _mi_pool_all((mi_heap_t*)heap, &n);
  for (size_t k = 0; k < n; k++) {
    check_list_t list = {MI_CHECK_POOL, false, 0, NULL, heap, &pools[k]};
    for (; list.cls < MI_POOL_LISTS; list.cls++)
      check_list(c, &list, mi_load_relaxed(&pools[k].first[list.cls]), &last);
  }
}

static void check_heap(mi_check_t* c, const mi_heap_t* heap) {
  const mi_page_t* last;
  check_list_t     list = {MI_CHECK_HEAP, false, 0, NULL, heap, NULL};
  if (!_mi_check_page_wants(c, heap)) return;
  for (const mi_theap_t* theap = heap->theaps; theap != NULL; theap = theap->in_heap.next) {
    bool is_own = (_mi_theap_heap(theap) == heap);
    if (!MI_CHECK(c, is_own, "Q3: a heap with a theap that is not its own", theap, NULL)) break;
  }
  check_pools(c, heap);
  if (heap == &_mi_heap_main) return;
  size_t n = check_list(c, &list, heap->pages, &last);
  MI_CHECK(c, n == SIZE_MAX || n == heap->n_pages, "a heap with another number of pages", heap, NULL);
}

// ---- all of it ------------------------------------------------------------------------------------------------------

static void check_locked(mi_check_t* c) {
  check_heap(c, &_mi_heap_main);
  for (const mi_heap_t* heap = NULL; (heap = _mi_heap_next(heap)) != NULL;) check_heap(c, heap);
  for (const mi_theap_t* theap = _mi_registry_first(); theap != NULL; theap = theap->next) check_theap(c, theap);
  _mi_check_page_all(c);
  if (c->faults.n > 0) return; // lists were not walked to their ends
  for (int i = 0; i < MI_CHECK_LISTS; i++) {
    MI_CHECK(c, c->n_said[i] == c->n_listed[i], check_texts[i].lost, c->heap, NULL);
  }
}

static void check_report(const mi_damage_t* fault) {
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

bool _mi_check(mi_heap_t* heap) {
  mi_check_t c;
  _mi_fork_adopt_orphans();
  memset(&c, 0, offsetof(mi_check_t, view));
  c.heap = heap;
  _mi_fork_lock_all();
  c.waiting = _mi_waiting_begin(heap);
  check_locked(&c);
  _mi_waiting_end(c.waiting);
  _mi_fork_unlock_all();
  size_t n = c.faults.n;
  for (size_t i = 0; i < mi_min(n, MI_FAULTS_KEPT); i++) check_report(&c.faults.kept[i]);
  if (n > MI_FAULTS_KEPT) _mi_message_error(EFAULT, "heap check: %zu more faults\n", n - MI_FAULTS_KEPT);
  return n == 0;
}
