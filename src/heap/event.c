// Calling the background from slow paths.  Layer: heap.
#include "event.h"

#include "../arena/purge_by_amount.h"

mi_atomic(uint32_t) _mi_event_pending;
mi_atomic(uint32_t) _mi_event_round;
mi_atomic(uint32_t) _mi_event_wanted;

// Set while the process is initialised.  NULL before, and for as long as that fails.
static mi_atomic(mi_event_poll_fun*) event_poll;

void _mi_event_register(mi_event_poll_fun* poll) {
  mi_store_release(&event_poll, poll);
}

typedef void (*event_answer_t)(int value);
static mi_atomic(event_answer_t) event_answer;
static mi_atomic(int)            event_value;
static mi_atomic(bool)           event_is_asked;

void _mi_event_on_request(void (*answer)(int value)) {
  mi_store_release(&event_answer, answer);
}

void _mi_event_request(int value) {
  mi_store_relaxed(&event_value, value);
  if (!mi_exchange_acq_rel(&event_is_asked, true)) mi_fetch_add_relaxed(&_mi_event_pending, MI_EVENT_REQUEST);
}

void _mi_event_answer(void) {
  event_answer_t answer = mi_load_acquire(&event_answer);
  if (mi_likely(mi_load_relaxed(&_mi_event_pending) < MI_EVENT_REQUEST) || answer == NULL) return;
  if (!mi_exchange_acq_rel(&event_is_asked, false)) return; // another thread does
  int value = mi_load_relaxed(&event_value);
  mi_fetch_sub_relaxed(&_mi_event_pending, MI_EVENT_REQUEST);
  answer(value);
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

void _mi_event_after_fork(uint32_t n_sampling, bool has_orphans) {
  uint32_t n = n_sampling + (has_orphans ? MI_EVENT_ORPHANS : 0);
  if (mi_load_relaxed(&event_is_limit)) n += MI_EVENT_LIMIT;
  if (mi_load_relaxed(&event_is_asked)) n += MI_EVENT_REQUEST;
  mi_store_relaxed(&_mi_event_pending, n);
}

void _mi_event_freed(void) {
  _mi_purge_by_amount();
  _mi_event_note();
}
