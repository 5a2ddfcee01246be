// Every way to get and resize a block of a heap, as tables.  The flags are those of entries.h.
#pragma once

#include "entries.h"

// ---- getting --------------------------------------------------------------------------------------------------------

typedef struct heap_get_s {
  const char* name;
  void* (*call)(mi_heap_t* heap, size_t size, size_t alignment, size_t offset);
  unsigned flags;
} heap_get_t;

#define HEAP_GET(name, expression) \
  static inline void* heap_get_##name(mi_heap_t* heap, size_t size, size_t alignment, size_t offset) { \
    (void)alignment; \
    (void)offset; \
    return expression; \
  }

HEAP_GET(malloc, mi_heap_malloc(heap, size))
HEAP_GET(zalloc, mi_heap_zalloc(heap, size))
HEAP_GET(calloc, mi_heap_calloc(heap, size, 1))
HEAP_GET(calloc_2, mi_heap_calloc(heap, 1, size))
HEAP_GET(mallocn, mi_heap_mallocn(heap, 1, size))
HEAP_GET(malloc_small, mi_heap_malloc_small(heap, size))
HEAP_GET(zalloc_small, mi_heap_zalloc_small(heap, size))
HEAP_GET(realloc, mi_heap_realloc(heap, NULL, size))
HEAP_GET(reallocn, mi_heap_reallocn(heap, NULL, size, 1))
HEAP_GET(reallocf, mi_heap_reallocf(heap, NULL, size))
HEAP_GET(rezalloc, mi_heap_rezalloc(heap, NULL, size))
HEAP_GET(recalloc, mi_heap_recalloc(heap, NULL, 1, size))
HEAP_GET(malloc_aligned, mi_heap_malloc_aligned(heap, size, alignment))
HEAP_GET(malloc_aligned_at, mi_heap_malloc_aligned_at(heap, size, alignment, offset))
HEAP_GET(zalloc_aligned, mi_heap_zalloc_aligned(heap, size, alignment))
HEAP_GET(zalloc_aligned_at, mi_heap_zalloc_aligned_at(heap, size, alignment, offset))
HEAP_GET(calloc_aligned, mi_heap_calloc_aligned(heap, size, 1, alignment))
HEAP_GET(calloc_aligned_at, mi_heap_calloc_aligned_at(heap, 1, size, alignment, offset))
HEAP_GET(realloc_aligned, mi_heap_realloc_aligned(heap, NULL, size, alignment))
HEAP_GET(realloc_aligned_at, mi_heap_realloc_aligned_at(heap, NULL, size, alignment, offset))
HEAP_GET(rezalloc_aligned, mi_heap_rezalloc_aligned(heap, NULL, size, alignment))
HEAP_GET(rezalloc_aligned_at, mi_heap_rezalloc_aligned_at(heap, NULL, size, alignment, offset))
HEAP_GET(recalloc_aligned, mi_heap_recalloc_aligned(heap, NULL, size, 1, alignment))
HEAP_GET(recalloc_aligned_at, mi_heap_recalloc_aligned_at(heap, NULL, 1, size, alignment, offset))
HEAP_GET(alloc_new, mi_heap_alloc_new(heap, size))
HEAP_GET(alloc_new_n, mi_heap_alloc_new_n(heap, size, 1))
HEAP_GET(try_new, mi_heap_try_new(heap, size, false))
HEAP_GET(try_new_nothrow, mi_heap_try_new(heap, size, true))
HEAP_GET(theap_malloc, mi_theap_malloc(mi_heap_theap(heap), size))
HEAP_GET(theap_zalloc, mi_theap_zalloc(mi_heap_theap(heap), size))
HEAP_GET(theap_calloc, mi_theap_calloc(mi_heap_theap(heap), size, 1))
HEAP_GET(theap_malloc_small, mi_theap_malloc_small(mi_heap_theap(heap), size))
HEAP_GET(theap_zalloc_small, mi_theap_zalloc_small(mi_heap_theap(heap), size))
HEAP_GET(theap_malloc_aligned, mi_theap_malloc_aligned(mi_heap_theap(heap), size, alignment))
HEAP_GET(theap_realloc, mi_theap_realloc(mi_heap_theap(heap), NULL, size))

