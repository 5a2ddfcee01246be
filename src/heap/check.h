// Looking for what cannot be.  Layer: heap.
#pragma once

#include "heap.h"

// Holds everything about a heap (NULL: about all) against the invariants, and reports what is wrong: EFAULT, each fault.
// True if nothing is.  No other thread may use the heap meanwhile.
bool _mi_check(mi_heap_t* heap);
