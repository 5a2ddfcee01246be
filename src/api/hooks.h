// The deferred-free hook: the program's chance to free what it has put off.  Layer: api.
#pragma once

#include "../heap/theap.h"

// Slow paths of malloc between two calls of the hook.
#define MI_HOOKS_INTERVAL 128

void _mi_hooks_deferred_free(bool force);

static inline void mi_hooks_on_slow_malloc(mi_theap_t* theap) {
  if (mi_unlikely(++theap->n_slow % MI_HOOKS_INTERVAL == 0)) _mi_hooks_deferred_free(false);
}
