// The deferred-free hook.  Layer: api.
#include "hooks.h"

#include <errno.h>

#include "../heap/event.h"
#include "../heap/attach.h"
#include "../support/hook.h"

static mi_atomic(uint64_t) hooks_heartbeat;
static MI_LOCAL(bool, hooks_busy); // in the deferred free

void mi_register_deferred_free(mi_deferred_free_fun* deferred_free, void* arg) mi_attr_noexcept {
  _mi_hook_set(MI_HOOK_DEFERRED_FREE, (mi_hook_fun_t)deferred_free, arg);
}

void _mi_hooks_deferred_free(bool force) {
  void*                 arg;
  mi_deferred_free_fun* fun = (mi_deferred_free_fun*)_mi_hook_get(MI_HOOK_DEFERRED_FREE, &arg);
  uint64_t              beat = mi_fetch_add_relaxed(&hooks_heartbeat, 1) + 1;
  _mi_attach_drop_retired();
  _mi_event_poll();
  if (mi_likely(fun == NULL) || mi_local(hooks_busy)) return;
  int saved = errno;
  mi_local(hooks_busy) = true; // the hook may allocate
  fun(force, (unsigned long long)beat, arg);
  mi_local(hooks_busy) = false;
  errno = saved; // who has called us may succeed
}
