// Rounds over all theaps.  Layer: heap.
#include "idle.h"

#include "bin.h"
#include "drain.h"
#include "event.h"
#include "gaps.h"
#include "grow.h"
#include "large.h"
#include "quarantine.h"
#include "queue.h"
#include "registry.h"
#include "sampler.h"
#include "spare.h"
#include "warm.h"

mi_lock_t _mi_idle_lock;

static void idle_take(mi_theap_t* theap) {
  if (MI_HARDENED) _mi_quarantine_take_back(theap);
  if (_mi_bin_are_closed(theap)) {
    for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
      _mi_outbox_return_list(theap, _mi_bin_take(&theap->bins[cls], &theap->classes[cls].book, cls));
    }
    _mi_drain_take_all(theap);
    _mi_grow_undo_all(theap); // the limit of an open bin is the thread's: sampling changes it
  }
  _mi_outbox_flush(theap);
  _mi_queue_release_all(theap);
  _mi_gaps_release(theap);
  _mi_large_drop_kept(theap);
  theap->has_deleted = (theap->wrong_free != NULL); // gaps.h, GP6
  theap->was_emptied = true;
}

// ThreadSanitizer knows no way to share what the fast path touches.
static bool idle_may_close(void) {
  return !MI_TSAN && !_mi_event_is_sampling();
}

// One step for a theap that is `revoked` already.
static void idle_step(mi_theap_t* theap, uint32_t revoked) {
  mi_revoked_t next = MI_THEAP_EMPTIED;
  if (!_mi_presence_take(theap, revoked)) return;
  // Inside: it entered as it was asked, or is just going to find out.  It may open its bins at any time then, so that CLOSED
  // does not say that they are closed still.
  bool is_inside = (mi_load_acquire(&theap->presence) == MI_THEAP_INSIDE);
  bool is_closed = _mi_bin_are_closed(theap);
  if (is_inside) next = (is_closed ? MI_THEAP_CLOSED : MI_THEAP_FREE);
  else if (!is_closed && idle_may_close()) next = MI_THEAP_CLOSED;
  if (next == MI_THEAP_CLOSED && !is_closed) _mi_bin_close_all(theap);
  else if (next == MI_THEAP_EMPTIED) idle_take(theap);
  _mi_presence_let_go(theap, next);
}

static bool idle_has_nothing(mi_theap_t* theap) {
  return !_mi_theap_is_live(theap) || mi_load_relaxed(&theap->revoked) == MI_THEAP_EMPTIED;
}

static bool idle_has_something(mi_theap_t* theap) {
  return !idle_has_nothing(theap) || _mi_kept_any(&theap->kept);
}

// True if there will be more to do.
static bool idle_look_at(mi_theap_t* theap, bool* is_idle) {
  uint32_t revoked = mi_load_relaxed(&theap->revoked);
  if (idle_has_nothing(theap)) return false;
  if (revoked == MI_THEAP_FREE) {
    *is_idle = false;
    mi_cas_strong(&theap->revoked, &revoked, (uint32_t)MI_THEAP_ASKED, acq_rel, relaxed);
  }
  else {
    idle_step(theap, revoked);
    if (mi_load_relaxed(&theap->revoked) == MI_THEAP_EMPTIED) _mi_warm_end(theap);
  }
  return true;
}

static mi_lock_t* const idle_look_locks[] = {&_mi_idle_lock, &_mi_registry_lock, &_mi_region_lock};

enum { IDLE_LOOK_LOCKS = 3 };

static void idle_look_release(size_t n) {
  while (n-- > 0) _mi_lock_release(idle_look_locks[n]);
}

bool _mi_idle_look_begin(void) {
  for (size_t i = 0; i < IDLE_LOOK_LOCKS; i++) {
    if (_mi_lock_look(idle_look_locks[i])) continue;
    idle_look_release(i);
    return false;
  }
  return true;
}

void _mi_idle_look_end(void) {
  idle_look_release(IDLE_LOOK_LOCKS);
}

bool _mi_idle_has_work(void) {
  for (mi_theap_t* theap = _mi_registry_first(); theap != NULL; theap = theap->next) {
    if (idle_has_something(theap)) return true;
  }
  return false;
}

bool _mi_idle_round(bool* is_idle) {
  bool is_sampled = _mi_event_is_sampling();
  bool more = is_sampled;
  *is_idle = true;
  _mi_spare_drop_unused();
  for (mi_theap_t* theap = _mi_registry_first(); theap != NULL; theap = theap->next) {
    if (!idle_has_something(theap) && !is_sampled) continue;
    _mi_lock_acquire(&_mi_idle_lock);
    _mi_large_drop_unused(theap);
    if (is_sampled && _mi_theap_is_live(theap) && !mi_load_relaxed(&theap->is_late)) _mi_sampler_tick(theap);
    if (idle_look_at(theap, is_idle)) more = true;
    _mi_lock_release(&_mi_idle_lock);
  }
  return more;
}
