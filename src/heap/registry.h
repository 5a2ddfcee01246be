// The registry: all theaps that were ever made, and the lock of the data that threads share.  Layer: heap.
//
// RE1  Theaps are added at the front and never taken out (theap.h, H5), so that the list can be walked without the lock.
// RE2  The lock also guards the lists of heaps, the fields in which theaps refer to threads and heaps, and the memory of both (meta.h).
//      heap.h has its place in the order of locks.
#pragma once

#include "theap.h"

extern mi_lock_t _mi_registry_lock;

extern mi_atomic(size_t) _mi_registry_n_threads;  // that have a theap
extern mi_atomic(bool)   _mi_registry_has_others; // there is, or was, more than one of them, or one without that frees

// A new theap that serves nothing yet; NULL when out of memory.  Under the lock.
mi_theap_t* _mi_registry_new_theap(void);

// So many were made; no theap has a greater number.
extern mi_atomic(size_t) _mi_registry_n_theaps;

static inline size_t _mi_registry_count(void) {
  return mi_load_relaxed(&_mi_registry_n_theaps);
}

// `next` leads from the first to the last, that of the process's first thread.
mi_theap_t* _mi_registry_first(void);
bool        _mi_registry_is_last(const mi_theap_t* theap);

// Calls visit for each theap, and for each of the calling thread, under the lock.
void _mi_registry_visit(void (*visit)(mi_theap_t* theap, void* arg), void* arg);
void _mi_registry_visit_own(void (*visit)(mi_theap_t* theap));
