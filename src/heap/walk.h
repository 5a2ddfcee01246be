// Walking over all pages, by address.  Layer: heap.
//
// W1  Nothing is allocated, and no pointer into a page is kept: even if somebody allocates or frees between two steps the
//     walk goes on.
#pragma once

#include "heap.h"

// Which pages, and where the walk goes on; zero is the start of a walk over all.
typedef struct mi_walk_s {
  const mi_heap_t*    heap;    // only of this heap
  const mi_subproc_t* subproc; // only of heaps of this subprocess
  size_t              region;
  size_t              slice;     // after the last region: the last descriptor of a mapped block
  bool                has_begun; // of views (view.h)
  uint64_t            waiting;   // the table of what waits (waiting.h)
} mi_walk_t;

static inline bool _mi_walk_wants(const mi_walk_t* walk, const mi_heap_t* heap) {
  return (walk->heap == NULL || walk->heap == heap) && (walk->subproc == NULL || walk->subproc == heap->subproc);
}

// The next page; caller holds the arena lock.  Only its atomic fields may be read, unless its heap is known to rest.
mi_page_t* _mi_walk_next(mi_walk_t* walk);

// The same, after at most *n_steps slices or free chunks, which are taken off: it ends with NULL and 0 when there may be more.
mi_page_t* _mi_walk_some(mi_walk_t* walk, size_t* n_steps);
