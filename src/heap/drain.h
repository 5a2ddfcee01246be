// Tear-downs: many frees into one page, with nothing allocated between them.  Layer: heap.
//
//   free, its bin is full:        page's free list                      one by one, in a slow path
//   ... and the page is drained:  drain  --all at once--> page's free list
//
// A free that finds its bin full goes to the page, which takes twice as many instructions.  So when nothing was taken from
// the bin of a class while many blocks were freed past it, one page of the class at a time is drained: frees of its blocks go to a bin
// of their own, the drain (docs/decisions/023).
//
// DR1  A drain in use is named by `bin_offset` of the page that it drains, and of no other page: so all its blocks are of that
//      page, whose list gets them in one step.  A page that leaves its owner's hands names the bin of its class again.  Its next owner may
//      drain it, too, and drains have the same offsets in all theaps: so a free reads bin_offset before `home` (page.h, P6).
// DR2  For other threads a drain is a bin like any other: its blocks count as used (page.h, P1), and a round takes it as it takes bins
//      (bin.h).  It has so many slots that the free which makes the page empty finds none, and takes the slow path.
// DR3  malloc takes nothing from a drain.  Before anybody looks for blocks or for empty pages of the class, the blocks of the drain go to
//      their page, as they do when bins are trimmed (trim.h).  No more than MI_DRAIN_MAX blocks wait in a drain.
// DR4  Counted theaps (counted.h) have no drains.
//
// All functions are called between enter and leave.
#pragma once

#include "outbox.h"

// After this many frees into a page past its bin (a power of two) the page is looked at, and a few bins (trim.h, TI1).
#define MI_FREES_PER_LOOK 32

#define MI_DRAIN_MAX      128 // blocks; a multiple of MI_FREES_PER_LOOK
#define MI_DRAIN_CAPACITY 32  // pages of fewer blocks are not drained

// Ends a drain: its blocks go to their page, or, if the theap does not own that page any more, wherever they belong.  Returns how many
// blocks of the page are in use then; 0 also if nobody can tell, because the page may be gone.
size_t _mi_drain_end(mi_theap_t* theap, mi_drain_t* drain);
void   _mi_drain_end_all(mi_theap_t* theap);

// The same for the drain of a class, if it is in use.
static inline void _mi_drain_end_class(mi_theap_t* theap, size_t cls) {
  mi_drain_t* drain = _mi_theap_drain(theap, cls);
  if (mi_likely(drain->bin.head == NULL)) return;
  if (drain->page == NULL || drain->page->cls == cls) _mi_drain_end(theap, drain);
}

// For a round that holds the theap: its pages are not drained any more.
void _mi_drain_take_all(mi_theap_t* theap);

// For pages of MI_DRAIN_CAPACITY blocks and more.
void _mi_drain_freed(mi_theap_t* theap, mi_page_t* page);

// A block of an owned page went past its bin to the page's list: the page may be empty now, or may be drained from now on.
static inline void _mi_drain_freed_one(mi_theap_t* theap, mi_page_t* page) {
  if (page->capacity >= MI_DRAIN_CAPACITY) _mi_drain_freed(theap, page);
  else _mi_queue_freed_one(theap, page);
}
