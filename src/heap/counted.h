// Theaps whose allocations are all counted, without a look at each of them.  Layer: heap.
//
//   malloc:  bin  <--swap--  return bin  <--  free
//             ^---refill---  pages       <--overflow--'
//
// The bin of an uncounted theap takes what is freed, so that nobody can tell how often a block came and went.  A counted one has
// a second bin for each class, where frees go.  The bin runs empty after as many mallocs as it had blocks, and whoever fills it
// knows that number.
//
// CN1  Frees follow `bin_offset` of their page.  A page in the lists of a theap (H4) names the bin or the return bin, as its
//      theap is counted or not; it is changed when the theap changes, and when a page comes into a list.  Any other page may name
//      either.
// CN2  The bin of a counted theap has no slots (MI_BIN_NO_SLOTS), and the return bin of any other has none (0): what a page
//      that names the wrong one gives goes to that page, which comes into a list then, or is in one already.
// CN3  `slots` of such a bin goes up by one with each block that is taken, and so tells how many were taken since it was filled.
// CN4  A return bin belongs to the thread, as the bin does.  Rounds do not close the bins of counted theaps (idle.c).
#pragma once

#include "bin.h"
#include "event.h"

// Each counts as a pending event.
static inline bool _mi_counted_is(const mi_theap_t* theap) {
  return theap->return_offset != 0;
}

// For the theap's thread, outside of enter and leave.
void _mi_counted_begin(mi_theap_t* theap);
void _mi_counted_end(mi_theap_t* theap); // the blocks of return bins go to their pages

// Its bins are lost, with their blocks.
void _mi_counted_forget(mi_theap_t* theap);

// The empty bin gets what was freed last, if that is worth it.
void _mi_counted_swap(mi_theap_t* theap, size_t cls);

// Its parts: how many blocks there are for it, 0 if too few; and moving up to so many, without changing the bin's `slots`.
size_t _mi_counted_ready(const mi_theap_t* theap, size_t cls);
size_t _mi_counted_move(mi_theap_t* theap, size_t cls, size_t n_max);

// How many blocks there are in a bin that was just filled, by a swap or a refill, and of which one was taken.
size_t _mi_counted_left(mi_theap_t* theap, size_t cls);

// Leaves so many blocks in the bin, no more than it has, and all others to the return bin.
void _mi_counted_keep(mi_theap_t* theap, size_t cls, size_t n);
