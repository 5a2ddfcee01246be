// Calling the background from slow paths.  Layer: heap.
#include "event.h"

#include "../arena/purge.h"

mi_atomic(uint32_t) _mi_event_pending;
mi_atomic(uint32_t) _mi_event_round;
mi_atomic(bool)     _mi_event_sleeps;

// Set while the process is initialised.  NULL before, and for as long as that fails.
static mi_atomic(mi_event_poll_fun*) event_poll;

void _mi_event_register(mi_event_poll_fun* poll) {
  mi_store_release(&event_poll, poll);
}

static void event_call(bool wake) {
  mi_event_poll_fun* poll = mi_load_acquire(&event_poll);
  if (poll != NULL) poll(wake);
}

void _mi_event_poll(void) {
  event_call(false);
}

void _mi_event_wake(void) {
  event_call(true);
}

void _mi_event_freed(void) {
  _mi_purge_by_amount();
  _mi_event_note();
}
