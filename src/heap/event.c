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

static mi_atomic(bool) event_is_limit;

void _mi_event_set_limit(bool is_crossed) {
  if (mi_exchange_acq_rel(&event_is_limit, is_crossed) == is_crossed) return;
  if (is_crossed) mi_fetch_add_relaxed(&_mi_event_pending, MI_EVENT_LIMIT);
  else mi_fetch_sub_relaxed(&_mi_event_pending, MI_EVENT_LIMIT);
}

void _mi_event_freed(void) {
  _mi_purge_by_amount();
  _mi_event_note();
}
