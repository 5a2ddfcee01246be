// Memory for the library's own tables and structures.  Layer: heap.
//
// ME1  The sizes of tables are powers of two.  Making and freeing a table takes a number of steps that depends on the sizes, not on the
//      number of tables.
// ME2  No memory goes back to the arena: of each size there is at most twice as much as was in use at one time.
//
// The caller holds the registry lock, or another that guards the slab.
#pragma once

#include <stddef.h>

#define MI_META_SHIFT_MIN 8
#define MI_META_SHIFT_MAX 40

// 2^shift bytes, all zero and aligned to their size, up to a slice; NULL: out of memory, or more than 2^MI_META_SHIFT_MAX.
void* _mi_meta_alloc(unsigned shift);
void  _mi_meta_free(void* p, unsigned shift);

// The rest of a slice from which structures of one kind are carved, one after the other; zero at first.
typedef struct mi_slab_s {
  char*  next;
  size_t left; // bytes
} mi_slab_t;

// `size` bytes that are zero and are never freed, NULL when out of memory.
void* _mi_meta_carve(mi_slab_t* slab, size_t size);
