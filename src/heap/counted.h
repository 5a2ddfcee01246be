// Counted theaps: all their allocations are counted.  Layer: heap.
//
//   malloc:  bin (empty)  --slow path, counted-->  return bin  <--  free
//                                                   ^--refill-- pages  <--overflow--'
//
// A bin of an uncounted theap takes freed blocks, and malloc takes them again, so that nobody can tell how often.  A counted theap has a
// second bin for each class, the return bin, to which frees go.  Its bins stay empty, so that each malloc takes the slow path, which begins
// with a few instructions that count the allocation and take a block of the return bin.
//
// CN1  Frees follow `bin_offset` of their page.  A page in the lists of a theap (H4) names the bin or the return bin, as its
//      theap is counted or not; it is changed when the theap changes, and when a page comes into a list.  Any other page may name
//      either.
// CN2  The bin of a counted theap has no slots (MI_BIN_NO_SLOTS), and the return bin of any other theap has none (0).  So if a page names
//      the wrong one of the two, a freed block goes to the page, which comes into a list then, or is in one already.
// CN3  The bin of a counted theap is empty outside of slow paths: the blocks of a refill go to the return bin.
// CN4  A return bin belongs to the thread, as the bin does.  Rounds do not close the bins of counted theaps (idle.c).
#pragma once

#include "bin.h"
#include "event.h"

// Each counted theap counts as a pending event.
static inline bool _mi_counted_is(const mi_theap_t* theap) {
  return theap->return_offset != 0;
}

// For the theap's thread, outside of enter and leave.
void _mi_counted_begin(mi_theap_t* theap);
void _mi_counted_end(mi_theap_t* theap); // the blocks of return bins go to their pages

// Its bins are lost, with their blocks.
void _mi_counted_forget(mi_theap_t* theap);

// A block of its return bin; NULL if there is none, and of any other theap.
static mi_always_inline mi_block_t* _mi_counted_pop(mi_theap_t* theap, size_t cls) {
  mi_bin_t*   returns = &theap->returns[cls];
  mi_block_t* block = returns->head;
  if (mi_unlikely(block == NULL)) return NULL;
  returns->slots++;
  returns->head = _mi_page_next_block(block);
  return block;
}

// What a refill gave to its bin goes to the return bin.
void _mi_counted_fill(mi_theap_t* theap, size_t cls);

// What a refill does beside its work, now and then.
void _mi_counted_attend(mi_theap_t* theap);
