// Watched theaps: those of threads whose exit no destructor reports.  Layer: heap.
//
// E1  If no destructor of thread-specific data is available (prim/linux_thread.c, LT1), the backing theap of a thread has a `pulse` and is
//     in a queue.  Each new thread of that kind looks at the first two theaps of the queue.  A theap whose thread has ended is released as
//     the thread's own exit would do it; another one goes to the end.  So the start of a thread takes O(1), and there are at most about as
//     many theaps of ended threads as of others.
// E2  A thread that ends leaves its memory as it is.  The thread that finds this out acts for it from then on, alone: only one thread can
//     get the lock of its pulse, and it gets it after everything that the ended thread did.
// E3  While a thread forks, its own pulse ends, and it begins anew in parent and child: a C library may have a list of the robust
//     mutexes that a thread has locked (musl), which in the child could neither be unlocked nor leave the list.
// E4  A thread that has locked a robust mutex has it in its list until it ends.  So none lies in the data of a library that is unloaded
//     while its threads run on: the theap there, which is the first, is not watched.
#pragma once

#include "theap.h"

// The calling thread, whose backing theap this is, will not be seen to end.  Without locks.
mi_cold void _mi_ended_watch(mi_theap_t* theap);

// Its thread lets go of it by itself, or has.  Without locks.
void _mi_ended_unwatch(mi_theap_t* theap);

// The child of a fork has one thread, with this backing theap (NULL: none); the others are not waited for.
void _mi_ended_after_fork(mi_theap_t* mine);

// Held around a fork, by the thread that forks (E3); nothing is taken while it is held.
void _mi_ended_lock(void);
void _mi_ended_unlock(void);
