// Heap consistency check.  Layer: heap.
//
// CH1  All locks are held meanwhile, so that nothing moves; what is found is kept and reported when they are released again.
// CH2  A pointer is followed only after it was seen to be one of those that can be there: a check survives what it finds.
//      The lists of theaps and of heaps as such are trusted: they lie where no block does.
// CH3  A page that says it is in a list (of its owner, of a pool, of its heap) is not looked for there.  Each page of a list says
//      so too, and is in no other; so it is enough that there are as many of both.
#pragma once

#include "heap.h"

// Holds everything about a heap (NULL: about all) against the invariants, and reports what is wrong: EFAULT, each fault.
// True if nothing is.  No other thread may use the heap meanwhile.
bool _mi_check(mi_heap_t* heap);
