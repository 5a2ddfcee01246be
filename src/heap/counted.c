// Counted theaps: their second bins.  Layer: heap.  counted.h has the invariants.
#include "counted.h"

#include <string.h>

#include "outbox.h"
#include "trim.h"

mi_static_assert(MI_RETURNS_OFFSET + (MI_CLASS_COUNT << MI_BIN_SHIFT) <= UINT16_MAX, "bin_offset has 16 bits");

static int32_t counted_limit(size_t cls) {
  return _mi_size_class_info[cls].bin_limit;
}

// In both states `slots` says how many a return bin has: it has more than its limit only after a cut.
static int32_t counted_returned(const mi_theap_t* theap, size_t cls) {
  return counted_limit(cls) - theap->returns[cls].slots;
}

static void counted_set_list(mi_theap_t* theap, const mi_page_list_t* list) {
  for (mi_page_t* page = list->first; page != NULL; page = page->next) _mi_queue_set_bin(theap, page);
}

static void counted_set_pages(mi_theap_t* theap, size_t return_offset) {
  theap->return_offset = (uint16_t)return_offset;
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    counted_set_list(theap, &theap->classes[cls].queue);
    counted_set_list(theap, &theap->classes[cls].full);
  }
}

void _mi_counted_begin(mi_theap_t* theap) {
  if (_mi_counted_is(theap)) return;
  _mi_presence_enter(theap);
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    theap->returns[cls].head = NULL;
    theap->returns[cls].slots = counted_limit(cls);
    theap->bins[cls].slots = MI_BIN_NO_SLOTS;
  }
  counted_set_pages(theap, MI_RETURNS_OFFSET);
  mi_fetch_add_relaxed(&_mi_event_pending, 1); // while entered: from here on no round closes bins
  _mi_presence_leave(theap);
}

static int32_t counted_length(const mi_block_t* block) {
  int32_t n = 0;
  for (; block != NULL; block = _mi_page_next_block(block)) n++;
  return n;
}

void _mi_counted_end(mi_theap_t* theap) {
  if (!_mi_counted_is(theap)) return;
  _mi_presence_enter(theap);
  counted_set_pages(theap, 0);
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    mi_bin_t* bin = &theap->bins[cls];
    int32_t   n = counted_length(bin->head);
    bin->slots = (n < bin->limit ? bin->limit - n : 0);
    theap->classes[cls].total = bin->slots + n;
    _mi_outbox_flush_returns(theap, cls);
    theap->returns[cls].slots = 0; // CN2
  }
  mi_fetch_sub_relaxed(&_mi_event_pending, 1);
  _mi_presence_leave(theap);
}

void _mi_counted_forget(mi_theap_t* theap) {
  if (_mi_counted_is(theap)) mi_fetch_sub_relaxed(&_mi_event_pending, 1);
  theap->return_offset = 0;
  memset(theap->returns, 0, sizeof(theap->returns));
}

// So many blocks a swap takes: those that were freed last, which are in the cache.  With all that a return bin has, python had
// 22 % more misses of the first cache (docs/decisions/022).
#define COUNTED_SWAP_MAX   16
#define COUNTED_SWAP_MIN   8
#define COUNTED_SWAP_BYTES (2 * MI_KiB)

static int32_t counted_swap_max(size_t cls) {
  size_t n = COUNTED_SWAP_BYTES / _mi_size_class_block(cls);
  n = mi_min(mi_max(n, COUNTED_SWAP_MIN), COUNTED_SWAP_MAX);
  int32_t limit = counted_limit(cls);
  return (int32_t)mi_min_signed((int64_t)n, limit > 1 ? limit : 1);
}

// Not if there are few: both bins could go on with a block each.  A refill brings new ones then.
size_t _mi_counted_ready(const mi_theap_t* theap, size_t cls) {
  int32_t n = counted_returned(theap, cls), n_max = counted_swap_max(cls);
  return theap->returns[cls].head == NULL || n < n_max / 2 ? 0 : (size_t)mi_min_signed(n, n_max);
}

size_t _mi_counted_move(mi_theap_t* theap, size_t cls, size_t n_max) {
  mi_bin_t*   returns = &theap->returns[cls];
  mi_block_t* last = returns->head;
  mi_block_t* next = _mi_page_next_block(last);
  size_t      n = 1;
  theap->bins[cls].head = last;
  for (; n < n_max && next != NULL; n++, next = _mi_page_next_block(next)) last = next;
  returns->head = next;
  returns->slots += (int32_t)n;
  _mi_block_set_next(last, NULL);
  return n;
}

// What a refill does beside its work is done here, too.
void _mi_counted_swap(mi_theap_t* theap, size_t cls) {
  mi_bin_t* bin = &theap->bins[cls];
  _mi_presence_enter(theap);
  _mi_trim_by_round(theap);
  size_t n_max = _mi_counted_ready(theap, cls);
  if (bin->head == NULL && n_max > 0) {
    int32_t n = (int32_t)_mi_counted_move(theap, cls, n_max);
    bin->limit = counted_limit(cls);
    bin->slots = (n < bin->limit ? bin->limit - n : 0);
    theap->classes[cls].total = bin->slots + n;
    theap->classes[cls].round = mi_load_relaxed(&_mi_event_round);
  }
  _mi_presence_leave(theap);
  _mi_event_note();
}

size_t _mi_counted_left(mi_theap_t* theap, size_t cls) {
  int32_t slots = theap->bins[cls].slots;
  return (size_t)(_mi_bin_has_no_slots(slots) ? counted_length(theap->bins[cls].head)
                                              : theap->classes[cls].total - slots);
}

void _mi_counted_keep(mi_theap_t* theap, size_t cls, size_t n) {
  mi_bin_t*   bin = &theap->bins[cls];
  mi_bin_t*   returns = &theap->returns[cls];
  mi_block_t* last = NULL;
  mi_block_t* block = bin->head;
  for (size_t i = 0; i < n && block != NULL; i++, block = _mi_page_next_block(block)) last = block;
  if (block == NULL) return;
  if (last != NULL) _mi_block_set_next(last, NULL);
  else bin->head = NULL;
  // What is cut off goes before what is there.
  mi_block_t* end = block;
  int32_t     n_cut = 1;
  for (mi_block_t* next; (next = _mi_page_next_block(end)) != NULL; end = next) n_cut++;
  _mi_block_set_next(end, returns->head);
  returns->head = block;
  returns->slots -= n_cut;
}
