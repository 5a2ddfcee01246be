// Memory for tables of our own, in powers of two.  Layer: heap.
//
// M1  Allocation and freeing take a number of steps that the sizes bound, not the number of blocks.
// M2  Nothing goes back to the arena: there is at most twice as much as was in use of each size at a time.
//
// The caller holds the registry lock.
#pragma once

#include "heap.h"

#define MI_META_SHIFT_MIN 8
#define MI_META_SHIFT_MAX 40

// 2^shift bytes, all zero and aligned to their size, up to a slice; NULL: out of memory, or more than 2^MI_META_SHIFT_MAX.
void* _mi_meta_alloc(unsigned shift);

void _mi_meta_free(void* p, unsigned shift);
