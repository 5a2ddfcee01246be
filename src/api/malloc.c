// malloc, calloc, free: the fast paths.  Layer: api.
//
//   mi_malloc(n)              class of n -> bin of the class -> its first block                            | _mi_alloc
//   mi_heap_malloc(heap, n)   heap's id -> the thread's theap of it, from a small cache -> as malloc        | _mi_alloc_in
//   mi_free(p)                slice of p -> descriptor -> home is my theap? -> bin of its class has room?   | free_other
//
// There is no test whether the thread, or the process, was initialised: before that all bins are empty and no page has
// the thread's theap as its home.  test/golden holds the number of instructions of each.
#include "malloc.h"

#include <errno.h>

#include "../heap/attach.h"
#include "../heap/event.h"
#include "../heap/thread.h"
#include "../support/options.h"
#include "life.h"

// ---- malloc ---------------------------------------------------------------------------------------------------------

// A block of a theap's bin; NULL if there is none.
static mi_always_inline void* malloc_pop(mi_theap_t* theap, size_t offset, size_t size) {
  void* p = _mi_theap_pop_fast(theap, offset);
  if (mi_unlikely(p == NULL)) return NULL;
  return _mi_life_issue(p, size, offset >> MI_BIN_SHIFT, _mi_life_is_marked(_mi_life_need(size)));
}

static mi_always_inline void* malloc_default(size_t offset, size_t size) {
  void* p = malloc_pop(_mi_theap_default, offset, size);
  return mi_likely(p != NULL) ? p : _mi_alloc(size, false);
}

static mi_noinline void* malloc_big(size_t size) mi_attr_noexcept {
  if (mi_unlikely(size > MI_CLASS_ASKED_MAX)) return _mi_alloc(size, false);
  return malloc_default(_mi_size_class_of_big(_mi_life_need(size)) << MI_BIN_SHIFT, size);
}

void* mi_malloc(size_t size) mi_attr_noexcept {
  if (mi_unlikely(_mi_life_is_guarded(size))) return _mi_alloc(size, false);
  if (mi_likely(size <= MI_LIFE_SMALL_MAX)) return malloc_default(_mi_size_class_small[_mi_life_need(size)], size);
  if (mi_likely(size <= MI_LIFE_MEDIUM_MAX))
    return malloc_default(_mi_size_class_medium[(_mi_life_need(size) - 1) / 128], size);
  return malloc_big(size);
}

void* _mi_malloc_quietly(size_t size) mi_attr_noexcept {
  void* p = NULL;
  if (mi_likely(size <= MI_CLASS_ASKED_MAX && !_mi_life_is_guarded(size)))
    p = malloc_pop(_mi_theap_default, _mi_size_class_of(_mi_life_need(size)) << MI_BIN_SHIFT, size);
  if (mi_likely(p != NULL)) return p;
  // A sampled block has the size that the program asked for.
  return _mi_event_is_sampling() ? NULL : _mi_alloc_quietly(NULL, size, 0);
}

static mi_always_inline void* zalloc_default(size_t offset, size_t size) {
  void* p = _mi_theap_pop_fast(_mi_theap_default, offset);
  return mi_likely(p != NULL) ? _mi_life_issue_zero(p, size, offset >> MI_BIN_SHIFT) : _mi_alloc(size, true);
}

static mi_noinline void* zalloc_big(size_t size) mi_attr_noexcept {
  if (mi_unlikely(size > MI_CLASS_ASKED_MAX || _mi_life_is_guarded(size))) return _mi_alloc(size, true);
  return zalloc_default(_mi_size_class_of(_mi_life_need(size)) << MI_BIN_SHIFT, size);
}

void* mi_zalloc(size_t size) mi_attr_noexcept {
  bool is_small = (size <= MI_LIFE_SMALL_MAX && !_mi_life_is_guarded(size));
  return mi_likely(is_small) ? zalloc_default(_mi_size_class_small[_mi_life_need(size)], size) : zalloc_big(size);
}

static mi_cold void* malloc_overflow(size_t count, size_t size) {
  _mi_alloc_report_count(count, size);
  errno = ENOMEM;
  return NULL;
}

void* mi_calloc(size_t count, size_t size) mi_attr_noexcept {
  size_t total;
  return mi_likely(!mi_mul_overflows(count, size, &total)) ? mi_zalloc(total) : malloc_overflow(count, size);
}

