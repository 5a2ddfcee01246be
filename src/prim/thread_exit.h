// The exit of threads, on systems with POSIX threads.  Layer: prim.
//
// K1  The exit of a thread is seen by a destructor of thread-specific data.  Destructors of the program's own data run in the
//     same passes, in any order, and free; so ours lets all passes but the last go by.  (In that one ThreadSanitizer takes the
//     thread down, and must not be called any more; so under it the pass before counts as the last.)
// K2  Where the code of the library goes, threads that are in the destructor leave it before: they are waited for, but not for ever.
#pragma once

#include "prim.h"

// Is there a key for that?  Systems have a few hundred, and other libraries may have taken all of them.
bool _mi_thread_exit_has_key(void);
void _mi_thread_exit_make_key(void);

// As _mi_prim_thread_exit_arm, also for a thread that is watched: one that was counted by _mi_thread_exit_count.
int _mi_thread_exit_arm(bool is_watched);

// Is the caller the thread with which the process, or the child of a fork, began?
bool _mi_thread_exit_is_main(void);

// One more thread is watched (_mi_prim_thread_watched), or one that has been counted is not watched after all.
void _mi_thread_exit_count(void);
void _mi_thread_exit_uncount(void);

// Is called by each thread that is watched, and by the main thread, when it ends.
void _mi_thread_exit_on_ended(void (*ended)(bool is_last));

// In the child of a fork: the thread that forked is the main thread from then on, and no other is watched.
void _mi_thread_exit_after_fork(void);
