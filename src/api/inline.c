// Handles for programs that inline the fast path of malloc.  Layer: api.
#include "../heap/thread.h"
#include "alloc.h"

// What programs are compiled with cannot change.
mi_static_assert(sizeof(mi_inline_bin_t) <= sizeof(mi_bin_t), "a bin as programs see it");
mi_static_assert(offsetof(mi_inline_bin_t, first) == offsetof(mi_bin_t, head), "a bin as programs see it");
mi_static_assert(offsetof(mi_inline_bin_t, slots) == offsetof(mi_bin_t, slots), "a bin as programs see it");
mi_static_assert(offsetof(mi_theap_t, bins) == 0, "the offset of a bin counts from the start of the theap");
mi_static_assert(MI_SMALL_SIZE_MAX <= MI_SMALL_MAX, "each small size has an offset");

// At the end of its life a thread has no theap, and the ordinary functions still allocate: the handle has the heap then, one byte on.
// NULL: it is not in use.
static void* inline_mark(mi_heap_t* heap) {
  if (heap == NULL) heap = &_mi_heap_main;
  return _mi_heap_is_live(heap) ? (char*)heap + 1 : NULL;
}

static mi_heap_t* inline_marked(void* theap) {
  return (uintptr_t)theap % 2 == 0 ? NULL : (mi_heap_t*)(void*)((char*)theap - 1);
}

mi_inline_t mi_inline_of(mi_heap_t* heap) mi_attr_noexcept {
  mi_inline_t handle;
  mi_theap_t* theap = (heap == NULL ? _mi_thread_theap() : _mi_thread_theap_of(heap));
  // Where blocks are checked or have tags, all bins that the program sees are empty.
  bool        is_direct = (theap != NULL && !MI_PADDING && !MI_TAGS);
  handle.bins = (char*)(is_direct ? theap->bins : _mi_theap_none.bins);
  handle.offset = _mi_size_class_small;
  handle.theap = (theap != NULL ? theap : inline_mark(heap));
  return handle;
}

void* mi_inline_malloc_slow(mi_inline_t handle, size_t size) mi_attr_noexcept {
  if (mi_unlikely(handle.theap == NULL)) return _mi_alloc_failed(size);
  mi_heap_t* heap = inline_marked(handle.theap);
  if (mi_unlikely(heap != NULL)) return mi_heap_malloc(heap, size);
  return mi_theap_malloc((mi_theap_t*)handle.theap, size);
}
