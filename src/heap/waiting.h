// The free blocks that wait in bins, outboxes and quarantines, by address.  Layer: heap.
//
// A block of a page may wait in any theap of its heap.  Who looks at one page looks through all of them; who looks at all pages sorts
// what waits there once, if there are many theaps.
//
// WB1  There is one table, which comes from the system and goes back to it.  A table that is made takes the place of the one before:
//      whoever had that may be gone without notice, by longjmp, and otherwise does without.
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
