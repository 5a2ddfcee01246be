// The start and the exit of threads, and of the process.  Layer: heap.
//
// Nothing here is on a fast path: a thread without a theap has one of two empty ones, whose bins send it to
// _mi_thread_theap by way of the ordinary slow path.
//
// T1  A theap is made by its thread's first allocation, in constant time, and released at its exit in O(own theaps and
//     pages).
// T2  After its exit a thread has _mi_theap_dead, for good: blocks that it frees go to their pages directly, and blocks that it allocates
//     come from the late theap of the heap (late.h).  That is needed because destructors of thread-specific data run in any order, and
//     libc frees after them.
// T3  A thread that has not allocated frees to the pages directly, too: libc frees memory that belongs to a thread on that thread, past
//     all destructors, and then nobody would release a theap.  The thread gets a theap if its exit will be seen, or if it frees more often
//     than libc does.
// T4  The theap of a thread that cannot be seen to end is watched (ended.h).
#pragma once

#include "heap.h"

// The default theap of the calling thread, made if need be, and its backing theap.  NULL when the thread is past its exit,
// or out of memory.
mi_theap_t* _mi_thread_theap(void);
mi_theap_t* _mi_thread_backing(void);

// The calling thread's theap of that heap, made if need be.  NULL also if the heap is not in use.
mi_theap_t* _mi_thread_theap_of(mi_heap_t* heap);

// The backing theap of the calling thread, which frees.  NULL: it has none, and gets none (T2, T3).
mi_theap_t* _mi_thread_for_first_frees(void);

static inline mi_theap_t* _mi_thread_for_frees(void) {
  mi_theap_t* backing = _mi_theap_backing();
  return mi_likely(backing != NULL) ? backing : _mi_thread_for_first_frees();
}

// The subprocess of the calling thread.
mi_subproc_t* _mi_thread_subproc(void);

// Moves the calling thread into this subprocess.  EBUSY if it was moved out of the main one before or is past its exit, ENOENT if the
// subprocess has ended, ENOMEM.
int _mi_thread_join(mi_subproc_t* subproc);

// Releases everything that the calling thread has.  `is_exit`: this is the last such call for the thread.
void _mi_thread_release(bool is_exit);
