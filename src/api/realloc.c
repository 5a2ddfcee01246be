// realloc and its relatives.  Layer: api.
//
// A block stays where it is while at least half of it is used; a large one also grows into free memory behind it, and is
// moved by the system's page tables before it is copied (heap/large.c).
#include <errno.h>
#include <string.h>

#include "../heap/large.h"
#include "../support/message.h"
#include "api.h"

// A new block with the contents of the old one; what is new is zero if asked for.
static mi_noinline void* realloc_copy(mi_heap_t* heap, void* p, size_t old_size, size_t new_size, bool zero) {
  void* q = _mi_malloc_in(heap, new_size, false);
  if (mi_unlikely(q == NULL)) return NULL;
  size_t n = mi_min(old_size, new_size);
  // To the end of the block, for when it grows in place.
  if (zero) memset((char*)q + n, 0, mi_usable_size(q) - n);
  if (new_size == 0) *(char*)q = 0;
  memcpy(q, p, n);
  mi_free(p);
  return q;
}

static mi_noinline void* realloc_large(mi_heap_t* heap, mi_page_t* page, void* p, size_t new_size, bool zero) {
  size_t old_size = _mi_page_large_size(page);
  if (p != _mi_page_large_block(page)) {
    _mi_error_report(EINVAL, "realloc of an invalid pointer: %p lies within the block %p of %zu bytes\n", p,
                     (void*)_mi_page_large_block(page), old_size);
    return NULL;
  }
  if ((heap == NULL || _mi_page_heap(page) == heap) && !_mi_page_has(page, MI_PAGE_GUARDED)) {
    if (new_size <= old_size && new_size >= old_size / 2) return p;
    if (new_size > MI_CLASS_SIZE_MAX) {
      void* q = _mi_large_realloc(page, new_size, zero);
      if (q != NULL) return q;
    }
  }
  return realloc_copy(heap, p, old_size, new_size, zero);
}

static mi_noinline void* realloc_slow(void* p, size_t new_size, bool zero, mi_heap_t* heap) {
  mi_page_t* page = _mi_page_of(p);
  if (p == NULL) return _mi_malloc_in(heap, new_size, zero);
  if (mi_unlikely(page == NULL)) {
    _mi_error_report(EINVAL, "realloc of an invalid pointer: %p is no block of this allocator\n", p);
    return NULL;
  }
  if (mi_unlikely(page->cls == MI_CLASS_NONE)) return realloc_large(heap, page, p, new_size, zero);
  return realloc_copy(heap, p, _mi_page_block_size(page), new_size, zero);
}

static mi_always_inline void* realloc_any(void* p, size_t new_size, bool zero) {
  const mi_page_t* page = _mi_page_at(p);
  if (mi_likely(page != NULL)) {
    size_t size = _mi_page_block_size(page);
    if (mi_likely(new_size <= size && new_size >= size / 2 && new_size > 0)) return p;
  }
  return realloc_slow(p, new_size, zero, NULL);
}

void* _mi_realloc(mi_heap_t* heap, void* p, size_t new_size, bool zero) {
  if (heap == NULL) return realloc_any(p, new_size, zero);
  const mi_page_t* page = _mi_page_of(p);
  if (page != NULL && _mi_page_heap(page) == heap) {
    size_t size = _mi_page_block_size(page);
    if (new_size <= size && new_size >= size / 2 && new_size > 0) return p;
  }
  return realloc_slow(p, new_size, zero, heap);
}

void* mi_realloc(void* p, size_t newsize) mi_attr_noexcept {
  return realloc_any(p, newsize, false);
}

void* mi_rezalloc(void* p, size_t newsize) mi_attr_noexcept {
  return realloc_any(p, newsize, true);
}

void* mi_recalloc(void* p, size_t newcount, size_t size) mi_attr_noexcept {
  size_t total;
  return _mi_count_size(newcount, size, &total) ? mi_rezalloc(p, total) : NULL;
}

void* mi_reallocn(void* p, size_t count, size_t size) mi_attr_noexcept {
  size_t total;
  return _mi_count_size(count, size, &total) ? mi_realloc(p, total) : NULL;
}

void* mi_reallocf(void* p, size_t newsize) mi_attr_noexcept {
  void* q = mi_realloc(p, newsize);
  if (q == NULL && p != NULL) mi_free(p);
  return q;
}

void* mi_expand(void* p, size_t newsize) mi_attr_noexcept {
  return (p != NULL && newsize <= mi_usable_size(p)) ? p : NULL;
}
