// Resizing a block that has a page of its own without copying it.  Layer: heap.
#pragma once

#include "large.h"

// The block resized: in place, or its memory moved by the system.  NULL when it must be copied.  `zero`: what is new reads as
// zero.
void* _mi_large_resize(mi_page_t* page, size_t new_size, bool zero);
