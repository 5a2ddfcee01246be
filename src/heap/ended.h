// Threads whose exit nobody tells us of.  Layer: heap.
//
// E1  Where no destructor of thread-specific data can be had (prim/linux_thread.c, LT1), the backing theap of a thread has a `life` and is
//     in a queue.  Each new thread of that kind looks at the first two of the queue: one whose thread has ended is released as
//     its own exit would do it, another one goes to the end.  So a start takes O(1), and there are at most about as many theaps
//     of ended threads as of others.
// E2  A thread that ends leaves its memory as it is.  Whoever finds that out acts for it from then on, alone: the lock of its life is
//     had by one only, and that happens after all that the thread did.
// E3  While a thread forks, its own life is over, and it begins anew in parent and child: a C library may have a list of the robust
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
