// The slow paths of malloc and free: filling bins from pages, and pages from bins that are full.  Layer: heap.
//
// Why both bins and page lists: bins alone lose 30 % when a structure is built and torn down as a whole (each block goes
// through two lists), page lists alone lose 2x when blocks are replaced at random (each free touches a cold page).
// A bin with room for a few blocks, whose overflow goes straight to the page, takes the better of both.
#include "theap.h"

#include <string.h>

#include "../base/probe.h"
#include "../support/stat.h"
#include "background.h"
#include "heap.h"
#include "idle.h"
#include "large.h"
#include "pool.h"
#include "quarantine.h"
#include "sampler.h"
#include "thread.h"

// Full pages of a thread that was alone are its own until it is not: so many are parked at a time then, and so many are
// looked at for blocks that others have freed.
#define THEAP_FULL_STEP 4

// How many bins are looked at then (MI_THEAP_FREES_PER_TRIM), and how often nothing was taken until one is unused.
#define THEAP_BINS_PER_TRIM 2
#define THEAP_UNUSED_TRIMS  2

// How often a look is the occasion for a round (heap/background.h).
#define THEAP_TRIMS_PER_POLL 8

#define THEAP_FILLS_MAX 10 // then a bin takes as much as the largest page has

static size_t theap_fill_max(const mi_class_state_t* state) {
  return (size_t)MI_THEAP_FILL_FIRST << state->n_fills;
}

// A class that has so many pages is growing: the next will be filled.
#define THEAP_HUGE_FROM 4

// How far new blocks are made at a time: the more pages a class has, the more at once (see page.c).
static size_t theap_extend_bytes(const mi_class_state_t* state, const mi_page_t* page) {
  if (state->n_pages < 3) return 0;
  if (page->n_slices > 1) return page->n_slices * MI_SLICE_SIZE;
  return state->n_pages < 9 ? 16 * MI_KiB : 64 * MI_KiB;
}

void _mi_theap_init(mi_theap_t* theap) {
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    theap->bins[cls].limit = _mi_class_info[cls].bin_limit;
    theap->bins[cls].slots = theap->bins[cls].limit;
    theap->classes[cls].total = theap->bins[cls].slots;
  }
}

// ---- lists of pages -------------------------------------------------------------------------------------------------

static void page_list_append(mi_page_list_t* list, mi_page_t* page) {
  page->next = NULL;
  page->prev = list->last;
  if (list->last != NULL) list->last->next = page;
  else list->first = page;
  list->last = page;
  list->count++;
}

static void page_list_remove(mi_page_list_t* list, mi_page_t* page) {
  if (page->prev != NULL) page->prev->next = page->next;
  else list->first = page->next;
  if (page->next != NULL) page->next->prev = page->prev;
  else list->last = page->prev;
  page->next = page->prev = NULL;
  list->count--;
}

static mi_page_list_t* theap_list_of(mi_theap_t* theap, const mi_page_t* page) {
  mi_class_state_t* state = &theap->classes[page->cls];
  return _mi_page_has(page, MI_PAGE_IS_FULL) ? &state->full : &state->queue;
}

// To the end: a page that just got its first free block back has time to collect more before it is used.
void _mi_theap_page_enqueue(mi_theap_t* theap, mi_page_t* page) {
  _mi_page_clear(page, MI_PAGE_IS_FULL);
  page_list_append(&theap->classes[page->cls].queue, page);
}

void _mi_theap_page_delete(mi_theap_t* theap, mi_page_t* page) {
  mi_class_state_t* state = &theap->classes[page->cls];
  if (state->n_pages > 0) state->n_pages--;
  theap->has_deleted = true;
  _mi_heap_delete_page(page);
}

// ---- refill ---------------------------------------------------------------------------------------------------------

static bool theap_park(mi_theap_t* theap, mi_page_t* page) {
  if (!_mi_page_word_park(&page->word)) return false;
  _mi_theap_count(theap, MI_COUNT_PARKED, 1);
  MI_PROBE2(page_park, page, _mi_page_block_size(page));
  return true;
}

