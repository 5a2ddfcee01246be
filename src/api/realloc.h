// Resizing.  Layer: api.
#pragma once

#include "alloc.h"

// The resize of mi_realloc, where new bytes of the result read as zero if `zero`.  What has to move goes to the heap (NULL:
// the default heap); what belongs to another heap has to, unless `heap` is NULL and the interface that of level 2.
void* _mi_realloc(mi_heap_t* heap, void* p, size_t new_size, bool zero);

// The block, with contents up to old_size, where it is, if it may stay in its heap, has room for new_size and at least half
// of it is used; NULL if it has to move.
void* _mi_realloc_stay(mi_heap_t* heap, mi_page_t* page, void* p, size_t old_size, size_t new_size, bool zero);

// A large block that can be made to fit without a change of the heap and without copying, at the same place in an OS page; NULL if not.
void* _mi_realloc_large(mi_heap_t* heap, mi_page_t* page, void* p, size_t old_size, size_t new_size, bool zero);

// q, if it is a block, gets the contents of p, which is freed; what is new is cleared if `zero`.  Returns q.
void* _mi_realloc_copy_to(void* q, void* p, size_t old_size, size_t new_size, bool zero);
