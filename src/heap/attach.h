// Which thread has which theap.  Layer: heap.
//
// AT1  A thread has a backing theap, of the main heap, and one theap for each other heap that it has allocated from: in its
//      directory and in the list that begins with its backing theap.  A cache holds those that it used last.
// AT2  When a heap ends, its theaps of running threads are retired: they serve the main heap, and stay in their thread's list
//      `retired` until the thread comes by and releases them.
// AT3  Attaching and detaching take constant time, under the registry lock.
#pragma once

#include "heap.h"

// A theap for the heap, live, of the thread with this backing theap (NULL: it is to be a backing theap).  NULL when out of
// memory.  Caller holds the registry lock.
mi_theap_t* _mi_attach_new(mi_heap_t* heap, mi_theap_t* backing);

// Nobody has the theap, which is empty, from now on.  Caller holds the registry lock.
void _mi_attach_end(mi_theap_t* theap);

// The thread's theap of a heap, NULL if it has none; without any lock.
mi_theap_t* _mi_attach_find(mi_theap_t* backing, mi_heap_t* heap);

// The same, made if need be; NULL when out of memory or if the heap is not in use.  Caller holds the registry lock.
mi_theap_t* _mi_attach(mi_theap_t* backing, mi_heap_t* heap);

// The thread remembers its theap of the heap with that id.
void _mi_attach_remember(mi_theap_t* backing, uint64_t id, mi_theap_t* theap);

// ---- letting go -------------------------------------------------------------------------------------------------------

// Releases everything that the theap holds; for its own thread, or when that thread has ended.
void _mi_attach_release(mi_theap_t* theap);

// The same for all theaps of the calling thread.
void _mi_attach_collect(void);

// Releases and ends all theaps of the thread with this backing theap, which ends.
void _mi_attach_end_thread(mi_theap_t* backing);

// The steps of that: all theaps but the backing theap; the fields of the backing theap that describe its thread, under the registry lock;
// and counting one thread less.
void _mi_attach_end_others(mi_theap_t* backing);
void _mi_attach_detach(mi_theap_t* backing);
void _mi_attach_count_ended(void);

// The calling thread lets go of theaps that were retired.
void _mi_attach_drop_retired(void);

// ---- when a heap ends, or in the child of a fork; caller holds the registry lock -----------------------------------------

// The theap's heap is deleted: AT2.
void _mi_attach_retire(mi_theap_t* theap);

// The theap's heap is destroyed, so the theap has nothing any more.  A theap of another thread may be that thread's default theap; then
// only the thread itself can release it.
void _mi_attach_clear(mi_theap_t* theap);

// An orphan of a fork, whose pages are taken care of, becomes an empty theap that nobody has.
void _mi_attach_forget(mi_theap_t* theap);
