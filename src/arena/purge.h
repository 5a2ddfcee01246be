// When freed memory goes back to the system.  Layer: arena.
//
// Freed slices stay backed for a while, since they are likely to be used again soon.  Every interval (options purge_delay
// x arena_purge_mult, 100 ms) the amount that was free and backed during the *whole* interval goes back: a program that
// oscillates keeps what it swings by, one that went idle gives back all.
//
// P1  An idle process gives its memory back without a call of its own: a background thread does it.  The thread exists
//     only while there is something to give back (but see P3), and it is never the program's business: signals blocked,
//     no locks of libc while it runs, gone in the child of a fork.
// P2  Where there may be no thread (option background_thread off, or it cannot be started), the calls that free slices
//     look at the clock instead.
// P3  Starting a thread takes a lock of libc, that of the stacks it keeps, which it also holds while it frees what belongs
//     to threads that have ended.  So in a process that has, or had, other threads a free of a small block never starts the
//     thread: it says that one is wanted, and looks at the clock, and the next slow malloc starts it.  libc has no
//     malloc with that lock, nor blocks so large.  So that there is one when all threads only free and then sleep, slow
//     mallocs start it as soon as there is much that can be freed, and it sleeps instead of ending.
#pragma once

#include "slices.h"

// Called after slices were freed (or may have become so): starts what is needed.  Takes locks; call it without any.
// `by_free`: for a free of a small block (P3).
void _mi_purge_schedule(bool by_free);

// Gives everything back that is free now.
void _mi_purge_all(void);

// Asks for one round of `on_tick` although no slices were freed.
void _mi_purge_wake(bool by_free);

// For slow mallocs: is there a thread to be started, and start it (P3).
extern mi_atomic(bool) _mi_purge_is_wanted;
void                   _mi_purge_start_wanted(void);

// The program has other threads; has it, or had it?
void _mi_purge_has_threads(void);
bool _mi_purge_had_threads(void);

// For slow mallocs that have made a page: there will be something to give back (P3).
void _mi_purge_expect(void);

// `on_tick` runs on the background thread before each round, and returns true while it expects to have more to do.
// `start_thread` is _mi_prim_thread_start with what the caller has to do around it.  `on_wanted` hears of each change of
// _mi_purge_is_wanted.
void _mi_purge_init(bool (*on_tick)(void), int (*start_thread)(void (*run)(void)), void (*on_wanted)(bool is_wanted));

// The background thread is to end now: the last thread of the program has ended, and the process shall not wait for ours.
void _mi_purge_stop(void);

// In the child of a fork there is no background thread any more.
void _mi_purge_after_fork(void);
