// Blocks that have a page of their own: larger than 512 KiB, or aligned in a way that no class is.  Layer: heap.
//
// L1  Any thread may free one: it goes straight back to the arena, where it stays backed for a while (arena/purge.h).
// L2  A block may start at an offset within its page (aligned-at allocation).
#pragma once

#include "../page/page.h"

// NULL when out of memory.  (p + offset) is a multiple of `align`, a power of two.
void* _mi_large_malloc(size_t size, size_t align, size_t offset, bool zero);

// False when the block is not in use (any more): then nothing happened.
bool _mi_large_free(mi_page_t* page);

// The block resized without copying: in place, or its memory moved by the system.  NULL when it must be copied.
// `zero`: what is new reads as zero.
void* _mi_large_realloc(mi_page_t* page, size_t new_size, bool zero);
