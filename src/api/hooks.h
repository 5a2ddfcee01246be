// The deferred-free hook: the program's chance to free what it has put off.  Layer: api.
#pragma once

#include "../heap/theap.h"

// Slow mallocs between two calls of the hook.
#define MI_HOOKS_INTERVAL 128

// Calls the hook, after the work that threads do at the same occasions.
void _mi_hooks_deferred_free(bool force);

// Counts a slow malloc from the theap.  Is the hook to be called?
static inline bool _mi_hooks_is_due(mi_theap_t* theap) {
  return mi_unlikely(++theap->n_slow % MI_HOOKS_INTERVAL == 0);
}