static void theap_park_last(mi_theap_t* theap, mi_class_state_t* state) {
  mi_page_t* page = state->full.last;
  page_list_remove(&state->full, page);
  _mi_page_clear(page, MI_PAGE_IS_FULL);
  if (!theap_park(theap, page)) _mi_theap_page_enqueue(theap, page); // not full any more
}

// With more than one thread all full pages are parked, so that whoever frees into them can make them available again
// without waiting for this thread (docs/decisions/009).
static void theap_park_full(mi_theap_t* theap, mi_class_state_t* state) {
  if (mi_load_relaxed(&_mi_thread_count) <= 1) return;
  for (int i = 0; i < THEAP_FULL_STEP && state->full.count > 0; i++) theap_park_last(theap, state);
}

static void theap_page_is_full(mi_theap_t* theap, mi_page_t* page) {
  mi_class_state_t* state = &theap->classes[page->cls];
  page_list_remove(&state->queue, page);
  _mi_page_set(page, MI_PAGE_IS_FULL);
  page_list_append(&state->full, page);
  theap_park_full(theap, state);
}

// Free blocks of a page that we own, made for it if there are none; none if the page is full.
static mi_chain_t theap_page_take(mi_theap_t* theap, mi_page_t* page, bool* is_zero) {
  *is_zero = false;
  if (page->free == NULL) {
    if (_mi_page_word_chain(mi_load_relaxed(&page->word)).first != NULL) {
      _mi_page_put_free(page, _mi_page_word_take(&page->word, MI_PAGE_OWNED));
    }
    else if (page->extended < page->capacity) {
      *is_zero = (MI_FILL ? MI_HARDENED : _mi_page_has(page, MI_PAGE_IS_ZERO));
      _mi_page_extend(page, theap_extend_bytes(&theap->classes[page->cls], page));
    }
  }
  return _mi_page_take_free(page, theap_fill_max(&theap->classes[page->cls]));
}

// Others may have freed blocks of our full pages; nobody tells us.  A few are looked at, in turn.
static mi_page_t* theap_page_refreed(mi_theap_t* theap, size_t cls) {
  mi_page_list_t* full = &theap->classes[cls].full;
  size_t          n_looks = mi_min(full->count, THEAP_FULL_STEP);
  for (size_t i = 0; i < n_looks; i++) {
    mi_page_t* page = full->first;
    page_list_remove(full, page);
    _mi_theap_count(theap, MI_COUNT_SEARCHED, 1);
    if (_mi_page_word_chain(mi_load_relaxed(&page->word)).count >= _mi_class_info[cls].claim_at) {
      _mi_theap_page_enqueue(theap, page);
      return page;
    }
    page_list_append(full, page);
  }
  return NULL;
}

static mi_page_t* theap_page_get(mi_theap_t* theap, size_t cls) {
  mi_page_t* page = _mi_pool_adopt(cls, theap);
  if (page == NULL) {
    bool       is_huge = (theap->classes[cls].n_pages >= THEAP_HUGE_FROM);
    mi_heap_t* heap = _mi_theap_heap(theap);
    size_t     arena = mi_load_relaxed(&heap->arena);
    page = _mi_page_new(cls, (size_t)((char*)&theap->bins[cls] - (char*)theap), is_huge, arena);
    if (page == NULL) return NULL;
    if (!_mi_heap_add_page(heap, page)) {
      _mi_page_delete(page);
      return NULL;
    }
    _mi_page_set_home(page, theap);
    theap->classes[cls].n_pages++;
  }
  _mi_theap_page_enqueue(theap, page);
  return page;
}

// A page that may have a free block, when none is known.  NULL when out of memory.
static mi_page_t* theap_page_search(mi_theap_t* theap, size_t cls) {
  _mi_theap_count(theap, MI_COUNT_SEARCHES, 1);
  mi_page_t* page = theap_page_refreed(theap, cls);
  if (page != NULL) return page;
  page = theap_page_get(theap, cls);
  if (page != NULL) _mi_theap_count(theap, MI_COUNT_SEARCHED, 1);
  return page;
}

