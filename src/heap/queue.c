// Lists of pages, and the ways out of them.  Layer: heap.
#include "queue.h"

#include "../base/probe.h"
#include "pool.h"
#include "spare.h"

// Full pages of a thread that was alone are its own until it is not: so many are parked at a time then, and so many are
// looked at for blocks that others have freed.
#define QUEUE_FULL_STEP 4

static void queue_list_append(mi_page_list_t* list, mi_page_t* page) {
  page->next = NULL;
  page->prev = list->last;
  if (list->last != NULL) list->last->next = page;
  else list->first = page;
  list->last = page;
  list->count++;
}

static void queue_list_remove(mi_page_list_t* list, mi_page_t* page) {
  if (page->prev != NULL) page->prev->next = page->next;
  else list->first = page->next;
  if (page->next != NULL) page->next->prev = page->prev;
  else list->last = page->prev;
  page->next = page->prev = NULL;
  list->count--;
}

// The page becomes the last one, and the one behind it the first.
static void queue_list_turn(mi_page_list_t* list, mi_page_t* page) {
  mi_page_t* first = page->next;
  if (first == NULL) return;
  list->last->next = list->first;
  list->first->prev = list->last;
  page->next = first->prev = NULL;
  list->first = first;
  list->last = page;
}

static mi_class_state_t* queue_class(mi_theap_t* theap, const mi_page_t* page) {
  return &theap->classes[page->cls];
}

void _mi_queue_set_bin(const mi_theap_t* theap, mi_page_t* page) {
  _mi_page_set_bin(page, ((size_t)page->cls << MI_BIN_SHIFT) + theap->return_offset);
}

void _mi_queue_add(mi_theap_t* theap, mi_page_t* page) {
  bool names_bin = (mi_load_relaxed(&page->bin_offset) < sizeof(theap->bins));
  if (mi_unlikely(names_bin != (theap->return_offset == 0))) _mi_queue_set_bin(theap, page);
  _mi_page_clear(page, MI_PAGE_IS_FULL);
  queue_list_append(&queue_class(theap, page)->queue, page);
}

void _mi_queue_bring_forward(mi_theap_t* theap, mi_page_t* page) {
  queue_list_turn(&queue_class(theap, page)->queue, page);
}

// The class has a page less.
static void queue_lose(mi_theap_t* theap, const mi_page_t* page) {
  mi_class_state_t* state = queue_class(theap, page);
  if (state->n_pages > 0) state->n_pages--;
}

void _mi_queue_remove(mi_theap_t* theap, mi_page_t* page) {
  queue_lose(theap, page);
  queue_list_remove(&queue_class(theap, page)->queue, page);
}

void _mi_queue_note_left_any(mi_theap_t* theap) {
  mi_store_relaxed(&theap->left.any, false);
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    mi_class_state_t* state = &theap->classes[cls];
    state->n_pages -= (uint32_t)mi_min(state->n_pages, mi_exchange_relaxed(&theap->left.n[cls], 0u));
  }
}

void _mi_queue_leave_home(mi_theap_t* theap, mi_page_t* page) {
  mi_theap_t* home = mi_load_relaxed(&page->home);
  if (home == NULL) return;
  if (home == theap) queue_lose(theap, page);
  else _mi_theap_count_left(home, page->cls);
}

// Gives back a page that is in no list.
static void queue_delete(mi_theap_t* theap, mi_page_t* page) {
  queue_lose(theap, page);
  theap->has_deleted = true;
  _mi_heap_delete_page(page);
}

static void queue_remove_and_delete(mi_theap_t* theap, mi_page_t* page) {
  queue_list_remove(&queue_class(theap, page)->queue, page);
  queue_delete(theap, page);
}

// An empty page, which no list has, waits for the next request of its class, if it may.
static void queue_let_wait(mi_theap_t* theap, mi_page_t* page) {
  queue_lose(theap, page);
  theap->has_deleted = true;
  mi_store_relaxed(&page->word, _mi_page_word_make(MI_PAGE_CLAIMED, 0, NULL)); // EP1; nobody else has a block of it
  if (!_mi_spare_keep(page)) _mi_heap_delete_page(page);
}

static void queue_remove_empty(mi_theap_t* theap, mi_page_t* page) {
  queue_list_remove(&queue_class(theap, page)->queue, page);
  queue_let_wait(theap, page);
}

void _mi_queue_is_empty(mi_theap_t* theap, mi_page_t* page) {
  // The only page with room stays, if it is no more than a slice: the next malloc would make another.  It goes when the thread
  // does not use the class any more.
  if (queue_class(theap, page)->queue.count > 1 || page->n_slices > 1) queue_remove_empty(theap, page);
}

