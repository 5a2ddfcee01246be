// The deferred-free hook: the program's chance to free what it has put off.  Layer: api.
#pragma once

#include "../heap/theap.h"

// Slow paths of malloc between two calls of the hook.
#define MI_HOOKS_INTERVAL 128

void _mi_hooks_deferred_free(bool force);

// Calls it, with the theap from which the thread is about to allocate.  The thread may let go of that meanwhile, because its heap
// has ended.  The theap to allocate from: if that is so, the thread's default one; NULL if it has none any more.
mi_theap_t* _mi_hooks_slow_malloc(mi_theap_t* theap);

// Counts a slow malloc from the theap.  Is the hook to be called?
static inline bool mi_hooks_is_due(mi_theap_t* theap) {
  return mi_unlikely(++theap->n_slow % MI_HOOKS_INTERVAL == 0);
}
