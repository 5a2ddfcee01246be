// Threads whose exit nobody tells us of.  Layer: heap.  See ended.h.
#include "ended.h"

#include <string.h>

#include "attach.h"
#include "registry.h"

// More than the one that is added: so the queue gets shorter as long as most of it has ended.
#define ENDED_LOOKS 2

static mi_lock_t   ended_lock; // guards the queue
static mi_theap_t* ended_first;
static mi_theap_t* ended_last;
static mi_theap_t* ended_paused; // E3

static void ended_enqueue(mi_theap_t* theap) {
  theap->watch.next = NULL;
  theap->watch.prev = ended_last;
  if (ended_last != NULL) ended_last->watch.next = theap;
  else ended_first = theap;
  ended_last = theap;
}

static void ended_remove(mi_theap_t* theap) {
  if (theap->watch.prev != NULL) theap->watch.prev->watch.next = theap->watch.next;
  else ended_first = theap->watch.next;
  if (theap->watch.next != NULL) theap->watch.next->watch.prev = theap->watch.prev;
  else ended_last = theap->watch.prev;
}

// The next one, off the queue, if its thread has ended.
static mi_theap_t* ended_take_next(void) {
  _mi_lock_acquire(&ended_lock);
  mi_theap_t* theap = ended_first;
  bool        has_ended = (theap != NULL && _mi_prim_thread_has_ended(&theap->watch.pulse));
  if (theap != NULL) ended_remove(theap);
  if (has_ended) theap->watch.is_watched = false;
  else if (theap != NULL) ended_enqueue(theap);
  _mi_lock_release(&ended_lock);
  return has_ended ? theap : NULL;
}

void _mi_ended_watch(mi_theap_t* theap) {
  for (int i = 0; i < ENDED_LOOKS; i++) {
    mi_theap_t* ended = ended_take_next();
    if (ended != NULL) _mi_attach_end_thread(ended);
  }
  if (_mi_registry_is_last(theap) && _mi_prim_is_unloadable()) return; // E4
  if (_mi_prim_thread_pulse_begin(&theap->watch.pulse) != 0) return;
  _mi_lock_acquire(&ended_lock);
  theap->watch.is_watched = true;
  ended_enqueue(theap);
  _mi_lock_release(&ended_lock);
}

void _mi_ended_unwatch(mi_theap_t* theap) {
  if (mi_likely(!theap->watch.is_watched)) return;
  _mi_lock_acquire(&ended_lock);
  ended_remove(theap);
  theap->watch.is_watched = false;
  bool is_paused = (theap == ended_paused);
  if (is_paused) ended_paused = NULL;
  _mi_lock_release(&ended_lock);
  if (!is_paused) _mi_prim_thread_pulse_end(&theap->watch.pulse);
}

// ---- fork -----------------------------------------------------------------------------------------------------------

void _mi_ended_after_fork(mi_theap_t* mine) {
  bool is_watched = (mine != NULL && mine->watch.is_watched);
  for (mi_theap_t* theap; (theap = ended_first) != NULL;) {
    ended_remove(theap);
    theap->watch.is_watched = false;
    if (theap != mine) memset(&theap->watch.pulse, 0, sizeof(theap->watch.pulse));
  }
  if (!is_watched) return;
  mine->watch.is_watched = true;
  ended_enqueue(mine);
}

void _mi_ended_lock(void) {
  _mi_lock_acquire(&ended_lock);
  mi_theap_t* mine = _mi_theap_backing();
  if (mine == NULL || !mine->watch.is_watched) return;
  _mi_prim_thread_pulse_end(&mine->watch.pulse);
  ended_paused = mine;
}

void _mi_ended_unlock(void) {
  mi_theap_t* mine = ended_paused;
  ended_paused = NULL;
  if (mine != NULL && _mi_prim_thread_pulse_begin(&mine->watch.pulse) != 0) { // else it would be taken for ended
    ended_remove(mine);
    mine->watch.is_watched = false;
  }
  _mi_lock_release(&ended_lock);
}
