// Allocation by threads past their exit.  Layer: heap.
//
// Blocks that libc and the program still allocate then come from one theap for each heap, the late theap, which all such threads share
// under a lock.  So the memory for them is bounded by the blocks that are live.
#pragma once

#include "heap.h"

mi_block_t* _mi_late_malloc(mi_heap_t* heap, size_t cls, bool* is_zero);

// That lock.  It is held around a fork, so that late theaps are consistent in the child and live on there.  It is also held while a heap
// ends, so that no fork comes in between.
void _mi_late_lock(void);
void _mi_late_unlock(void);
