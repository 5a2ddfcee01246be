// The theaps that ended threads share.  Layer: heap.
#include "late.h"

#include "attach.h"
#include "event.h"
#include "refill.h"

static mi_lock_t late_lock;

static mi_theap_t* late_theap(mi_heap_t* heap) {
  if (heap->late == NULL) {
    _mi_lock_acquire(&_mi_registry_lock);
    mi_theap_t* theap = (_mi_heap_is_live(heap) ? _mi_attach_new(heap, NULL) : NULL);
    if (theap != NULL) {
      mi_store_relaxed(&theap->thread, (mi_theap_t*)NULL);
      mi_store_relaxed(&theap->is_late, true);
    }
    heap->late = theap;
    _mi_lock_release(&_mi_registry_lock);
  }
  return heap->late;
}

mi_block_t* _mi_late_malloc(mi_heap_t* heap, size_t cls, bool* is_zero) {
  mi_block_t* block = NULL;
  _mi_lock_acquire(&late_lock);
  mi_theap_t* theap = late_theap(heap);
  if (theap != NULL) {
    block = _mi_theap_pop(theap, cls);
    if (block == NULL) block = _mi_refill(theap, cls, is_zero);
  }
  _mi_lock_release(&late_lock);
  _mi_event_note(); // a round may be made: not under the lock
  return block;
}

void _mi_late_lock(void) {
  _mi_lock_acquire(&late_lock);
}

void _mi_late_unlock(void) {
  _mi_lock_release(&late_lock);
}
