// Threads come and go: who has a theap, and what a sleeping one must give up.  Layer: heap.
#pragma once

#include "heap.h"

extern mi_lock_t _mi_registry_lock; // guards the list of theaps and their registry fields; taken before all other locks

// The default theap of the calling thread, made if need be, and its backing theap.  NULL when the thread is past its exit,
// or out of memory.
mi_theap_t* _mi_thread_theap(void);
mi_theap_t* _mi_thread_backing(void);

// Its theap of that heap.  NULL also if the heap is not in use.
mi_theap_t* _mi_thread_theap_of(mi_heap_t* heap);

// The same, NULL also if the thread has none yet; without any lock.
mi_theap_t* _mi_thread_find(mi_theap_t* backing, mi_heap_t* heap);

// The calling thread is in this subprocess from now on.  False when it is in another than the main one already, or out of
// memory.
bool _mi_thread_join(mi_subproc_t* subproc);

// Lets go of everything the calling thread has.  `is_exit`: there will be no other call of this for the thread.
void _mi_thread_release(bool is_exit);

// The same for a thread that has ended, by its backing theap (heap/ended.h, E2).
void _mi_thread_release_ended(mi_theap_t* theap);

// Empties the bins, outboxes and queues of the calling thread.
void _mi_thread_collect(void);

// Frees a block of a class, by the first descriptor of its page, on the calling thread, whose backing theap is `thread` (NULL:
// none).  It is not checked any more.
void _mi_thread_free_block(mi_theap_t* thread, mi_page_t* page, void* p);

// Calls visit for each theap of the calling thread, under the registry lock.
void _mi_thread_visit_own(void (*visit)(mi_theap_t* theap));

// Of all theaps that were ever made; `next` leads from the first to the last.  Under the registry lock.
mi_theap_t* _mi_thread_first_theap(void);
mi_theap_t* _mi_thread_last_theap(void);

// Calls visit for each of them, under that lock.
void _mi_thread_visit_theaps(void (*visit)(mi_theap_t* theap, void* arg), void* arg);

// A theap that is empty is nobody's from now on.  Under the registry lock.
void _mi_thread_set_vacant(mi_theap_t* theap);

// ---- threads past their exit ----------------------------------------------------------------------------------------

// What libc and the program still allocate then comes from one theap per heap that they share under a lock, so that it is
// bounded by what is live.
void* _mi_thread_late_malloc(mi_heap_t* heap, size_t cls, bool* is_zero);

// That lock; it comes before all others, and is held around a fork: late theaps are whole, and live on in the child.
void _mi_thread_lock_late(void);
void _mi_thread_unlock_late(void);

// ---- the end of a heap; the registry lock is held -------------------------------------------------------------------
// Each does a part of it, in constant time but for the late theap's pages; true: there is more to do.

// The heap is deleted (late lock held too): its theaps serve the main heap from now on, until their threads ...
bool _mi_thread_retire_theaps(mi_heap_t* heap);
// ... come by here and let them go.  Without the registry lock.
void _mi_thread_drop_retired(void);

// The heap is destroyed (late lock held too): its theaps have nothing any more.  Those of other threads serve the main heap
// from now on, as when it is deleted.  Nobody has the others, ...
bool _mi_thread_clear_theaps(mi_heap_t* heap);
// ... and now, without a page, they can serve another heap.
bool _mi_thread_free_theaps(mi_heap_t* heap);
