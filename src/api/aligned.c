// Aligned allocation.  Layer: api.
//
// Pages start at slice boundaries and have no header, so every block of a class whose size is a multiple of the alignment
// is aligned: up to 64 KiB an aligned block is an ordinary block, and is freed like one.  Only larger alignments, and
// those at an offset, take a page of their own.
#include "aligned.h"

#include "../heap/sampler.h"
#include "malloc.h"
#include "realloc.h"

static mi_noinline void* aligned_any(mi_heap_t* heap, size_t size, size_t align, size_t offset, bool zero) {
  if (mi_unlikely(!mi_is_pow2(align))) return _mi_alloc_failed_align(align);
  size_t plain = mi_load_relaxed(&_mi_sampler_plain_align);
  if (mi_likely(align <= plain && offset == 0 && (align <= 8 || size > 8))) return _mi_malloc_in(heap, size, zero);
  bool       has_class = ((offset & (align - 1)) == 0 && align <= MI_SLICE_SIZE);
  size_t     cls = (has_class ? _mi_size_class_aligned(_mi_life_need(size), align) : MI_CLASS_NONE);
  mi_alloc_t request = {heap, size, cls, align, offset, 0, zero};
  return _mi_alloc_request(&request);
}

static mi_always_inline void* aligned_malloc(mi_heap_t* heap, size_t size, size_t align, size_t offset, bool zero) {
  void* p = (heap == NULL && !zero && offset == 0 ? _mi_aligned_pop(size, align) : NULL);
  return mi_likely(p != NULL) ? p : aligned_any(heap, size, align, offset, zero);
}

// Do p, which an earlier offset may have put anywhere, and every block to come have the alignment?  What is up to a word and no power
// of two counts as none, unless there is an offset.
static bool aligned_is_plain(const void* p, size_t align, size_t offset) {
  if (align > mi_min(sizeof(void*), mi_load_relaxed(&_mi_sampler_plain_align))) return false;
  if (!mi_is_pow2(align)) return offset == 0;
  return ((offset | (uintptr_t)p) & (align - 1)) == 0;
}

static void* aligned_realloc(mi_heap_t* heap, void* p, size_t size, size_t align, size_t offset, bool zero) {
  if (aligned_is_plain(p, align, offset)) return _mi_realloc(heap, p, size, zero);
  if (p == NULL) return aligned_malloc(heap, size, align, offset, zero);
  if (mi_unlikely(!mi_is_pow2(align))) return _mi_alloc_failed_align(align);
  mi_page_t* page = _mi_life_find(p, "realloc");
  if (mi_unlikely(page == NULL)) return NULL;
  size_t old_size = _mi_life_size(page, p);
  bool   is_aligned = (((uintptr_t)p + offset) & (align - 1)) == 0;
  void*  q = (is_aligned ? _mi_realloc_stay(heap, page, p, old_size, size, zero) : NULL);
  // A large block stays, or moves by whole OS pages.
  bool   may_move = (q == NULL && is_aligned && align <= _mi_prim_os_page_size());
  if (may_move) q = _mi_realloc_large(heap, page, p, old_size, size, zero);
  if (q != NULL) return q;
  q = aligned_malloc(heap, size, align, offset, zero);
  return _mi_realloc_copy_to(q, p, old_size, size, false); // what is new is zero already, if asked for
}

// The alignment is asked first, as for one block: of a request with both faults it says what is wrong.
static void* aligned_array(mi_heap_t* heap, size_t count, size_t size, size_t align, size_t offset) {
  size_t total;
  if (mi_unlikely(!mi_is_pow2(align))) return _mi_alloc_failed_align(align);
  return _mi_alloc_count(count, size, &total) ? aligned_malloc(heap, total, align, offset, true) : NULL;
}

static void* aligned_rearray(mi_heap_t* heap, void* p, size_t count, size_t size, size_t align, size_t offset) {
  size_t total;
  if (mi_unlikely(!aligned_is_plain(p, align, offset) && !mi_is_pow2(align))) return _mi_alloc_failed_align(align);
  return _mi_alloc_count(count, size, &total) ? aligned_realloc(heap, p, total, align, offset, true) : NULL;
}

// ---- functions of the interface -------------------------------------------------------------------------------------

// mi_<name>_aligned and mi_heap_<name>_aligned, and both with _at; `call` is the result, of `heap` and `offset`.
#define ALIGNED(name, parameters, call) \
  MI_ALLOC_BOTH(void*, name##_aligned_at, MI_ALLOC_P(parameters, size_t align, size_t offset), , call) \
  MI_ALLOC_BOTH(void*, name##_aligned, MI_ALLOC_P(parameters, size_t align), size_t offset = 0;, call)

// clang-format off
ALIGNED(malloc,   MI_ALLOC_P(size_t size),                    aligned_malloc(heap, size, align, offset, false))
ALIGNED(zalloc,   MI_ALLOC_P(size_t size),                    aligned_malloc(heap, size, align, offset, true))
ALIGNED(calloc,   MI_ALLOC_P(size_t n, size_t size),          aligned_array(heap, n, size, align, offset))
ALIGNED(realloc,  MI_ALLOC_P(void* p, size_t size),           aligned_realloc(heap, p, size, align, offset, false))
ALIGNED(rezalloc, MI_ALLOC_P(void* p, size_t size),           aligned_realloc(heap, p, size, align, offset, true))
ALIGNED(recalloc, MI_ALLOC_P(void* p, size_t n, size_t size), aligned_rearray(heap, p, n, size, align, offset))
// clang-format on

void* mi_theap_malloc_aligned(mi_theap_t* theap, size_t size, size_t align) mi_attr_noexcept {
  return aligned_malloc(_mi_alloc_heap_of(theap), size, align, 0, false);
}