// ---- free -----------------------------------------------------------------------------------------------------------

// Frees any block, by the descriptor of its slice.  The kind is read once: if another thread frees the same block (a double free), it may
// give the page back at any time, and the block must not be taken for one of a class then.
static mi_always_inline void free_any(mi_page_t* page, void* p) {
  mi_page_kind_t kind = _mi_page_kind(page);
  if (mi_unlikely(kind == MI_PAGE_INTERIOR)) {
    page -= page->to_first;
    kind = _mi_page_kind(page);
  }
  if (mi_likely(kind == MI_PAGE_LARGE)) {
    if (_mi_life_take_back_large(page, p)) _mi_life_release_large(page, p);
  }
  else if (mi_unlikely(kind == MI_PAGE_NONE)) {
    _mi_life_free_failed(NULL, p);
  }
  else if (_mi_life_take_back(page, p)) {
    _mi_life_release_any(page, p);
  }
}

// p is not in region 0.
static mi_noinline void free_slow(void* p) mi_attr_noexcept {
  if (p == NULL) return;
  mi_page_t* page = _mi_page_at(p);
  if (mi_unlikely(page == NULL)) _mi_life_free_failed(NULL, p);
  else free_any(page, p);
}

// p is in region 0, but block_size is 0: a large block, a block of a gap page, or none.  Not inlined, so that free_other stays short.
static mi_noinline void free_not_plain(mi_page_t* page, void* p) mi_attr_noexcept {
  free_any(page, p);
}

// p is in region 0, but its page's home is not the default theap, or the fast check of the block has failed.
static mi_noinline void free_other(mi_page_t* page, void* p) mi_attr_noexcept {
  if (mi_unlikely(_mi_page_block_size(page) == 0)) {
    free_not_plain(page, p);
    return;
  }
  if (mi_unlikely(page->to_first != 0)) page -= page->to_first;
  if (_mi_life_take_back(page, p)) _mi_life_release_any(page, p);
}

void mi_free(void* p) mi_attr_noexcept {
  _mi_life_give_up(p);
  if (MI_TAGS && mi_unlikely(!_mi_life_untag(&p))) return;
  const mi_region_t* region = &_mi_region_all[0];
  size_t             slice = ((uintptr_t)p - mi_load_growing_relaxed(&region->base)) >> MI_SLICE_SHIFT;
  if (mi_likely(slice < mi_load_growing(&region->n_slices))) {
    mi_page_t*  page = (mi_page_t*)_mi_region_descriptor(region, slice);
    size_t      bin_offset = _mi_life_bin_offset(page);
    mi_theap_t* theap = mi_load_relaxed(&page->home);
    if (mi_likely(theap == _mi_theap_default) && mi_likely(_mi_life_take_back_fast(page, p))) {
      _mi_life_release(theap, bin_offset, page, p);
    }
    else {
      free_other(page, p);
    }
    return;
  }
  free_slow(p);
}

// ---- of a heap ------------------------------------------------------------------------------------------------------

// The calling thread's theap of a heap, NULL if it is not in the cache.
static mi_always_inline mi_theap_t* malloc_find_theap(mi_heap_t* heap) {
  mi_theap_t* backing = _mi_theap_backing();
  if (mi_unlikely(heap == NULL || backing == NULL)) return NULL;
  const mi_theap_cached_t* cached = _mi_heap_cached(backing, heap);
  return mi_likely(cached->id == mi_load_relaxed(&heap->id)) ? cached->theap : NULL;
}

// A block of a theap's bin; NULL if there is none, and for sizes above MI_LIFE_MEDIUM_MAX.
static mi_always_inline void* malloc_of(mi_theap_t* theap, size_t size) {
  if (mi_likely(size <= MI_LIFE_SMALL_MAX)) return malloc_pop(theap, _mi_size_class_small[_mi_life_need(size)], size);
  if (size > MI_LIFE_MEDIUM_MAX) return NULL;
  return malloc_pop(theap, _mi_size_class_medium[(_mi_life_need(size) - 1) / 128], size);
}

