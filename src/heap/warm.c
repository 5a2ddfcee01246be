// Leaving theaps to the next thread.  Layer: heap.  See warm.h.
#include "warm.h"

#include "../arena/purge.h"
#include "attach.h"
#include "event.h"
#include "outbox.h"

static mi_theap_t* warm_first; // linked by `warm_next`
static size_t      warm_n_slices;

// ---- leaving ----------------------------------------------------------------------------------------------------------

// WA1, WA2
static bool warm_may_leave(const mi_theap_t* theap) {
  bool is_plain = (theap->gaps == NULL && theap->sampler == NULL && theap->return_offset == 0);
  return is_plain && theap->subproc == &_mi_heap_subproc_main && _mi_purge_has_thread() && !_mi_event_is_sampling();
}

// What the theap counts for (WA3); none if it holds too much.  Pages that its lists have, or that it has made, whichever is more.
static size_t warm_slices(const mi_theap_t* theap) {
  size_t n_slices = 1, n_more = 0;
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    const mi_class_state_t* state = &theap->classes[cls];
    size_t                  n_pages = mi_max(state->queue.count + state->full.count, state->n_pages);
    n_slices += n_pages * _mi_size_class_info[cls].n_slices;
    if (n_pages > 1) n_more += (n_pages - 1) * _mi_size_class_info[cls].n_slices;
  }
  return n_more <= MI_WARM_MORE ? n_slices : 0;
}

// Under the registry lock, under which the library's thread ends those that were left before it ends.
static bool warm_push(mi_theap_t* theap, size_t n_slices) {
  if (warm_n_slices + n_slices > MI_WARM_SLICES || !_mi_purge_has_thread()) return false;
  _mi_attach_detach(theap);
  theap->warm.n_slices = (uint32_t)n_slices;
  theap->warm.next = warm_first;
  warm_first = theap;
  warm_n_slices += n_slices;
  return true;
}

// A round may be at the theap until now.
static size_t warm_prepare(mi_theap_t* backing) {
  _mi_presence_enter(backing);
  _mi_queue_note_left(backing);
  size_t n_slices = (warm_may_leave(backing) ? warm_slices(backing) : 0);
  if (n_slices > 0) _mi_outbox_flush(backing);
  _mi_presence_leave(backing);
  return n_slices;
}

bool _mi_warm_leave(mi_theap_t* backing) {
  if (MI_HARDENED || MI_TRACK) return false;
  size_t n_slices = warm_prepare(backing);
  if (n_slices == 0) return false;
  _mi_attach_end_others(backing);
  _mi_lock_acquire(&_mi_registry_lock);
  bool ok = warm_push(backing, n_slices);
  _mi_lock_release(&_mi_registry_lock);
  if (ok) _mi_attach_count_ended();
  return ok;
}

// ---- taking -----------------------------------------------------------------------------------------------------------

// False if it is not among them.
static bool warm_unlink(mi_theap_t* theap) {
  mi_theap_t** at = &warm_first; // WA3: there are few
  while (*at != NULL && *at != theap) at = &(*at)->warm.next;
  if (*at == NULL) return false;
  *at = theap->warm.next;
  warm_n_slices -= theap->warm.n_slices;
  theap->warm.n_slices = 0;
  return true;
}

mi_theap_t* _mi_warm_take(void) {
  mi_theap_t* theap = warm_first;
  if (theap != NULL) warm_unlink(theap);
  return theap;
}

// ---- ending -----------------------------------------------------------------------------------------------------------

static void warm_make_vacant(mi_theap_t* theap) {
  _mi_attach_release(theap);
  _mi_attach_end(theap);
}

void _mi_warm_end(mi_theap_t* theap) {
  _mi_lock_acquire(&_mi_registry_lock);
  if (warm_unlink(theap)) warm_make_vacant(theap);
  _mi_lock_release(&_mi_registry_lock);
}

void _mi_warm_end_all(void) {
  _mi_lock_acquire(&_mi_registry_lock);
  for (mi_theap_t* theap; (theap = _mi_warm_take()) != NULL;) warm_make_vacant(theap);
  _mi_lock_release(&_mi_registry_lock);
  _mi_event_freed();
}

void _mi_warm_collect(void) {
  _mi_warm_end_all();
  _mi_attach_collect();
}

void _mi_warm_forget(void) {
  while (_mi_warm_take() != NULL) {
  }
}