// The blocks with which a bin is filled next.
static mi_chain_t theap_find_blocks(mi_theap_t* theap, size_t cls, bool* is_zero) {
  mi_class_state_t* state = &theap->classes[cls];
  mi_chain_t        chain = {NULL, 0};
  for (;;) {
    mi_page_t* page = state->queue.first;
    if (page == NULL) page = theap_page_search(theap, cls);
    if (page == NULL) return chain;
    chain = theap_page_take(theap, page, is_zero);
    if (mi_likely(chain.first != NULL)) return chain;
    theap_page_is_full(theap, page);
  }
}

// The first block of a chain; the bin, which is empty, gets the others.  A bin that runs empty is in use: it has all its room.
static mi_block_t* theap_fill_bin(mi_theap_t* theap, size_t cls, mi_chain_t chain) {
  mi_bin_t* bin = &theap->bins[cls];
  int32_t   room = _mi_class_info[cls].bin_limit;
  int32_t   n = (int32_t)chain.count;
  bin->limit = room;
  bin->slots = n > room ? 1 : room - n + 1;
  bin->head = _mi_block_next(chain.first);
  theap->classes[cls].total = bin->slots + n - 1;
  return chain.first;
}

// Between enter and leave.
static mi_block_t* theap_refill(mi_theap_t* theap, size_t cls, bool* is_zero) {
  mi_class_state_t* state = &theap->classes[cls];
  uint32_t          epoch = mi_load_relaxed(&_mi_background_epoch);
  mi_chain_t        chain = theap_find_blocks(theap, cls, is_zero);
  MI_PROBE3(refill, theap, cls, chain.count);
  state->n_unused = 0;
  state->epoch = epoch;
  if (mi_unlikely(state->n_fills < THEAP_FILLS_MAX)) state->n_fills++;
  if (mi_unlikely(theap->epoch != epoch)) _mi_idle_trim(theap);
  return mi_likely(chain.first != NULL) ? theap_fill_bin(theap, cls, chain) : NULL;
}

void* _mi_theap_refill(mi_theap_t* theap, size_t cls, bool* is_zero) {
  mi_assert_internal(theap->bins[cls].head == NULL);
  _mi_theap_enter(theap);
  mi_block_t* block = NULL;
  if (mi_unlikely(theap->bins[cls].head != NULL)) block = (mi_block_t*)_mi_bin_pop(&theap->bins[cls]); // it was closed
  else block = theap_refill(theap, cls, is_zero);
  _mi_theap_leave(theap);
  _mi_background_note();
  return block;
}

// ---- overflow -------------------------------------------------------------------------------------------------------

static void theap_page_is_empty(mi_theap_t* theap, mi_page_t* page) {
  mi_class_state_t* state = &theap->classes[page->cls];
  // The only page with room stays, if it is no more than a slice: the next malloc would make another.  It goes when the thread
  // does not use the class any more.
  if (state->queue.count == 1 && page->n_slices == 1) return;
  page_list_remove(&state->queue, page);
  _mi_theap_page_delete(theap, page);
}

// After a page got a free block: it may be its first, or its last.
static void theap_page_changed(mi_theap_t* theap, mi_page_t* page) {
  if (_mi_page_has(page, MI_PAGE_IS_FULL)) {
    page_list_remove(&theap->classes[page->cls].full, page);
    _mi_theap_page_enqueue(theap, page);
  }
  if (_mi_page_used(page) == 0) theap_page_is_empty(theap, page);
}

static void theap_give_back(mi_theap_t* theap, mi_page_t* page, mi_block_t* block) {
  if (!_mi_theap_owns(theap, page)) {
    _mi_outbox_add(theap, page, block);
    return;
  }
  _mi_page_push_free(page, block, page->free);
  theap_page_changed(theap, page);
}

