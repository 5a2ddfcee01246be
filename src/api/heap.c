// Heaps: making and ending them, and whose block it is.  Layer: api.
#include <errno.h>

#include "../arena/arena.h"
#include "../arena/purge.h"
#include "../heap/attach.h"
#include "../heap/heap_end.h"
#include "../heap/fork.h"
#include "../heap/thread.h"
#include "../support/message.h"
#include "alloc.h"
#include "arena.h"

// ---- making and ending ----------------------------------------------------------------------------------------------

static mi_heap_t* heap_new(int tag, bool allow_destroy, size_t arena) {
  mi_subproc_t* subproc = _mi_thread_subproc(); // first: it may have to set up the process
  _mi_lock_acquire(&_mi_registry_lock);
  mi_heap_t* heap = _mi_heap_new(subproc, tag, allow_destroy, arena);
  _mi_lock_release(&_mi_registry_lock);
  return heap != NULL ? heap : (mi_heap_t*)_mi_alloc_failed(sizeof(*heap));
}

// clang-format off
mi_heap_t* mi_heap_new(void) { return heap_new(0, true, MI_ARENA_ANY); }
mi_heap_t* mi_heap_new_in_arena(mi_arena_id_t id) { return heap_new(0, true, _mi_arena_of_id(id)); }
mi_heap_t* mi_heap_new_ex(int tag, bool allow_destroy, mi_arena_id_t id) {
  return heap_new(tag, allow_destroy, _mi_arena_of_id(id));
}
// clang-format on

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
  if (!heap->allow_destroy) {
    _mi_message_warning("heap %p is deleted, not destroyed: it was made so\n", (void*)heap);
    _mi_heap_end_delete(heap);
  }
  else {
    _mi_heap_end_destroy(heap);
  }
}

void mi_heap_collect(mi_heap_t* heap, bool force) mi_attr_noexcept {
  mi_theap_t* theap = _mi_thread_theap_of(_mi_alloc_heap(heap));
  if (theap != NULL) _mi_attach_release(theap);
  if (force) _mi_purge_to(0);
}

void mi_theap_collect(mi_theap_t* theap, bool force) mi_attr_noexcept {
  mi_heap_collect(_mi_alloc_heap_of(theap), force);
}

// A heap that is bound to an arena has no choice.
void mi_heap_set_numa_affinity(mi_heap_t* heap, int numa_node) {
  heap = _mi_alloc_heap(heap);
  if (!_mi_region_is_bound(mi_load_relaxed(&heap->arena))) mi_store_relaxed(&heap->arena, _mi_arena_near(numa_node));
}

// ---- which one ------------------------------------------------------------------------------------------------------

// That of the calling thread.  A failure is reported if memory is what is missing: a thread past its end has no theap.
static mi_theap_t* heap_theap(mi_heap_t* heap) {
  mi_theap_t* theap = _mi_thread_theap_of(heap);
  if (theap == NULL && _mi_heap_is_live(heap) && _mi_theap_default != &_mi_theap_dead) _mi_alloc_failed(sizeof(*theap));
  return theap;
}

// clang-format off
mi_heap_t*  mi_heap_main(void) { return _mi_thread_subproc()->main; }
mi_heap_t*  mi_heap_get_backing(void) { return mi_heap_main(); }
mi_theap_t* mi_heap_theap(mi_heap_t* heap) { return heap_theap(_mi_alloc_heap(heap)); }
mi_theap_t* mi_theap_get_default(void) { return _mi_thread_theap(); }
// clang-format on

mi_heap_t* mi_heap_get_default(void) {
  _mi_attach_drop_retired(); // another thread may have ended it
  mi_theap_t* theap = _mi_thread_theap();
  return theap == NULL ? &_mi_heap_main : _mi_theap_heap(theap);
}

mi_heap_t* mi_heap_set_default(mi_heap_t* heap) {
  mi_heap_t* before = mi_heap_get_default();
  if (heap == NULL) return NULL;
  mi_theap_t* theap = heap_theap(heap);
  if (theap == NULL) return NULL;
  _mi_theap_default = theap;
  return before;
}

mi_theap_t* mi_theap_set_default(mi_theap_t* theap) {
  mi_theap_t* before = _mi_thread_theap();
  if (theap == NULL || before == NULL || mi_load_relaxed(&theap->thread) != _mi_theap_backing()) return NULL;
  _mi_theap_default = theap;
  return before;
}

// ---- whose block is it ----------------------------------------------------------------------------------------------

mi_heap_t* mi_heap_of(const void* p) {
  bool             is_held;
  const mi_page_t* page = _mi_page_look(p, &is_held);
  mi_heap_t*       heap = (page == NULL ? NULL : _mi_heap_of(page));
  _mi_page_look_end(is_held);
  return heap;
}

bool mi_heap_contains(const mi_heap_t* heap, const void* p) {
  return mi_heap_of(p) == (heap != NULL ? heap : mi_heap_main());
}

bool mi_heap_check_owned(mi_heap_t* heap, const void* p) {
  return mi_is_aligned(p, sizeof(void*)) && mi_heap_contains(heap, p);
}

bool mi_any_heap_contains(const void* p) {
  bool             is_held;
  const mi_page_t* page = _mi_page_look(p, &is_held);
  _mi_page_look_end(is_held);
  return page != NULL;
}

// clang-format off
bool mi_heap_contains_block(mi_heap_t* heap, const void* p) { return mi_heap_contains(heap, p); }
bool mi_is_in_heap_region(const void* p) mi_attr_noexcept { return mi_any_heap_contains(p); }
bool mi_check_owned(const void* p) { return mi_any_heap_contains(p); }
// clang-format on
