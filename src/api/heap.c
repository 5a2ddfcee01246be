// Heaps: making and ending them, and allocation from them.  Layer: api.
//
//   mi_heap_malloc(heap, n)   heap's id -> the thread's theap of it, from a small cache -> as malloc     | _mi_malloc_slow_in
//
// All other functions with a heap are those without one, on top of _mi_malloc_in and its aligned and resizing relatives.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../arena/arena.h"
#include "../arena/purge.h"
#include "../heap/attach.h"
#include "../heap/heap_end.h"
#include "../heap/fork.h"
#include "../heap/thread.h"
#include "../support/message.h"
#include "api.h"
#include "arena.h"

static mi_heap_t* heap_or_main(mi_heap_t* heap) {
  return mi_likely(heap != NULL) ? heap : _mi_thread_subproc()->main;
}

// ---- making and ending ----------------------------------------------------------------------------------------------

static mi_heap_t* heap_new(int tag, bool allow_destroy, size_t arena) {
  mi_subproc_t* subproc = _mi_thread_subproc(); // first: it may have to set up the process
  _mi_lock_acquire(&_mi_registry_lock);
  mi_heap_t* heap = _mi_heap_new(subproc, tag, allow_destroy, arena);
  _mi_lock_release(&_mi_registry_lock);
  if (heap == NULL) errno = ENOMEM;
  return heap;
}

mi_heap_t* mi_heap_new(void) {
  return heap_new(0, true, MI_ARENA_ANY);
}

mi_heap_t* mi_heap_new_ex(int heap_tag, bool allow_destroy, mi_arena_id_t arena_id) {
  return heap_new(heap_tag, allow_destroy, _mi_arena_of_id(arena_id));
}

mi_heap_t* mi_heap_new_in_arena(mi_arena_id_t arena_id) {
  return heap_new(0, true, _mi_arena_of_id(arena_id));
}

// May the program end this heap?  In the child of a fork its pages are not to be taken for those of a heap that a thread which the
// child does not have was ending: these are taken over first.
static bool heap_may_end(mi_heap_t* heap, const char* how) {
  if (heap == NULL) return false;
  _mi_fork_adopt_orphans();
  if (!_mi_heap_is_live(heap)) {
    _mi_message_error(EINVAL, "heap %p cannot be %s: it is not in use\n", (void*)heap, how);
    return false;
  }
  if (heap == heap->subproc->main) {
    _mi_message_warning("heap %p cannot be %s: it is a main heap\n", (void*)heap, how);
    return false;
  }
  return true;
}

void mi_heap_delete(mi_heap_t* heap) {
  if (heap_may_end(heap, "deleted")) _mi_heap_end_delete(heap);
}

void mi_heap_destroy(mi_heap_t* heap) {
  if (!heap_may_end(heap, "destroyed")) return;
  if (heap->allow_destroy) {
    _mi_heap_end_destroy(heap);
    return;
  }
  _mi_message_warning("heap %p is deleted, not destroyed: it was made so\n", (void*)heap);
  _mi_heap_end_delete(heap);
}

void mi_heap_collect(mi_heap_t* heap, bool force) mi_attr_noexcept {
  mi_theap_t* theap = _mi_thread_theap_of(heap_or_main(heap));
  if (theap != NULL) _mi_attach_release(theap);
  if (force) _mi_purge_to(0);
}

// A heap that is bound to an arena has no choice.
void mi_heap_set_numa_affinity(mi_heap_t* heap, int numa_node) {
  heap = heap_or_main(heap);
  if (!_mi_region_is_bound(mi_load_relaxed(&heap->arena))) mi_store_relaxed(&heap->arena, _mi_arena_near(numa_node));
}

// ---- which one ------------------------------------------------------------------------------------------------------

mi_heap_t* mi_heap_main(void) {
  return _mi_thread_subproc()->main;
}

mi_heap_t* mi_heap_get_backing(void) {
  return mi_heap_main();
}

mi_heap_t* mi_heap_get_default(void) {
  mi_theap_t* theap = _mi_thread_theap();
  return theap == NULL ? &_mi_heap_main : _mi_theap_heap(theap);
}

mi_heap_t* mi_heap_set_default(mi_heap_t* heap) {
  mi_heap_t* before = mi_heap_get_default();
  if (heap == NULL) return NULL;
  mi_theap_t* theap = _mi_thread_theap_of(heap);
  if (theap == NULL) return NULL;
  _mi_theap_default = theap;
  return before;
}

