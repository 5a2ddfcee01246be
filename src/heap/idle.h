// Taking from a thread what it holds and does not use.  Layer: heap.
//
// ID1  A theap whose thread takes no slow path from one round to the next is idle.  What it holds then goes back in two further
//      rounds, without the thread, whether that sleeps or computes: presence.h says how a round comes to hold it, bin.h how
//      its bins are taken.
#pragma once

#include "theap.h"

// Held while a theap is looked at; taken before all other locks except that of rounds.  Those who clear or read theaps of
// others take it.
extern mi_lock_t _mi_idle_lock;

// For those who look at the pages of all threads, and at their theaps: takes the locks of idle theaps, of the registry and of
// the arena.  False, without them, only at the end of the process (prim/lock.h).
bool _mi_idle_look_begin(void);
void _mi_idle_look_end(void);

// Looks at all theaps.  True if there will be more to do; *is_idle: no thread has entered its theap since the last round.
bool _mi_idle_round(bool* is_idle);

// Is there anything for a round to take, or to find out?
bool _mi_idle_has_work(void);
