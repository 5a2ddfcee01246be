// Making and ending subprocesses.  Layer: heap.
#include "subproc.h"

#include <string.h>

#include "attach.h"
#include "heap_end.h"
#include "late.h"
#include "meta.h"

static mi_subproc_t* subprocs; // all but the main one; under the registry lock, as what follows
static mi_subproc_t* subprocs_unused;
static mi_slab_t     subproc_slab;

static void subproc_enlist(mi_subproc_t* subproc) {
  subproc->is_listed = true;
  subproc->prev = NULL;
  subproc->next = subprocs;
  if (subprocs != NULL) subprocs->prev = subproc;
  subprocs = subproc;
}

static void subproc_unlist(mi_subproc_t* subproc) {
  subproc->is_listed = false;
  if (subproc->prev != NULL) subproc->prev->next = subproc->next;
  else subprocs = subproc->next;
  if (subproc->next != NULL) subproc->next->prev = subproc->prev;
}

static void subproc_put_unused(mi_subproc_t* subproc) {
  subproc->main = NULL;
  subproc->next = subprocs_unused;
  subprocs_unused = subproc;
}

static mi_subproc_t* subproc_make(void) {
  mi_subproc_t* subproc = subprocs_unused;
  if (subproc == NULL) return (mi_subproc_t*)_mi_meta_carve(&subproc_slab, sizeof(*subproc));
  subprocs_unused = subproc->next;
  memset((void*)subproc, 0, sizeof(*subproc));
  return subproc;
}

mi_subproc_t* _mi_subproc_new(void) {
  _mi_lock_acquire(&_mi_registry_lock);
  mi_subproc_t* subproc = subproc_make();
  if (subproc != NULL) {
    subproc->main = _mi_heap_new(subproc, 0, true, MI_ARENA_ANY);
    if (subproc->main != NULL) {
      subproc_enlist(subproc);
    }
    else {
      subproc_put_unused(subproc);
      subproc = NULL;
    }
  }
  _mi_lock_release(&_mi_registry_lock);
  return subproc;
}

// What is free went back when its threads ended, except what threads past their exit have freed.
static bool subproc_is_empty(const mi_subproc_t* subproc) {
  for (const mi_heap_t* heap = subproc->heaps.first; heap != NULL; heap = heap->links[MI_HEAP_OF_SUBPROC].next) {
    if (heap->late != NULL) _mi_attach_release(heap->late);
    if (heap->n_pages > 0) return false;
  }
  return true;
}

size_t _mi_subproc_n_moved_threads(void) {
  size_t n = 0;
  _mi_lock_acquire(&_mi_registry_lock);
  for (mi_subproc_t* subproc = subprocs; subproc != NULL; subproc = subproc->next)
    n += mi_load_relaxed(&subproc->n_threads);
  _mi_lock_release(&_mi_registry_lock);
  return n;
}

void _mi_subproc_after_fork(mi_subproc_t* mine) {
  for (mi_subproc_t* subproc = subprocs; subproc != NULL; subproc = subproc->next) {
    mi_store_relaxed(&subproc->n_threads, (size_t)(subproc == mine));
  }
}

bool _mi_subproc_end(mi_subproc_t* subproc, bool destroy) {
  _mi_late_lock();
  _mi_lock_acquire(&_mi_registry_lock);
  bool ok = subproc->is_listed && mi_load_relaxed(&subproc->n_threads) == 0 && (destroy || subproc_is_empty(subproc));
  if (ok) subproc_unlist(subproc);
  _mi_lock_release(&_mi_registry_lock);
  _mi_late_unlock();
  if (!ok) return false;
  while (subproc->heaps.first != NULL) {
    if (destroy) _mi_heap_end_destroy(subproc->heaps.first);
    else _mi_heap_end_delete(subproc->heaps.first);
  }
  _mi_lock_acquire(&_mi_registry_lock);
  subproc_put_unused(subproc);
  _mi_lock_release(&_mi_registry_lock);
  return true;
}