mi_theap_t* mi_heap_theap(mi_heap_t* heap) {
  return _mi_thread_theap_of(heap_or_main(heap));
}

mi_theap_t* mi_theap_get_default(void) {
  return _mi_thread_theap();
}

mi_theap_t* mi_theap_set_default(mi_theap_t* theap) {
  mi_theap_t* before = _mi_thread_theap();
  if (theap == NULL || before == NULL || mi_load_relaxed(&theap->thread) != _mi_theap_backing()) return NULL;
  _mi_theap_default = theap;
  return before;
}

// ---- whose block is it ----------------------------------------------------------------------------------------------

mi_heap_t* mi_heap_of(const void* p) {
  const mi_page_t* page = _mi_page_of(p);
  return page == NULL ? NULL : _mi_heap_of(page);
}

bool mi_heap_contains(const mi_heap_t* heap, const void* p) {
  const mi_heap_t* wanted = (heap != NULL ? heap : mi_heap_main());
  return mi_heap_of(p) == wanted;
}

bool mi_any_heap_contains(const void* p) {
  return _mi_page_of(p) != NULL;
}

bool mi_is_in_heap_region(const void* p) mi_attr_noexcept {
  return mi_any_heap_contains(p);
}

bool mi_check_owned(const void* p) {
  return mi_any_heap_contains(p);
}

bool mi_heap_contains_block(mi_heap_t* heap, const void* p) {
  return mi_heap_contains(heap, p);
}

bool mi_heap_check_owned(mi_heap_t* heap, const void* p) {
  return ((uintptr_t)p & (sizeof(void*) - 1)) == 0 && mi_heap_contains(heap, p);
}

// ---- allocation -----------------------------------------------------------------------------------------------------

// The calling thread's theap of a heap, NULL if it is not in the cache.
static mi_always_inline mi_theap_t* heap_theap(mi_heap_t* heap) {
  mi_theap_t* backing = _mi_theap_backing();
  if (mi_unlikely(heap == NULL || backing == NULL)) return NULL;
  const mi_theap_cached_t* cached = _mi_heap_cached(backing, heap);
  return mi_likely(cached->id == mi_load_relaxed(&heap->id)) ? cached->theap : NULL;
}

// A block from a theap's bin; NULL if there is none.
static mi_always_inline void* theap_malloc(mi_theap_t* theap, size_t size) {
  size_t offset;
  if (mi_likely(size <= MI_SMALL_MAX - MI_PADDING_SIZE)) offset = _mi_size_class_small[size + MI_PADDING_SIZE];
  else if (size <= MI_MEDIUM_MAX - MI_PADDING_SIZE) offset = _mi_size_class_medium[(size + MI_PADDING_SIZE - 1) / 128];
  else return NULL;
  void* p = _mi_theap_pop_fast(theap, offset);
  if (mi_unlikely(p == NULL)) return NULL;
  _mi_block_reuse(p, _mi_size_class_block(offset >> MI_BIN_SHIFT));
  return _mi_block_issue(p, size, _mi_size_class_block(offset >> MI_BIN_SHIFT), false);
}

// For a thread that uses more heaps than its cache has places.
static mi_noinline void* heap_malloc_uncached(mi_heap_t* heap, size_t size) mi_attr_noexcept {
  mi_theap_t* backing = _mi_theap_backing();
  mi_theap_t* theap = (heap == NULL || backing == NULL ? NULL : _mi_attach_find(backing, heap));
  void*       p = (theap == NULL ? NULL : theap_malloc(theap, size));
  return mi_likely(p != NULL) ? p : _mi_malloc_slow_in(heap_or_main(heap), size, false);
}

void* mi_heap_malloc(mi_heap_t* heap, size_t size) mi_attr_noexcept {
  mi_theap_t* theap = heap_theap(heap);
  if (mi_unlikely(theap == NULL)) return heap_malloc_uncached(heap, size);
  void* p = theap_malloc(theap, size);
  return mi_likely(p != NULL) ? p : _mi_malloc_slow_in(heap_or_main(heap), size, false);
}

void* _mi_malloc_in(mi_heap_t* heap, size_t size, bool zero) {
  if (heap == NULL) return zero ? mi_zalloc(size) : mi_malloc(size);
  return zero ? _mi_malloc_slow_in(heap, size, true) : mi_heap_malloc(heap, size);
}

