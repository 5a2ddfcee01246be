// Making theaps, and going through them.  Layer: heap.
#include "registry.h"

#include "meta.h"

mi_lock_t         _mi_registry_lock;
mi_atomic(size_t) _mi_registry_n_threads;
mi_atomic(size_t) _mi_registry_n_theaps;
mi_atomic(bool)   _mi_registry_has_others;

static mi_theap_t             registry_last; // of the first thread: no memory is needed for the first allocation
static mi_atomic(mi_theap_t*) registry_first;
static mi_slab_t              registry_slab;

mi_theap_t* _mi_registry_new_theap(void) {
  bool        is_first = (mi_load_relaxed(&registry_first) == NULL && !MI_TRACK_VALGRIND); // which could not be hidden
  mi_theap_t* theap = (is_first ? &registry_last : (mi_theap_t*)_mi_meta_carve(&registry_slab, sizeof(mi_theap_t)));
  if (theap == NULL) return NULL;
  size_t number = mi_fetch_add_relaxed(&_mi_registry_n_theaps, 1);
  theap->number = _mi_lock_is_forker() ? 0 : number; // it holds the locks of the pools that there were (pool.h, PO4)
  theap->next = mi_load_relaxed(&registry_first);
  mi_store_release(&registry_first, theap); // release: RE1
  return theap;
}

mi_theap_t* _mi_registry_first(void) {
  return mi_load_acquire(&registry_first);
}

bool _mi_registry_is_last(const mi_theap_t* theap) {
  return theap == &registry_last;
}

void _mi_registry_visit(void (*visit)(mi_theap_t* theap, void* arg), void* arg) {
  _mi_lock_acquire(&_mi_registry_lock);
  for (mi_theap_t* theap = _mi_registry_first(); theap != NULL; theap = theap->next) visit(theap, arg);
  _mi_lock_release(&_mi_registry_lock);
}

static void registry_visit_list(mi_theap_t* theap, void (*visit)(mi_theap_t* theap)) {
  for (; theap != NULL; theap = theap->in_thread.next) visit(theap);
}

void _mi_registry_visit_own(void (*visit)(mi_theap_t* theap)) {
  mi_theap_t* backing = _mi_theap_backing();
  if (backing == NULL) return;
  _mi_lock_acquire(&_mi_registry_lock);
  registry_visit_list(backing, visit);
  registry_visit_list(backing->retired, visit);
  _mi_lock_release(&_mi_registry_lock);
}
