// Aligned allocation.  Layer: api.
//
// Pages start at slice boundaries and have no header, so every block of a class whose size is a multiple of the alignment
// is aligned: up to 64 KiB an aligned block is an ordinary block, and is freed like one.  Only larger alignments, and
// those at an offset, take a page of their own.
#include <errno.h>
#include <string.h>

#include "../heap/sampler.h"
#include "../support/message.h"
#include "api.h"

static mi_cold void* aligned_bad(size_t alignment) {
  if (MI_DEBUG > 0) _mi_message_error(EOVERFLOW, "alignment is not a power of two (%zu)\n", alignment);
  errno = EINVAL;
  return NULL;
}

static void* aligned_try(mi_heap_t* heap, size_t size, size_t alignment, size_t offset, bool zero) {
  if ((offset & (alignment - 1)) == 0 && alignment <= MI_SLICE_SIZE) {
    size_t cls = _mi_size_class_aligned(size + MI_PADDING_SIZE, alignment);
    if (cls != MI_CLASS_NONE) return _mi_malloc_class(heap, cls, size, alignment, zero);
  }
  return _mi_malloc_large(heap, size, alignment, offset, zero);
}

void* _mi_malloc_aligned_at(mi_heap_t* heap, size_t size, size_t alignment, size_t offset, bool zero) {
  if (mi_unlikely(!mi_is_pow2(alignment))) return aligned_bad(alignment);
  size_t plain = mi_load_relaxed(&_mi_sampler_plain_align);
  if (mi_likely(alignment <= plain && offset == 0 && (alignment <= 8 || size > 8))) {
    return _mi_malloc_in(heap, size, zero);
  }
  if (mi_unlikely(size > PTRDIFF_MAX)) return _mi_malloc_failed(size);
  void* p = aligned_try(heap, size, alignment, offset, zero);
  if (mi_likely(p != NULL)) return p;
  mi_collect(true);
  p = aligned_try(heap, size, alignment, offset, zero);
  return p != NULL ? p : _mi_malloc_failed(size);
}

void* mi_malloc_aligned(size_t size, size_t alignment) mi_attr_noexcept {
  return _mi_malloc_aligned_at(NULL, size, alignment, 0, false);
}

void* mi_malloc_aligned_at(size_t size, size_t alignment, size_t offset) mi_attr_noexcept {
  return _mi_malloc_aligned_at(NULL, size, alignment, offset, false);
}

void* mi_zalloc_aligned(size_t size, size_t alignment) mi_attr_noexcept {
  return _mi_malloc_aligned_at(NULL, size, alignment, 0, true);
}

void* mi_zalloc_aligned_at(size_t size, size_t alignment, size_t offset) mi_attr_noexcept {
  return _mi_malloc_aligned_at(NULL, size, alignment, offset, true);
}

void* mi_calloc_aligned_at(size_t count, size_t size, size_t alignment, size_t offset) mi_attr_noexcept {
  size_t total;
  return _mi_count_size(count, size, &total) ? _mi_malloc_aligned_at(NULL, total, alignment, offset, true) : NULL;
}

void* mi_calloc_aligned(size_t count, size_t size, size_t alignment) mi_attr_noexcept {
  return mi_calloc_aligned_at(count, size, alignment, 0);
}

// ---- reallocation ---------------------------------------------------------------------------------------------------

// Does every block have it?  An alignment of up to a word is not even looked at, unless there is an offset.
static bool aligned_is_plain(size_t alignment, size_t offset) {
  if (alignment > mi_min(sizeof(void*), mi_load_relaxed(&_mi_sampler_plain_align))) return false;
  return offset == 0 || (mi_is_pow2(alignment) && (offset & (alignment - 1)) == 0);
}

void* _mi_realloc_aligned_at(mi_heap_t* heap, void* p, size_t newsize, size_t alignment, size_t offset, bool zero) {
  if (aligned_is_plain(alignment, offset)) return _mi_realloc(heap, p, newsize, zero);
  if (p == NULL) return _mi_malloc_aligned_at(heap, newsize, alignment, offset, zero);
  if (mi_unlikely(!mi_is_pow2(alignment))) return aligned_bad(alignment);
  size_t     old_size;
  mi_page_t* page = _mi_realloc_page(p, &old_size);
  if (mi_unlikely(page == NULL)) return NULL;
  bool  is_aligned = (((uintptr_t)p + offset) & (alignment - 1)) == 0;
  void* q = (is_aligned && _mi_realloc_is_in(heap, page)) ? _mi_realloc_stay(page, p, old_size, newsize, zero) : NULL;
  if (q != NULL) return q;
  q = _mi_malloc_aligned_at(heap, newsize, alignment, offset, zero);
  if (q == NULL) return NULL;
  memcpy(q, p, mi_min(old_size, newsize));
  mi_free(p);
  return q;
}

void* mi_realloc_aligned(void* p, size_t newsize, size_t alignment) mi_attr_noexcept {
  return _mi_realloc_aligned_at(NULL, p, newsize, alignment, 0, false);
}

void* mi_realloc_aligned_at(void* p, size_t newsize, size_t alignment, size_t offset) mi_attr_noexcept {
  return _mi_realloc_aligned_at(NULL, p, newsize, alignment, offset, false);
}

void* mi_rezalloc_aligned(void* p, size_t newsize, size_t alignment) mi_attr_noexcept {
  return _mi_realloc_aligned_at(NULL, p, newsize, alignment, 0, true);
}

void* mi_rezalloc_aligned_at(void* p, size_t newsize, size_t alignment, size_t offset) mi_attr_noexcept {
  return _mi_realloc_aligned_at(NULL, p, newsize, alignment, offset, true);
}

void* mi_recalloc_aligned_at(void* p, size_t newcount, size_t size, size_t alignment, size_t offset) mi_attr_noexcept {
  size_t total;
  return _mi_count_size(newcount, size, &total) ? _mi_realloc_aligned_at(NULL, p, total, alignment, offset, true)
                                                : NULL;
}

void* mi_recalloc_aligned(void* p, size_t newcount, size_t size, size_t alignment) mi_attr_noexcept {
  return mi_recalloc_aligned_at(p, newcount, size, alignment, 0);
}