void _mi_theap_give_back_list(mi_theap_t* theap, mi_block_t* first) {
  for (mi_block_t *block = first, *next; block != NULL; block = next) {
    next = _mi_block_next(block);
    theap_give_back(theap, _mi_page_of(block), block);
  }
}

void _mi_theap_flush_bin(mi_theap_t* theap, size_t cls) {
  mi_bin_t*   bin = &theap->bins[cls];
  mi_block_t* first = bin->head;
  bool has_no_room = (bin->slots < MI_BIN_NO_SLOTS / 2 && _mi_theap_is_sampled(mi_load_relaxed(&_mi_theap_notices)));
  bin->head = NULL;
  theap->classes[cls].total = bin->limit;
  bin->slots = (has_no_room ? MI_BIN_NO_SLOTS : bin->limit); // sampler.h, S3
  _mi_theap_give_back_list(theap, first);
}

// A block that rests in a bin keeps its page from becoming empty, and a thread that sleeps after it has freed a lot takes
// no more slow paths.  So while it frees, a bin from which nothing is taken is emptied, and holds half as much from then
// on.  Nothing was taken: `slots` has only become less.
static void theap_trim_bin(mi_theap_t* theap, size_t cls) {
  mi_bin_t*         bin = &theap->bins[cls];
  mi_class_state_t* state = &theap->classes[cls];
  if (bin->head == NULL || bin->slots > state->slots_seen) {
    state->n_unused = 0;
  }
  else if (++state->n_unused >= THEAP_UNUSED_TRIMS) {
    bin->limit /= 2;
    _mi_theap_flush_bin(theap, cls);
  }
  state->slots_seen = bin->slots;
}

static void theap_trim(mi_theap_t* theap) {
  size_t first = theap->n_trims++ * THEAP_BINS_PER_TRIM;
  for (size_t i = 0; i < THEAP_BINS_PER_TRIM; i++) theap_trim_bin(theap, (first + i) % MI_CLASS_COUNT);
  if (mi_unlikely(theap->epoch != mi_load_relaxed(&_mi_background_epoch))) _mi_idle_trim(theap);
  theap->has_trimmed = (theap->n_trims % THEAP_TRIMS_PER_POLL == 0);
}

// The rest of a free, after enter: up to leaving.
mi_noinline void _mi_theap_free_slow(mi_theap_t* theap, mi_page_t* page, mi_block_t* block) mi_attr_noexcept {
  theap_give_back(theap, page, block);
  if (++theap->n_slow_frees >= MI_THEAP_FREES_PER_TRIM) {
    theap->n_slow_frees = 0;
    theap_trim(theap);
  }
  _mi_theap_leave_slow(theap);
}

// The same, after the block was pushed to its page.
mi_noinline void _mi_theap_free_trim(mi_theap_t* theap, mi_page_t* page) mi_attr_noexcept {
  if (_mi_page_used(page) == 0) theap_page_is_empty(theap, page);
  theap_trim(theap);
  _mi_theap_leave_slow(theap);
}

void _mi_theap_free_remote(mi_theap_t* theap, mi_page_t* page, void* p) mi_attr_noexcept {
  _mi_theap_enter(theap);
  mi_batch_t* batch = _mi_outbox_batch(theap, page);
  if (mi_likely(batch->page == page && batch->count + 1 < batch->limit)) {
    _mi_outbox_link(batch, (mi_block_t*)p);
    _mi_theap_leave(theap);
  }
  else {
    _mi_theap_free_slow(theap, page, (mi_block_t*)p);
  }
}

mi_cold void _mi_theap_free_revoked(mi_theap_t* theap, mi_page_t* page, mi_block_t* block) mi_attr_noexcept {
  _mi_theap_wait_revoked(theap);
  _mi_theap_free_slow(theap, page, block);
}

void _mi_theap_leave_slow(mi_theap_t* theap) {
  bool has_deleted = theap->has_deleted;
  bool has_trimmed = theap->has_trimmed;
  theap->has_deleted = theap->has_trimmed = false;
  _mi_theap_leave(theap);
  if (mi_unlikely(has_deleted)) _mi_background_freed();
  if (mi_unlikely(has_trimmed)) _mi_background_poll();
}