// For a thread that uses more heaps than its cache has places.
static mi_noinline void* malloc_uncached(mi_heap_t* heap, size_t size) mi_attr_noexcept {
  mi_theap_t* backing = _mi_theap_backing();
  mi_theap_t* theap = (heap == NULL || backing == NULL ? NULL : _mi_attach_find(backing, heap));
  void*       p = (theap == NULL ? NULL : malloc_of(theap, size));
  return mi_likely(p != NULL) ? p : _mi_alloc_in(_mi_alloc_heap(heap), size, false);
}

void* mi_heap_malloc(mi_heap_t* heap, size_t size) mi_attr_noexcept {
  mi_theap_t* theap = malloc_find_theap(heap);
  if (mi_unlikely(theap == NULL)) return malloc_uncached(heap, size);
  void* p = malloc_of(theap, size);
  return mi_likely(p != NULL) ? p : _mi_alloc_in(heap, size, false);
}

void* mi_theap_malloc(mi_theap_t* theap, size_t size) mi_attr_noexcept {
  void* p = (mi_unlikely(theap == NULL) ? NULL : malloc_of(theap, size));
  return mi_likely(p != NULL) ? p : _mi_alloc_in(_mi_alloc_heap_of(theap), size, false);
}

void* _mi_malloc_in(mi_heap_t* heap, size_t size, bool zero) {
  if (heap == NULL) return zero ? mi_zalloc(size) : mi_malloc(size);
  return zero ? _mi_alloc_in(heap, size, true) : mi_heap_malloc(heap, size);
}

void* mi_heap_zalloc(mi_heap_t* heap, size_t size) mi_attr_noexcept {
  return _mi_alloc_in(_mi_alloc_heap(heap), size, true);
}

void* mi_theap_zalloc(mi_theap_t* theap, size_t size) mi_attr_noexcept {
  return _mi_alloc_in(_mi_alloc_heap_of(theap), size, true);
}

// ---- arrays, and sizes that are known to be small -------------------------------------------------------------------

static void* malloc_array(mi_heap_t* heap, size_t count, size_t size, bool zero) {
  size_t total;
  return _mi_alloc_count(count, size, &total) ? _mi_malloc_in(heap, total, zero) : NULL;
}

static mi_always_inline size_t malloc_small(size_t size) {
  mi_assert(size <= MI_SMALL_SIZE_MAX);
  return size;
}

// clang-format off
void* mi_malloc_small(size_t size) mi_attr_noexcept { return mi_malloc(malloc_small(size)); }
void* mi_zalloc_small(size_t size) mi_attr_noexcept { return mi_zalloc(malloc_small(size)); }
void* mi_heap_malloc_small(mi_heap_t* h, size_t size) mi_attr_noexcept { return mi_heap_malloc(h, malloc_small(size)); }
void* mi_heap_zalloc_small(mi_heap_t* h, size_t size) mi_attr_noexcept { return mi_heap_zalloc(h, malloc_small(size)); }
void* mi_theap_malloc_small(mi_theap_t* t, size_t n) mi_attr_noexcept { return mi_theap_malloc(t, malloc_small(n)); }
void* mi_theap_zalloc_small(mi_theap_t* t, size_t n) mi_attr_noexcept { return mi_theap_zalloc(t, malloc_small(n)); }
void  mi_free_small(void* p) mi_attr_noexcept { mi_free(p); }

MI_ALLOC_BOTH(void*, mallocn, MI_ALLOC_P(size_t n, size_t size), , malloc_array(heap, n, size, false))
// clang-format on

void* mi_heap_calloc(mi_heap_t* heap, size_t count, size_t size) mi_attr_noexcept {
  return malloc_array(_mi_alloc_heap(heap), count, size, true);
}

void* mi_theap_calloc(mi_theap_t* theap, size_t count, size_t size) mi_attr_noexcept {
  return malloc_array(_mi_alloc_heap_of(theap), count, size, true);
}

// ---- the constructor ------------------------------------------------------------------------------------------------
// It is in this file because every program calls a function of it: from an archive the linker takes only files that something refers to.

__attribute__((constructor(101))) static void malloc_load(void) {
  _mi_options_settle();
  mi_process_init();
}

// The object or static library may be part of a shared library that is unloaded: then no exit of a thread and no signal may call into it.
__attribute__((destructor(101))) static void malloc_unload(void) {
  mi_process_done();
  if (!_mi_prim_is_unloadable()) return;
  _mi_prim_thread_exit_stop();
  _mi_prim_signal_stop();
  _mi_prim_fault_stop();
}
