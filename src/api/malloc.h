// Plain blocks of any heap.  Layer: api.
#pragma once

#include "alloc.h"

// A block of the heap, from a bin if that has one; NULL: of the default heap.
void* _mi_malloc_in(mi_heap_t* heap, size_t size, bool zero);
void* _mi_malloc_quietly(size_t size) mi_attr_noexcept; // as _mi_alloc_quietly (alloc.h)
