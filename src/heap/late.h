// Allocation by threads past their exit.  Layer: heap.
//
// What libc and the program still allocate then comes from one theap per heap that those threads share under a lock, so that
// it is bounded by what is live.
#pragma once

#include "heap.h"

mi_block_t* _mi_late_malloc(mi_heap_t* heap, size_t cls, bool* is_zero);

// That lock.  It is held around a fork: late theaps are whole, and live on in the child.  And while a heap ends, which keeps
// forks away.
void _mi_late_lock(void);
void _mi_late_unlock(void);
