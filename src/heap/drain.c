// Drained pages.  Layer: heap.
#include "drain.h"

#include "bin.h"
#include "gaps.h"

// Fewer frees are not worth it.
#define DRAIN_MIN 8

// DR1, for debug builds.
static bool drain_is_of(mi_block_t* block, const mi_page_t* page, size_t n) {
  for (; block != NULL && n > 0; n--, block = _mi_page_next_block(block)) {
    if (_mi_page_of(block) != page) return false;
  }
  return block == NULL && n == 0;
}

// Is it the theap's, with a list of its own?  A drain whose thread was stopped may outlive that: the page was shared, became a gap
// page of another thread, and the theap has adopted it again (gaps.h, GP3).
static bool drain_owns(const mi_theap_t* theap, mi_page_t* page) {
  return _mi_queue_owns(theap, page) && !_mi_gaps_is(page);
}

// True if the blocks are in the page's list; what becomes of the page is up to the caller.
static bool drain_close(mi_theap_t* theap, mi_drain_t* drain) {
  mi_page_t*  page = drain->page;
  mi_block_t* first = drain->bin.head;
  size_t      n = (size_t)(drain->book.total - drain->bin.slots);
  bool        is_owned = (page != NULL && drain_owns(theap, page));
  mi_assert_expensive(page == NULL || drain->last == NULL || drain_is_of(first, page, n));
  drain->bin.slots = drain->book.total = 0; // H1
  mi_compiler_fence();
  drain->bin.head = NULL;
  drain->page = NULL;
  if (is_owned) _mi_queue_set_bin(theap, page);
  if (is_owned && drain->last != NULL) _mi_page_put_some(page, first, drain->last, n);
  else _mi_outbox_return_list(theap, first);
  return is_owned && drain->last != NULL;
}

size_t _mi_drain_end(mi_theap_t* theap, mi_drain_t* drain) {
  mi_page_t* page = drain->page;
  if (drain->bin.head == NULL || !drain_close(theap, drain)) return 0;
  size_t used = _mi_page_used(page);
  _mi_queue_freed_one(theap, page);
  return used;
}

void _mi_drain_end_all(mi_theap_t* theap) {
  for (size_t i = 0; i < MI_DRAINS; i++) _mi_drain_end(theap, &theap->drains[i]);
}

// What cannot be taken stays in the drain, as in a bin, until its thread comes by.
void _mi_drain_take_all(mi_theap_t* theap) {
  for (size_t i = 0; i < MI_DRAINS; i++) {
    mi_drain_t* drain = &theap->drains[i];
    mi_page_t*  page = drain->page;
    if (page == NULL) continue;
    if (drain_owns(theap, page)) _mi_queue_set_bin(theap, page);
    mi_block_t* list = _mi_bin_take(&drain->bin, &drain->book, page->cls);
    if (list != NULL) drain->page = NULL;
    _mi_outbox_return_list(theap, list);
  }
}

// Nothing was taken from the class's bin since a page of the class was looked at before, as far as its first block tells.
static bool drain_is_due(mi_drain_t* drain, const mi_bin_t* bin, size_t cls) {
  bool is_due = (bin->slots == 0 && drain->seen == bin->head && drain->seen_cls == cls);
  drain->seen = bin->head;
  drain->seen_cls = (uint32_t)cls;
  return is_due;
}

// So many frees that afterwards the number of used blocks is a multiple of MI_FREES_PER_LOOK: the free that finds the drain
// full comes by then, and so does the one that makes the page empty.
static int32_t drain_slots(size_t used) {
  size_t n = used - 1;
  if (n >= MI_DRAIN_MAX) n = MI_DRAIN_MAX - MI_FREES_PER_LOOK + n % MI_FREES_PER_LOOK;
  return (int32_t)n;
}

// With one block that is on the page's list.
static void drain_open(mi_drain_t* drain, mi_page_t* page) {
  size_t      used = _mi_page_used(page);
  mi_block_t* block = _mi_page_take_free(page, 1).first;
  drain->page = page;
  drain->last = drain->bin.head = block;
  drain->bin.slots = drain_slots(used);
  drain->book.total = drain->bin.slots + 1;
  _mi_page_set_bin(page, _mi_theap_drain_offset(page->cls));
}

// Will the free that finds the drain full take a slow path?
static bool drain_is_seen_full(mi_page_t* page, size_t used) {
  return used % MI_FREES_PER_LOOK == 0 || _mi_page_next_block(page->free) == NULL;
}

void _mi_drain_freed(mi_theap_t* theap, mi_page_t* page) {
  size_t      cls = page->cls;
  mi_drain_t* drain = _mi_theap_drain(theap, cls);
  size_t      used = _mi_page_used(page);
  if (drain->page == page) used = _mi_drain_end(theap, drain);
  else _mi_queue_freed_one(theap, page);
  if (used < DRAIN_MIN || !drain_is_due(drain, &theap->bins[cls], cls) || theap->return_offset != 0) return; // DR4
  if (mi_unlikely(drain->bin.head != NULL)) _mi_drain_end(theap, drain); // of another page; that was all for now
  else if (drain_is_seen_full(page, used)) drain_open(drain, page);
}
