// Threads come and go: who has a theap, and what a sleeping one must give up.  Layer: heap.
#pragma once

#include "theap.h"

extern mi_lock_t _mi_registry_lock; // guards the list of theaps and their registry fields; taken before all other locks

// The theap of the calling thread, made if need be.  NULL when the thread is past its exit, or out of memory.
mi_theap_t* _mi_thread_theap(void);

// The same for threads past their exit: what libc and the program still allocate then comes from one theap that they
// share under a lock, so that it is bounded by what is live.
void* _mi_thread_late_malloc(size_t cls, bool* is_zero);

// Around a fork: the late theap is whole, and lives on in the child.  Its lock comes before all others.
void _mi_thread_late_lock(void);
void _mi_thread_late_unlock(void);
bool _mi_thread_is_late(const mi_theap_t* theap);

// Lets go of everything the calling thread has.  `is_exit`: there will be no other call of this for the thread.
void _mi_thread_release(bool is_exit);

// Calls visit for each theap that was ever made, under the registry lock.
void _mi_thread_visit_theaps(void (*visit)(mi_theap_t* theap, void* arg), void* arg);
