// The free blocks that wait in bins, outboxes and quarantines, by address.  Layer: heap.
//
// A free block of a page may wait in any theap of its heap.  For one page, all of the heap's theaps are looked through.  For a walk over
// all pages, the blocks that wait are sorted once, if there are many theaps.
//
// WB1  There is one table, which comes from the system and goes back to it.  A new table replaces the one before: whoever made that may
//      have left without notice, by longjmp, or else goes on without a table.
// WB2  It is made, read and given back under the registry lock.
#pragma once

#include "heap.h"

#define MI_WAITING_LISTS 6

// The first blocks of the lists of a class in which free blocks wait in a theap; NULL: a list is empty, or there is none.
mi_may_race void _mi_waiting_lists(const mi_theap_t* theap, size_t cls, const mi_block_t* lists[MI_WAITING_LISTS]);

// A table of what waits in the theaps of a heap (NULL: of all); its number, or 0: few theaps, or out of memory.
uint64_t _mi_waiting_begin(const mi_heap_t* heap);

// The blocks of the table that lie in [start, end); NULL: there is no such table (any more).
const uintptr_t* _mi_waiting_find(uint64_t number, const char* start, const char* end, size_t* n);

void _mi_waiting_end(uint64_t number);
