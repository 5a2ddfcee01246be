// Guarded mode of a single heap or theap, for the calling thread.  Layer: api.
#include "../heap/sampler.h"
#include "../heap/thread.h"
#include "alloc.h"

// A theap is its own thread's business.
static bool guard_may_set(const mi_theap_t* theap) {
  return theap != NULL && mi_load_relaxed(&((mi_theap_t*)theap)->thread) == _mi_thread_backing();
}

void mi_theap_guarded_set_sample_rate(mi_theap_t* theap, size_t sample_rate, size_t seed) {
  if (guard_may_set(theap)) _mi_sampler_set_rate(theap, sample_rate, seed);
}

void mi_theap_guarded_set_size_bound(mi_theap_t* theap, size_t min, size_t max) {
  if (guard_may_set(theap)) _mi_sampler_set_bounds(theap, min, max);
}

void mi_heap_guarded_set_sample_rate(mi_heap_t* heap, size_t sample_rate, size_t seed) {
  mi_theap_guarded_set_sample_rate(_mi_thread_theap_of(_mi_alloc_heap(heap)), sample_rate, seed);
}

void mi_heap_guarded_set_size_bound(mi_heap_t* heap, size_t min, size_t max) {
  mi_theap_guarded_set_size_bound(_mi_thread_theap_of(_mi_alloc_heap(heap)), min, max);
}
