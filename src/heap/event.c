// Calling the background from slow paths.  Layer: heap.
#include "event.h"

#include "../arena/purge.h"

mi_atomic(uint32_t) _mi_event_pending;
mi_atomic(uint32_t) _mi_event_round;
mi_atomic(bool)     _mi_event_sleeps;

static void (*event_poll)(
    bool wake); // set before there is a second thread, while the process is initialised; NULL before

void _mi_event_register(void (*poll)(bool wake)) {
  event_poll = poll;
}

void _mi_event_poll(void) {
  if (event_poll != NULL) event_poll(false);
}

void _mi_event_wake(void) {
  if (event_poll != NULL) event_poll(true);
}

void _mi_event_freed(void) {
  _mi_purge_by_amount();
  _mi_event_note();
}