// ---- letting go -----------------------------------------------------------------------------------------------------

void _mi_theap_forget(mi_theap_t* theap) {
  _mi_sampler_forget(theap);
  memset(theap->bins, 0, sizeof(theap->bins));
  memset(theap->classes, 0, sizeof(theap->classes));
  memset(theap->outbox, 0, sizeof(theap->outbox));
  _mi_large_forget_kept(theap); // lost, as its bins are
  mi_store_relaxed(&theap->presence, (uint32_t)MI_THEAP_OUTSIDE);
  mi_store_relaxed(&theap->is_closed, false);
  memset(theap->cache, 0, sizeof(theap->cache));
  _mi_directory_clear(&theap->directory);
  theap->retired = NULL;
  mi_store_relaxed(&theap->has_retired, false);
  _mi_thread_set_vacant(theap);
}

static void theap_page_release(mi_theap_t* theap, mi_page_t* page) {
  page_list_remove(theap_list_of(theap, page), page);
  _mi_page_clear(page, MI_PAGE_IS_FULL);
  for (;;) {
    _mi_page_put_free(page, _mi_page_word_take(&page->word, MI_PAGE_OWNED));
    if (_mi_page_used(page) == 0) {
      _mi_theap_page_delete(theap, page);
      return;
    }
    if (_mi_page_has_room(page) ? _mi_pool_share(page, MI_PAGE_OWNED) : theap_park(theap, page)) return;
  }
}

void _mi_theap_release_class(mi_theap_t* theap, size_t cls, size_t* n) {
  mi_class_state_t* state = &theap->classes[cls];
  for (; *n > 0 && state->queue.first != NULL; (*n)--) theap_page_release(theap, state->queue.first);
  for (; *n > 0 && state->full.first != NULL; (*n)--) theap_page_release(theap, state->full.first);
  if (*n > 0) state->n_pages = state->n_fills = 0;
}

void _mi_theap_release_pages(mi_theap_t* theap) {
  size_t n = SIZE_MAX;
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) _mi_theap_release_class(theap, cls, &n);
}

static void theap_page_collect(mi_theap_t* theap, mi_page_t* page) {
  mi_class_state_t* state = &theap->classes[page->cls];
  if (_mi_page_word_chain(mi_load_relaxed(&page->word)).first != NULL)
    _mi_page_put_free(page, _mi_page_word_take(&page->word, MI_PAGE_OWNED));
  page_list_remove(&state->queue, page);
  if (_mi_page_used(page) == 0 && state->queue.count > 0) _mi_theap_page_delete(theap, page);
  else page_list_append(&state->queue, page);
}

void _mi_theap_collect_class(mi_theap_t* theap, size_t cls, size_t* n) {
  mi_class_state_t* state = &theap->classes[cls];
  for (; *n > 0 && state->full.count > 0 && mi_load_relaxed(&_mi_thread_count) > 1; (*n)--)
    theap_park_last(theap, state);
  size_t n_pages = mi_min(*n, state->queue.count);
  *n -= n_pages;
  for (; n_pages > 0; n_pages--) theap_page_collect(theap, state->queue.first);
}

void _mi_theap_delete_empty(mi_theap_t* theap, size_t cls) {
  mi_page_t* page = theap->classes[cls].queue.first;
  if (page == NULL || _mi_page_used(page) > 0) return;
  page_list_remove(&theap->classes[cls].queue, page);
  _mi_theap_page_delete(theap, page);
}

void _mi_theap_release(mi_theap_t* theap) {
  if (MI_HARDENED) _mi_quarantine_flush(theap);
  _mi_sampler_disarm(theap);
  _mi_theap_enter(theap);
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    if (theap->bins[cls].head != NULL) _mi_theap_flush_bin(theap, cls);
  }
  _mi_outbox_flush(theap);
  _mi_theap_release_pages(theap);
  _mi_theap_leave(theap);
  _mi_large_drop_kept(theap);
}
