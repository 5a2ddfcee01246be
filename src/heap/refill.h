// Filling a bin that is empty: the slow path of malloc.  Layer: heap.
//
// Why there are both bins and page lists: with bins alone a structure that is built and torn down as a whole takes 30 % longer (each block
// goes through two lists); with page lists alone replacing blocks at random takes twice as long (each free touches a cold page).
// A bin with slots for a few blocks, whose overflow goes straight to the page, has the better of both.
#pragma once

#include "theap.h"

// A bin takes this many blocks of a page when it is filled for the first time, then twice as many each time, and soon all
// there are: the blocks in a bin have to be given back one by one when its thread ends, so a thread that uses few blocks
// should not get many.
#define MI_REFILL_FIRST 8

// A block of the class, whose bin is empty; the other blocks that were found go into the bin.  *is_zero, which is false before the call,
// becomes true if all of the block but its first word is zero; is_zero may be NULL.  The result is NULL when out of memory.  The caller
// notes the event (_mi_event_note) once it holds no lock.
mi_block_t* _mi_refill(mi_theap_t* theap, size_t cls, bool* is_zero);
