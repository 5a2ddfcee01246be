// Work that nobody asks for: giving memory back while the program does something else.  Layer: heap.
//
// A round looks after idle theaps (heap/idle.h) and then purges (arena/purge.h).  Rounds are made by a thread of the library
// where there is one, and else by slow paths of the program, when the clock says so.
//
// BG1  A program with one thread keeps one thread.  The thread is started when the program has started one of its own, and from
//      there only (prim/linux_thread.c, LT2): no malloc or free ever starts it.  It ends a few rounds after the program's last other thread.
// BG2  If it cannot be started, the program's next thread is the occasion to try again; until then slow paths do its work.
// BG3  It is not the program's business: all signals blocked, no lock of libc while it runs, the scheduling of a new process, gone
//      in the child of a fork.  It only waits and changes the protection and the contents of memory: calls that a malloc makes,
//      so that a program that forbids others to all its threads keeps working.
// BG4  It sleeps without a timeout when it has nothing to do.  Slow paths wake it when there is enough memory to be worth it.
// BG5  libc ends the process when its last thread ends, on that thread, and after pthread_exit(main) that must not be ours: handlers
//      of atexit are the program's.  So the program's last thread lets ours end first.
// BG6  An observer, if there is one, runs with the lock of rounds held.  While there is one, the thread makes its rounds.
#pragma once

#include "../base/compiler.h"

// Slow paths call it by way of event.h.

void _mi_background_init(void);

// Held during a round; taken before all other locks.  Around a fork, so that no theap is being taken from.
void _mi_background_lock(void);
void _mi_background_unlock(void);

void _mi_background_after_fork(void);
// By the only thread, without the lock, which it may have already.
void _mi_background_after_lone_fork(void);

// BG6: told of each round, by whoever makes it; without a thread, also of work between rounds; and of a fork in its child.
typedef enum mi_background_event_e { MI_BACKGROUND_ROUND, MI_BACKGROUND_CHILD } mi_background_event_t;
void _mi_background_observe(void (*observer)(mi_background_event_t event)); // NULL: no longer

// Without waiting.
bool _mi_background_try_lock(void);
