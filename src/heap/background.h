// Rounds, and the library's own thread: giving memory back while the program does something else.  Layer: heap.
//
// A round takes memory from idle theaps (heap/idle.h) and then purges (arena/purge.h).  Rounds are made by a thread of the library
// where there is one, and otherwise by slow paths of the program, when it is time.
//
// BG1  A program with one thread keeps one thread.  The library's thread is started when the program has started a thread of its own, in
//      that call only (prim/linux_thread.c, LT2): no malloc or free ever starts it.  It ends a few rounds after the program's last other
//      thread.
// BG2  If it cannot be started, the start of the program's next thread tries again, and after each further refusal the interval between
//      tries doubles, counted in threads that the program starts; until a try succeeds slow paths do its work.
// BG3  The program does not notice it: it has all signals blocked, holds no lock of libc while it runs, has the scheduling of a new
//      process, and is gone in the child of a fork.  It only waits, and changes the protection and the contents of memory.  These are
//      system calls that malloc makes too, so a program that forbids others to all its threads keeps working.
// BG4  It sleeps without a timeout when it has nothing to do.  Slow paths wake it when there is enough memory to be worth a round.
// BG5  libc ends the process when its last thread ends, and calls the handlers of atexit on that thread.  They belong to the program, so
//      after pthread_exit(main) that thread must not be the library's: the program's last thread lets the library's thread end first.
// BG6  An observer, if there is one, runs with the lock of rounds held.  While there is one, the thread does not stop making rounds.
#pragma once

#include "../base/compiler.h"

// Slow paths call it by way of event.h.

void _mi_background_init(void);

// Held during a round; taken before all other locks.  Around a fork, so that no theap is being taken from.
void _mi_background_lock(void);
void _mi_background_unlock(void);

void _mi_background_after_fork(void);
// The same for a fork by the only thread of a process, which does not take the lock, but may have held it already.
void _mi_background_after_lone_fork(void);

// BG6: the observer is called in each round, by whoever makes it; where the library has no thread, also for work between rounds; and in
// the child of a fork.
typedef enum mi_background_event_e { MI_BACKGROUND_ROUND, MI_BACKGROUND_CHILD } mi_background_event_t;
void _mi_background_observe(void (*observer)(mi_background_event_t event)); // NULL: no longer

// The same without waiting; false if somebody else has the lock.
bool _mi_background_try_lock(void);
