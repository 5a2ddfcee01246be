// Filling a bin that is empty: the slow path of malloc.  Layer: heap.
//
// Why there are both bins and page lists: bins alone lose 30 % when a structure is built and torn down as a whole (each block
// goes through two lists), page lists alone lose 2x when blocks are replaced at random (each free touches a cold page).
// A bin with slots for a few blocks, whose overflow goes straight to the page, takes the better of both.
#pragma once

#include "theap.h"

// A bin takes so many blocks of a page when it is filled for the first time, then twice as many each time, and soon all
// there are: what a bin holds when its thread ends has to be given back block by block, so a thread that uses few blocks
// should not get many.
#define MI_REFILL_FIRST 8

// A block of the class, when its bin is empty; the rest of what was found goes into the bin.  *is_zero, which is false
// before, becomes true if all of the block but its first word is zero; is_zero is NULL if nobody wants to know.  NULL: out of
// memory.  The caller notes the event (_mi_event_note) once it holds no lock.
mi_block_t* _mi_refill(mi_theap_t* theap, size_t cls, bool* is_zero);
