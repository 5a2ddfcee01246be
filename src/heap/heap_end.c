// Deleting and destroying heaps.  Layer: heap.
#include "heap_end.h"

#include "../base/probe.h"
#include "../base/track.h"
#include "../page/verify.h"
#include "../support/stat.h"
#include "attach.h"
#include "event.h"
#include "idle.h"
#include "large.h"
#include "late.h"
#include "pool.h"
#include "vacant.h"

// How many theaps or pages are looked at while locks are held.
#define HEAP_END_BATCH 64

// Calls `act` until it returns false, and lets others have the registry lock in between.
static void heap_end_do(bool (*act)(mi_heap_t* heap), mi_heap_t* heap) {
  bool goes_on;
  do {
    _mi_lock_acquire(&_mi_registry_lock);
    goes_on = act(heap);
    _mi_lock_release(&_mi_registry_lock);
  } while (goes_on);
}

// Nobody takes from its theaps from then on, nor makes one.  False: somebody else was faster.
static bool heap_end_begin(mi_heap_t* heap) {
  _mi_lock_acquire(&_mi_idle_lock);
  _mi_late_lock();
  _mi_lock_acquire(&_mi_registry_lock);
  bool ok = _mi_heap_retire(heap);
  _mi_lock_release(&_mi_registry_lock);
  if (ok) return true;
  _mi_late_unlock();
  _mi_lock_release(&_mi_idle_lock);
  return false;
}

static void heap_end_unlock(void) {
  _mi_late_unlock();
  _mi_lock_release(&_mi_idle_lock);
}

static bool heap_end_drop_user(mi_heap_t* heap) {
  _mi_heap_drop_user(heap);
  return false;
}

// A handler of a fork may be ending it while all locks are held; those of heaps that are not listed are not given back later.
static void heap_end_give_back_lock(mi_heap_t* heap) {
  if (_mi_lock_is_forker()) _mi_lock_give_back(&heap->lock);
}

// ---- deleting -------------------------------------------------------------------------------------------------------

static bool heap_end_retire_theaps(mi_heap_t* heap) {
  heap->late = NULL;
  for (size_t i = 0; i < HEAP_END_BATCH; i++) {
    mi_theap_t* theap = (heap->theaps != NULL ? heap->theaps : heap->vacant);
    if (theap == NULL) return false;
    if (mi_load_relaxed(&theap->is_late)) {
      _mi_attach_release(theap);
      _mi_attach_end(theap);
    }
    else {
      _mi_attach_retire(theap);
    }
  }
  return true;
}

// Some of its pages; false when there are none left.  First those in the pools, each together with its place: whoever looks
// for a page in the pool of its heap must find it there.
static bool heap_end_hand_over_pages(mi_heap_t* heap) {
  size_t n = HEAP_END_BATCH;
  _mi_lock_acquire(&heap->lock);
  _mi_pool_hand_over(heap, &_mi_heap_hand_over_page, &n);
  for (; n > 0 && heap->pages != NULL; n--) _mi_heap_hand_over_page(heap, heap->pages);
  _mi_lock_release(&heap->lock);
  return n == 0;
}

void _mi_heap_end_delete(mi_heap_t* heap) {
  MI_PROBE1(heap_delete, heap);
  if (!heap_end_begin(heap)) return;
  heap_end_do(&heap_end_retire_theaps, heap);
  while (heap_end_hand_over_pages(heap)) {
  }
  heap_end_do(&heap_end_drop_user, heap);
  heap_end_unlock();
  _mi_attach_drop_retired(); // the calling thread's own
  heap_end_give_back_lock(heap);
}

// ---- destroying -----------------------------------------------------------------------------------------------------

static bool heap_end_clear_theaps(mi_heap_t* heap) {
  heap->late = NULL;
  for (size_t i = 0; i < HEAP_END_BATCH && heap->theaps != NULL; i++) _mi_attach_clear(heap->theaps);
  return heap->theaps != NULL;
}

// Without a page, they can serve another heap.
static bool heap_end_free_theaps(mi_heap_t* heap) {
  for (size_t i = 0; i < HEAP_END_BATCH && heap->vacant != NULL; i++) _mi_vacant_set_unused(heap->vacant);
  return heap->vacant != NULL;
}

// In checked builds, each block in use goes as if it were freed: tools are told of it, an overflow is reported, and its end is not taken
// for that of a block of the page which gets this memory.
static void heap_end_retire_blocks(mi_page_t* page) {
  size_t size = _mi_page_block_size(page), first = _mi_page_first_made(page);
  for (size_t i = 0; i < page->extended; i++) {
    void* p = _mi_page_block(page, (first + i) % page->capacity);
    if (MI_TRACK && _mi_padding_is_whole(p, size)) mi_track_unblock(p);
    if (_mi_padding_is_whole(p, size)) {
      if (MI_TRACK) mi_track_freed(p, _mi_padding_read(p, size));
      _mi_padding_retire(p, size);
    }
    else if (!MI_TRACK) {
      _mi_verify_destroyed(page, p);
    }
  }
  if (MI_TRACK) mi_track_closed(_mi_page_start(page), page->n_slices * MI_SLICE_SIZE);
}

// Nobody else has rights on the page any more.
static void heap_end_destroy_page(mi_page_t* page) {
  if (_mi_page_kind(page) == MI_PAGE_LARGE) {
    _mi_large_discard(page);
    return;
  }
  if (_mi_page_word_state(mi_load_relaxed(&page->word)) == MI_PAGE_SHARED)
    _mi_stat_decrease(&_mi_stat_live.pages_abandoned, 1);
  if (MI_CHECKED) heap_end_retire_blocks(page);
  if (MI_TAGS) _mi_prim_tag_clear(_mi_page_start(page), page->n_slices * MI_SLICE_SIZE);
  mi_store_relaxed(&_mi_page_heap_link(page)->heap, (mi_heap_t*)NULL); // heap.h, Q7
  _mi_page_set_used(page, 0);
  _mi_page_delete(page);
}

static mi_page_t* heap_end_take_pages(mi_heap_t* heap) {
  _mi_lock_acquire(&heap->lock);
  mi_page_t* first = heap->pages;
  heap->pages = NULL;
  heap->n_pages = 0;
  mi_store_relaxed(&heap->n_guarded, (size_t)0);
  _mi_limit_init(&heap->limit);
  _mi_pool_clear(heap);
  _mi_lock_release(&heap->lock);
  return first;
}

void _mi_heap_end_destroy(mi_heap_t* heap) {
  MI_PROBE1(heap_destroy, heap);
  if (!heap_end_begin(heap)) return;
  heap_end_do(&heap_end_clear_theaps, heap);
  heap_end_unlock();
  for (mi_page_t *page = heap_end_take_pages(heap), *next; page != NULL; page = next) {
    next = _mi_page_heap_link(page)->next;
    heap_end_destroy_page(page);
  }
  heap_end_do(&heap_end_free_theaps, heap); // heap.h, Q3: no page knows them any more
  heap_end_do(&heap_end_drop_user, heap);
  heap_end_give_back_lock(heap);
  _mi_event_freed();
}