void* mi_heap_zalloc(mi_heap_t* heap, size_t size) mi_attr_noexcept {
  return _mi_malloc_slow_in(heap_or_main(heap), size, true);
}

void* mi_heap_calloc(mi_heap_t* heap, size_t count, size_t size) mi_attr_noexcept {
  size_t total;
  return _mi_count_size(count, size, &total) ? mi_heap_zalloc(heap, total) : NULL;
}

void* mi_heap_mallocn(mi_heap_t* heap, size_t count, size_t size) mi_attr_noexcept {
  size_t total;
  return _mi_count_size(count, size, &total) ? mi_heap_malloc(heap, total) : NULL;
}

void* mi_heap_malloc_small(mi_heap_t* heap, size_t size) mi_attr_noexcept {
  mi_assert(size <= MI_SMALL_SIZE_MAX);
  return mi_heap_malloc(heap, size);
}

void* mi_heap_zalloc_small(mi_heap_t* heap, size_t size) mi_attr_noexcept {
  mi_assert(size <= MI_SMALL_SIZE_MAX);
  return mi_heap_zalloc(heap, size);
}

// ---- resizing -------------------------------------------------------------------------------------------------------

void* mi_heap_realloc(mi_heap_t* heap, void* p, size_t newsize) mi_attr_noexcept {
  return _mi_realloc(heap_or_main(heap), p, newsize, false);
}

void* mi_heap_reallocn(mi_heap_t* heap, void* p, size_t count, size_t size) mi_attr_noexcept {
  size_t total;
  return _mi_count_size(count, size, &total) ? mi_heap_realloc(heap, p, total) : NULL;
}

void* mi_heap_reallocf(mi_heap_t* heap, void* p, size_t newsize) mi_attr_noexcept {
  void* q = mi_heap_realloc(heap, p, newsize);
  if (q == NULL && p != NULL) mi_free(p);
  return q;
}

void* mi_heap_rezalloc(mi_heap_t* heap, void* p, size_t newsize) mi_attr_noexcept {
  return _mi_realloc(heap_or_main(heap), p, newsize, true);
}

void* mi_heap_recalloc(mi_heap_t* heap, void* p, size_t newcount, size_t size) mi_attr_noexcept {
  size_t total;
  return _mi_count_size(newcount, size, &total) ? mi_heap_rezalloc(heap, p, total) : NULL;
}

// ---- strings --------------------------------------------------------------------------------------------------------

static char* heap_copy(mi_heap_t* heap, const char* s, size_t n) {
  char* copy = (char*)mi_heap_malloc(heap, n + 1);
  if (copy == NULL) return NULL;
  memcpy(copy, s, n);
  copy[n] = 0;
  return copy;
}

char* mi_heap_strdup(mi_heap_t* heap, const char* s) mi_attr_noexcept {
  return s == NULL ? NULL : heap_copy(heap, s, strlen(s));
}

char* mi_heap_strndup(mi_heap_t* heap, const char* s, size_t n) mi_attr_noexcept {
  return s == NULL ? NULL : heap_copy(heap, s, strnlen(s, n));
}

char* mi_heap_realpath(mi_heap_t* heap, const char* fname, char* resolved_name) mi_attr_noexcept {
  char* path = mi_realpath(fname, resolved_name);
  if (path == NULL || resolved_name != NULL || mi_heap_contains(heap, path)) return path;
  char* copy = mi_heap_strdup(heap, path);
  mi_free(path);
  return copy;
}

// ---- aligned --------------------------------------------------------------------------------------------------------

void* mi_heap_malloc_aligned_at(mi_heap_t* heap, size_t size, size_t alignment, size_t offset) mi_attr_noexcept {
  return _mi_malloc_aligned_at(heap_or_main(heap), size, alignment, offset, false);
}

void* mi_heap_malloc_aligned(mi_heap_t* heap, size_t size, size_t alignment) mi_attr_noexcept {
  return mi_heap_malloc_aligned_at(heap, size, alignment, 0);
}

void* mi_heap_zalloc_aligned_at(mi_heap_t* heap, size_t size, size_t alignment, size_t offset) mi_attr_noexcept {
  return _mi_malloc_aligned_at(heap_or_main(heap), size, alignment, offset, true);
}

