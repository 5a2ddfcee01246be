// Idle theaps: taking memory that a thread holds and does not use.  Layer: heap.
//
// ID1  A theap whose thread takes no slow path from one round to the next is idle.  The memory that it holds goes back in two further
//      rounds, without the thread, whether the thread sleeps or computes: presence.h says how a round takes the theap, bin.h how
//      its bins are taken.
#pragma once

#include "theap.h"

// Held while a round looks at a theap, and by others that clear or read the theaps of other threads.
extern mi_lock_t _mi_idle_lock;

// For looking at the pages and theaps of all threads: takes the locks of idle theaps, of the registry and of the arena.  False, without
// them, only at the end of the process (prim/lock.h).
bool _mi_idle_look_begin(void);
void _mi_idle_look_end(void);

// One step for each theap.  True if there will be more to do in the next round; *is_idle: no thread has entered its theap since the last.
bool _mi_idle_round(bool* is_idle);

// Is there anything for a round to take, or to find out?
bool _mi_idle_has_work(void);