void _mi_queue_freed_one(mi_theap_t* theap, mi_page_t* page) {
  if (_mi_page_has(page, MI_PAGE_IS_FULL)) {
    queue_list_remove(&queue_class(theap, page)->full, page);
    _mi_queue_add(theap, page);
  }
  if (_mi_page_used(page) == 0) _mi_queue_is_empty(theap, page);
}

void _mi_queue_delete_empty(mi_theap_t* theap, size_t cls) {
  mi_page_t* page = theap->classes[cls].queue.first;
  if (page != NULL && _mi_page_used(page) == 0) queue_remove_and_delete(theap, page);
}

// ---- full pages -------------------------------------------------------------------------------------------------------

static bool queue_park(mi_theap_t* theap, mi_page_t* page) {
  _mi_theap_undrain(page);
  if (!_mi_page_word_park(&page->word)) return false;
  _mi_theap_count(theap, MI_COUNT_PARKED, 1);
  MI_PROBE2(page_park, page, _mi_page_block_size(page));
  return true;
}

// With more than one thread all full pages are parked, so that whoever frees into them can make them available again
// without waiting for this thread (docs/decisions/009).
static void queue_park_full(mi_theap_t* theap, mi_class_state_t* state, size_t* n) {
  if (mi_load_relaxed(&_mi_registry_n_threads) <= 1) return;
  for (; *n > 0 && state->full.count > 0; (*n)--) {
    mi_page_t* page = state->full.last;
    queue_list_remove(&state->full, page);
    _mi_page_clear(page, MI_PAGE_IS_FULL);
    if (!queue_park(theap, page)) _mi_queue_add(theap, page); // not full any more
  }
}

void _mi_queue_is_full(mi_theap_t* theap, mi_page_t* page) {
  mi_class_state_t* state = queue_class(theap, page);
  size_t            n = QUEUE_FULL_STEP;
  queue_list_remove(&state->queue, page);
  _mi_page_set(page, MI_PAGE_IS_FULL);
  queue_list_append(&state->full, page);
  queue_park_full(theap, state, &n);
}

mi_page_t* _mi_queue_refreed(mi_theap_t* theap, size_t cls) {
  mi_page_list_t* full = &theap->classes[cls].full;
  for (size_t n = mi_min(full->count, QUEUE_FULL_STEP); n > 0; n--) {
    mi_page_t* page = full->first;
    queue_list_remove(full, page);
    _mi_theap_count(theap, MI_COUNT_SEARCHED, 1);
    if (_mi_page_word_chain(mi_load_relaxed(&page->word)).count >= _mi_size_class_info[cls].claim_own_at) {
      _mi_queue_add(theap, page);
      return page;
    }
    queue_list_append(full, page);
  }
  return NULL;
}

// ---- letting go -------------------------------------------------------------------------------------------------------

static void queue_take_chain(mi_page_t* page) {
  if (_mi_page_word_chain(mi_load_relaxed(&page->word)).first == NULL) return;
  _mi_page_put_free(page, _mi_page_word_take(&page->word, MI_PAGE_OWNED));
}

static void queue_release_page(mi_theap_t* theap, mi_page_list_t* list, mi_page_t* page) {
  queue_list_remove(list, page);
  _mi_page_clear(page, MI_PAGE_IS_FULL);
  for (;;) {
    queue_take_chain(page);
    if (_mi_page_used(page) == 0) {
      queue_let_wait(theap, page);
      return;
    }
    if (_mi_page_has_room(page) ? _mi_pool_share(page, MI_PAGE_OWNED) : queue_park(theap, page)) return;
  }
}

void _mi_queue_release(mi_theap_t* theap, size_t cls, size_t* n) {
  mi_class_state_t* state = &theap->classes[cls];
  for (; *n > 0 && state->queue.first != NULL; (*n)--) queue_release_page(theap, &state->queue, state->queue.first);
  for (; *n > 0 && state->full.first != NULL; (*n)--) queue_release_page(theap, &state->full, state->full.first);
  if (*n == 0) return;
  state->n_pages = state->n_fills = 0;
  mi_store_relaxed(&theap->left.n[cls], 0u);
}

void _mi_queue_release_all(mi_theap_t* theap) {
  size_t n = SIZE_MAX;
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) _mi_queue_release(theap, cls, &n);
}

void _mi_queue_collect(mi_theap_t* theap, size_t cls, size_t* n) {
  mi_class_state_t* state = &theap->classes[cls];
  queue_park_full(theap, state, n);
  size_t n_pages = mi_min(*n, state->queue.count);
  *n -= n_pages;
  for (; n_pages > 0; n_pages--) {
    mi_page_t* page = state->queue.first;
    queue_take_chain(page);
    queue_list_remove(&state->queue, page);
    if (_mi_page_used(page) == 0 && state->queue.count > 0) queue_delete(theap, page);
    else queue_list_append(&state->queue, page);
  }
}
