// Counted theaps: their second bins.  Layer: heap.  counted.h has the invariants.
#include "counted.h"

#include <string.h>

#include "drain.h"
#include "trim.h"

mi_static_assert(MI_RETURNS_OFFSET + (MI_CLASS_COUNT << MI_BIN_SHIFT) <= UINT16_MAX, "bin_offset has 16 bits");

static int32_t counted_limit(size_t cls) {
  return _mi_size_class_info[cls].bin_limit;
}

static void counted_set_list(mi_theap_t* theap, const mi_page_list_t* list) {
  for (mi_page_t* page = list->first; page != NULL; page = page->next) _mi_queue_set_bin(theap, page);
}

static void counted_set_pages(mi_theap_t* theap, size_t return_offset) {
  mi_store_plain_relaxed(&theap->return_offset, (uint16_t)return_offset); // rounds read it
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    counted_set_list(theap, &theap->classes[cls].queue);
    counted_set_list(theap, &theap->classes[cls].full);
  }
}

static int32_t counted_length(const mi_block_t* block) {
  int32_t n = 0;
  for (; block != NULL; block = _mi_page_next_block(block)) n++;
  return n;
}

void _mi_counted_begin(mi_theap_t* theap) {
  if (_mi_counted_is(theap)) return;
  _mi_presence_enter(theap);
  _mi_drain_end_all(theap); // DR4
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    theap->returns[cls].head = NULL;
    theap->returns[cls].slots = counted_limit(cls);
    _mi_counted_fill(theap, cls);
  }
  counted_set_pages(theap, MI_RETURNS_OFFSET);
  mi_fetch_add_relaxed(&_mi_event_pending, 1); // while entered: from here on no round closes bins
  _mi_presence_leave(theap);
}

void _mi_counted_end(mi_theap_t* theap) {
  if (!_mi_counted_is(theap)) return;
  _mi_presence_enter(theap);
  counted_set_pages(theap, 0);
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    mi_bin_t* bin = &theap->bins[cls];
    int32_t   n = counted_length(bin->head);
    bin->slots = (n < bin->limit ? bin->limit - n : 0);
    theap->classes[cls].book.total = bin->slots + n;
    _mi_outbox_flush_returns(theap, cls);
    theap->returns[cls].slots = 0; // CN2
  }
  mi_fetch_sub_relaxed(&_mi_event_pending, 1);
  _mi_presence_leave(theap);
}

void _mi_counted_forget(mi_theap_t* theap) {
  if (_mi_counted_is(theap)) mi_fetch_sub_relaxed(&_mi_event_pending, 1);
  mi_store_plain_relaxed(&theap->return_offset, (uint16_t)0);
  memset(theap->returns, 0, sizeof(theap->returns));
}

// What a refill gave to the bin becomes the return bin's.  A refill found that empty; but giving other blocks back meanwhile may
// have changed it.
void _mi_counted_fill(mi_theap_t* theap, size_t cls) {
  mi_bin_t* bin = &theap->bins[cls];
  mi_bin_t* returns = &theap->returns[cls];
  int32_t   n =
      (_mi_bin_has_no_slots(bin->slots) ? counted_length(bin->head) : theap->classes[cls].book.total - bin->slots);
  mi_block_t* last = bin->head;
  if (returns->head != NULL && last != NULL) {
    for (mi_block_t* next; (next = _mi_page_next_block(last)) != NULL;) last = next;
    _mi_block_set_next(last, returns->head);
  }
  if (last != NULL) returns->head = bin->head;
  returns->slots -= n;
  bin->head = NULL;
  bin->slots = MI_BIN_NO_SLOTS;
}

void _mi_counted_attend(mi_theap_t* theap) {
  _mi_presence_enter(theap);
  _mi_trim_by_round(theap);
  _mi_presence_leave(theap);
  _mi_event_note();
}
