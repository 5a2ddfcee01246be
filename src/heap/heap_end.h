// The end of a heap.  Layer: heap.
//
// HE1  Ending a heap takes time proportional to the heap's theaps and pages, in portions: other threads get the registry lock in between.
// HE2  The late lock is held throughout, so that no fork comes in between: the child could not tell a heap that is half deleted from one
//      that is half destroyed.
#pragma once

#include "heap.h"

// Its blocks belong to the main heap from then on; not for main heaps.  Other threads may be allocating from the heap just
// then, where it is their default.
void _mi_heap_end_delete(mi_heap_t* heap);

// Its blocks are gone.  That nobody allocates from it just then is up to the program, as is that nobody uses its blocks: bins
// of other threads are emptied without asking them.
void _mi_heap_end_destroy(mi_heap_t* heap);
