// Bins whose blocks a round takes from a thread that may be running.  Layer: heap.
//
// BN1  A thread does not mark that it changes a bin, and may have been stopped for any time in the middle of a change.  So rounds take
//      bins in two steps.  The first round closes the bin: `slots` becomes MI_BIN_NO_SLOTS and the list goes to `taken`, by two
//      exchanges.  From then on the thread finds an empty bin without slots, which sends it to its slow paths.  The next round gives the
//      blocks of the list back to their pages, under two conditions.  `slots` and the length of the list say that the thread was not in
//      the middle of a change when the bin was closed (theap.h, H7).  And the thread has not touched the bin since: before and after the
//      list is counted, `slots` is MI_BIN_NO_SLOTS and the bin is empty.
//
//      The thread was in the middle of a change if it had changed `slots` but not yet the list (H1): then total - slots is not the
//      length of the list.  If it goes on with a list that it has read before, each block that it takes changes `slots` for good, and
//      each block that it frees changes the list.
// BN2  A list that a round cannot take stays in `taken` until the thread comes by: only the thread knows what it did.
//
// test/model/bin_model.py goes through all interleavings of a thread and a round.
#pragma once

#include "theap.h"

// `slots` of a closed bin: so low that a malloc or two that do not notice leave it far below zero.
#define MI_BIN_NO_SLOTS (INT32_MIN / 2)

static inline bool _mi_bin_has_no_slots(int32_t slots) {
  return slots < MI_BIN_NO_SLOTS / 2;
}

// For a round that has taken the theap.
void        _mi_bin_close_all(mi_theap_t* theap);
// The list of a closed bin of the class, for the caller to give back; NULL if it is empty or cannot be taken (BN1).
mi_block_t* _mi_bin_take(mi_bin_t* bin, mi_bin_book_t* book, size_t cls);

static inline bool _mi_bin_are_closed(const mi_theap_t* theap) {
  return mi_load_relaxed(&((mi_theap_t*)theap)->is_closed);
}

// For the theap's thread, between enter and leave: opens its bins again (BN2).
mi_cold void _mi_bin_settle_all(mi_theap_t* theap);

// The following are for callers that look for all free blocks, while no round is at work.

// False: the bin was closed while its thread was in the middle of taking or freeing a block, and only that thread knows which blocks
// are free.
mi_may_race bool _mi_bin_can_tell(const mi_theap_t* theap, size_t cls);

// The blocks that were taken from a bin and not yet given back.  NULL also when nobody can tell.
mi_may_race const mi_block_t* _mi_bin_taken(const mi_theap_t* theap, const mi_bin_t* bin, const mi_bin_book_t* book);

// The page of which this can be a block of the class; NULL if there is none, since a list that a thread is changing may lead anywhere.
mi_may_race mi_page_t* _mi_bin_page_of(const mi_block_t* block, size_t cls);