void* mi_heap_zalloc_aligned(mi_heap_t* heap, size_t size, size_t alignment) mi_attr_noexcept {
  return mi_heap_zalloc_aligned_at(heap, size, alignment, 0);
}

void* mi_heap_calloc_aligned_at(mi_heap_t* heap, size_t count, size_t size, size_t alignment,
                                size_t offset) mi_attr_noexcept {
  size_t total;
  return _mi_count_size(count, size, &total) ? mi_heap_zalloc_aligned_at(heap, total, alignment, offset) : NULL;
}

void* mi_heap_calloc_aligned(mi_heap_t* heap, size_t count, size_t size, size_t alignment) mi_attr_noexcept {
  return mi_heap_calloc_aligned_at(heap, count, size, alignment, 0);
}

void* mi_heap_realloc_aligned_at(mi_heap_t* heap, void* p, size_t newsize, size_t alignment,
                                 size_t offset) mi_attr_noexcept {
  return _mi_realloc_aligned_at(heap_or_main(heap), p, newsize, alignment, offset, false);
}

void* mi_heap_realloc_aligned(mi_heap_t* heap, void* p, size_t newsize, size_t alignment) mi_attr_noexcept {
  return mi_heap_realloc_aligned_at(heap, p, newsize, alignment, 0);
}

void* mi_heap_rezalloc_aligned_at(mi_heap_t* heap, void* p, size_t newsize, size_t alignment,
                                  size_t offset) mi_attr_noexcept {
  return _mi_realloc_aligned_at(heap_or_main(heap), p, newsize, alignment, offset, true);
}

void* mi_heap_rezalloc_aligned(mi_heap_t* heap, void* p, size_t newsize, size_t alignment) mi_attr_noexcept {
  return mi_heap_rezalloc_aligned_at(heap, p, newsize, alignment, 0);
}

void* mi_heap_recalloc_aligned_at(mi_heap_t* heap, void* p, size_t newcount, size_t size, size_t alignment,
                                  size_t offset) mi_attr_noexcept {
  size_t total;
  if (!_mi_count_size(newcount, size, &total)) return NULL;
  return mi_heap_rezalloc_aligned_at(heap, p, total, alignment, offset);
}

void* mi_heap_recalloc_aligned(mi_heap_t* heap, void* p, size_t newcount, size_t size,
                               size_t alignment) mi_attr_noexcept {
  return mi_heap_recalloc_aligned_at(heap, p, newcount, size, alignment, 0);
}

// ---- theaps ---------------------------------------------------------------------------------------------------------

static mi_heap_t* theap_heap(const mi_theap_t* theap) {
  return theap == NULL ? NULL : _mi_theap_heap(theap);
}

void mi_theap_collect(mi_theap_t* theap, bool force) mi_attr_noexcept {
  mi_heap_collect(theap_heap(theap), force);
}

void* mi_theap_malloc(mi_theap_t* theap, size_t size) mi_attr_noexcept {
  void* p = (mi_unlikely(theap == NULL) ? NULL : theap_malloc(theap, size));
  return mi_likely(p != NULL) ? p : _mi_malloc_slow_in(theap_heap(theap), size, false);
}

void* mi_theap_zalloc(mi_theap_t* theap, size_t size) mi_attr_noexcept {
  return _mi_malloc_slow_in(theap_heap(theap), size, true);
}

void* mi_theap_calloc(mi_theap_t* theap, size_t count, size_t size) mi_attr_noexcept {
  size_t total;
  return _mi_count_size(count, size, &total) ? mi_theap_zalloc(theap, total) : NULL;
}

void* mi_theap_malloc_small(mi_theap_t* theap, size_t size) mi_attr_noexcept {
  mi_assert(size <= MI_SMALL_SIZE_MAX);
  return mi_theap_malloc(theap, size);
}

void* mi_theap_zalloc_small(mi_theap_t* theap, size_t size) mi_attr_noexcept {
  mi_assert(size <= MI_SMALL_SIZE_MAX);
  return mi_theap_zalloc(theap, size);
}

void* mi_theap_malloc_aligned(mi_theap_t* theap, size_t size, size_t alignment) mi_attr_noexcept {
  return _mi_malloc_aligned_at(theap_heap(theap), size, alignment, 0, false);
}

void* mi_theap_realloc(mi_theap_t* theap, void* p, size_t newsize) mi_attr_noexcept {
  return _mi_realloc(theap_heap(theap), p, newsize, false);
}
