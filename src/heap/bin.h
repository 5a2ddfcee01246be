// Bins that are taken away from a running thread.  Layer: heap.
//
// BN1  Bins have no mark, and a thread may have been stopped in the middle of taking a block from one, for any time.  So a
//      round takes them in two steps.  Closing: `slots` becomes MI_BIN_NO_SLOTS and the list goes to `taken`, by two exchanges;
//      what the thread finds from then on is an empty bin without slots, and that sends it to its slow paths.  A round later
//      the list is given back if `slots` and the length of the list say that the thread was not in the middle of anything
//      then (theap.h, H7), and if it has not touched the bin since: `slots` is still MI_BIN_NO_SLOTS and the bin is empty,
//      before and after the list was counted.
//
//      The thread was in the middle if it had changed `slots` but not yet the list (H1): then total - slots is not the
//      length.  If it goes on, with a list that it has read before, each block that it takes changes `slots` for good, and
//      each that it frees the list.
// BN2  What a round cannot take stays in `taken` until the thread comes by, which knows what it did.
//
// test/model/bin_model.py goes through all interleavings of a thread and a round.
#pragma once

#include "theap.h"

// `slots` of a closed bin.  A malloc or two do not make up for it.
#define MI_BIN_NO_SLOTS (INT32_MIN / 2)

static inline bool _mi_bin_has_no_slots(int32_t slots) {
  return slots < MI_BIN_NO_SLOTS / 2;
}

// For a round that holds the theap.
void        _mi_bin_close_all(mi_theap_t* theap);
// The list that was in a bin of the class, to be given back; NULL if it is empty or cannot be taken (yet).
mi_block_t* _mi_bin_take(mi_bin_t* bin, mi_bin_book_t* book, size_t cls);

static inline bool _mi_bin_are_closed(const mi_theap_t* theap) {
  return mi_load_relaxed(&((mi_theap_t*)theap)->is_closed);
}

// For the theap's thread, between enter and leave: opens its bins again (BN2).
mi_cold void _mi_bin_settle_all(mi_theap_t* theap);

// For others that look for all free blocks, while no round is at work.

// False: the bin was closed while its thread was in the middle of taking or freeing a block, and only that thread knows what
// it did.
mi_may_race bool _mi_bin_can_tell(const mi_theap_t* theap, size_t cls);

// The blocks that were taken from a bin and not yet given back.  NULL also when nobody can tell.
mi_may_race const mi_block_t* _mi_bin_taken(const mi_theap_t* theap, const mi_bin_t* bin, const mi_bin_book_t* book);

// The page of which this can be a block of the class, or NULL.  The list of a thread that is at work may lead anywhere.
mi_may_race mi_page_t* _mi_bin_page_of(const mi_block_t* block, size_t cls);
