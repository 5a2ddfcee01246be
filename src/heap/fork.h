// What a fork does to us.  Layer: heap.
#pragma once

#include "theap.h"

int _mi_fork_init(void);

// All locks, as they are taken before a fork: what they guard is whole.
void _mi_fork_lock_all(void);
void _mi_fork_unlock_all(void);

// In the child: pages of threads that it does not have are to be taken over when memory is needed.  Called outside of
// enter and leave.
extern mi_atomic(bool) _mi_fork_has_orphans;
mi_cold void           _mi_fork_adopt_all(void);

static inline void _mi_fork_adopt_orphans(void) {
  if (mi_unlikely(mi_load_relaxed(&_mi_fork_has_orphans))) _mi_fork_adopt_all();
}

// A fork has left threads behind: some blocks that count as used are not, or were just being made or freed (F2).
extern mi_atomic(bool) _mi_fork_has_lost;
