// Regions outside of the span: what describes them, and the address space that is reserved for them.  Layer: arena.
#pragma once

#include "region.h"

// Offsets of what describes a region, from its table on, in whole OS pages.
typedef struct mi_reserve_layout_s {
  size_t chunks, bits, uncommitted, heap_links, end;
} mi_reserve_layout_t;

mi_reserve_layout_t _mi_reserve_layout(size_t n_chunks, bool has_commit);

// Fills in a region in which nothing is open yet, and makes of its reserved metadata usable what must be at once.
bool _mi_reserve_describe(mi_region_t* region, void* base, size_t n_chunks, char* table, const mi_reserve_layout_t* at);

// A region of memory that we reserve, with its metadata behind it.
bool _mi_reserve(mi_region_t* region, size_t size, size_t align);

// The same of so much, or of as much as there is, but not less than `least`.
bool _mi_reserve_most(mi_region_t* region, size_t size, size_t least);

// How large such a region should be: the first, where there is no span, and others.  With pointers of 32 bits they do not grow.
size_t _mi_reserve_first_size(void);
size_t _mi_reserve_size(void);