static const heap_get_t all_heap_gets[] = {
    {"malloc", heap_get_malloc, 0},
    {"zalloc", heap_get_zalloc, E_ZERO},
    {"calloc", heap_get_calloc, E_ZERO},
    {"calloc_2", heap_get_calloc_2, E_ZERO},
    {"mallocn", heap_get_mallocn, 0},
    {"malloc_small", heap_get_malloc_small, E_SMALL},
    {"zalloc_small", heap_get_zalloc_small, E_ZERO | E_SMALL},
    {"realloc", heap_get_realloc, 0},
    {"reallocn", heap_get_reallocn, 0},
    {"reallocf", heap_get_reallocf, 0},
    {"rezalloc", heap_get_rezalloc, E_ZERO},
    {"recalloc", heap_get_recalloc, E_ZERO},
    {"malloc_aligned", heap_get_malloc_aligned, E_ALIGN},
    {"malloc_aligned_at", heap_get_malloc_aligned_at, E_ALIGN | E_OFFSET},
    {"zalloc_aligned", heap_get_zalloc_aligned, E_ZERO | E_ALIGN},
    {"zalloc_aligned_at", heap_get_zalloc_aligned_at, E_ZERO | E_ALIGN | E_OFFSET},
    {"calloc_aligned", heap_get_calloc_aligned, E_ZERO | E_ALIGN},
    {"calloc_aligned_at", heap_get_calloc_aligned_at, E_ZERO | E_ALIGN | E_OFFSET},
    {"realloc_aligned", heap_get_realloc_aligned, E_ALIGN | E_RESIZE},
    {"realloc_aligned_at", heap_get_realloc_aligned_at, E_ALIGN | E_OFFSET | E_RESIZE},
    {"rezalloc_aligned", heap_get_rezalloc_aligned, E_ZERO | E_ALIGN | E_RESIZE},
    {"rezalloc_aligned_at", heap_get_rezalloc_aligned_at, E_ZERO | E_ALIGN | E_OFFSET | E_RESIZE},
    {"recalloc_aligned", heap_get_recalloc_aligned, E_ZERO | E_ALIGN | E_RESIZE},
    {"recalloc_aligned_at", heap_get_recalloc_aligned_at, E_ZERO | E_ALIGN | E_OFFSET | E_RESIZE},
    {"alloc_new", heap_get_alloc_new, E_NEW},
    {"alloc_new_n", heap_get_alloc_new_n, E_NEW},
    {"try_new", heap_get_try_new, E_NEW},
    {"try_new_nothrow", heap_get_try_new_nothrow, 0},
    {"theap_malloc", heap_get_theap_malloc, 0},
    {"theap_zalloc", heap_get_theap_zalloc, E_ZERO},
    {"theap_calloc", heap_get_theap_calloc, E_ZERO},
    {"theap_malloc_small", heap_get_theap_malloc_small, E_SMALL},
    {"theap_zalloc_small", heap_get_theap_zalloc_small, E_ZERO | E_SMALL},
    {"theap_malloc_aligned", heap_get_theap_malloc_aligned, E_ALIGN},
    {"theap_realloc", heap_get_theap_realloc, 0},
};

// May `g` be asked for this?
static inline bool heap_get_allows(const heap_get_t* g, size_t size, size_t alignment, size_t offset) {
  const get_t as_get = {g->name, NULL, g->flags};
  return get_allows(&as_get, size, alignment, offset);
}

// ---- resizing -------------------------------------------------------------------------------------------------------
// reallocf is not among them: it does not leave a block alone.

typedef struct heap_resize_s {
  const char* name;
  void* (*call)(mi_heap_t* heap, void* p, size_t size, size_t alignment, size_t offset);
  unsigned flags;
} heap_resize_t;

#define HEAP_RESIZE(name, expression) \
  static inline void* heap_resize_##name(mi_heap_t* heap, void* p, size_t size, size_t alignment, size_t offset) { \
    (void)alignment; \
    (void)offset; \
    return expression; \
  }

HEAP_RESIZE(realloc, mi_heap_realloc(heap, p, size))
HEAP_RESIZE(reallocn, mi_heap_reallocn(heap, p, 1, size))
HEAP_RESIZE(rezalloc, mi_heap_rezalloc(heap, p, size))
HEAP_RESIZE(recalloc, mi_heap_recalloc(heap, p, size, 1))
HEAP_RESIZE(realloc_aligned, mi_heap_realloc_aligned(heap, p, size, alignment))
HEAP_RESIZE(realloc_aligned_at, mi_heap_realloc_aligned_at(heap, p, size, alignment, offset))
HEAP_RESIZE(rezalloc_aligned, mi_heap_rezalloc_aligned(heap, p, size, alignment))
HEAP_RESIZE(rezalloc_aligned_at, mi_heap_rezalloc_aligned_at(heap, p, size, alignment, offset))
HEAP_RESIZE(recalloc_aligned, mi_heap_recalloc_aligned(heap, p, 1, size, alignment))
HEAP_RESIZE(recalloc_aligned_at, mi_heap_recalloc_aligned_at(heap, p, size, 1, alignment, offset))
HEAP_RESIZE(theap_realloc, mi_theap_realloc(mi_heap_theap(heap), p, size))

static const heap_resize_t all_heap_resizes[] = {
    {"realloc", heap_resize_realloc, 0},
    {"reallocn", heap_resize_reallocn, 0},
    {"rezalloc", heap_resize_rezalloc, E_ZERO},
    {"recalloc", heap_resize_recalloc, E_ZERO},
    {"realloc_aligned", heap_resize_realloc_aligned, E_ALIGN},
    {"realloc_aligned_at", heap_resize_realloc_aligned_at, E_ALIGN | E_OFFSET},
    {"rezalloc_aligned", heap_resize_rezalloc_aligned, E_ZERO | E_ALIGN},
    {"rezalloc_aligned_at", heap_resize_rezalloc_aligned_at, E_ZERO | E_ALIGN | E_OFFSET},
    {"recalloc_aligned", heap_resize_recalloc_aligned, E_ZERO | E_ALIGN},
    {"recalloc_aligned_at", heap_resize_recalloc_aligned_at, E_ZERO | E_ALIGN | E_OFFSET},
    {"theap_realloc", heap_resize_theap_realloc, 0},
};
