// The deferred-free hook.  Layer: api.
#include "hooks.h"

#include "../heap/event.h"
#include "../heap/attach.h"

static mi_atomic(mi_deferred_free_fun*) hooks_deferred_free;
static mi_atomic(void*)                 hooks_deferred_arg;
static mi_atomic(uint64_t)              hooks_heartbeat;
static MI_LOCAL(bool, hooks_busy); // in the deferred free

void mi_register_deferred_free(mi_deferred_free_fun* deferred_free, void* arg) mi_attr_noexcept {
  mi_store_release(&hooks_deferred_arg, arg);
  mi_store_release(&hooks_deferred_free, deferred_free);
}

void _mi_hooks_deferred_free(bool force) {
  mi_deferred_free_fun* fun = mi_load_acquire(&hooks_deferred_free);
  uint64_t              beat = mi_fetch_add_relaxed(&hooks_heartbeat, 1) + 1;
  _mi_attach_drop_retired();
  _mi_event_poll();
  if (mi_likely(fun == NULL) || mi_local(hooks_busy)) return;
  mi_local(hooks_busy) = true; // the hook may allocate
  fun(force, (unsigned long long)beat, mi_load_acquire(&hooks_deferred_arg));
  mi_local(hooks_busy) = false;
}
