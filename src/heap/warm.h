// Theaps of threads that have ended, with all that they hold.  Layer: heap.
//
//   live --its thread ends--> warm --the next thread starts--> live
//                              |---- a round finds it unused ----> vacant
//
// A program that starts a thread for each of its tasks would fill the bins of each and give all back at its end: as much work as that of
// the task, if the task is short.  So such a thread leaves its theap to the next.
//
// WA1  A warm theap is live, of the main heap, and of no thread.  To rounds it is one whose thread sleeps (idle.h): what it holds goes
//      back within three rounds, and then it becomes vacant.  So theaps are left where the library's thread makes rounds.
// WA2  It is the only theap that its thread had, and has nothing of an outbox, of gap pages or of the sampler.
// WA3  A warm theap has at most MI_WARM_MORE slices in pages beyond one for each class, and all together have at most MI_WARM_SLICES:
//      a thread that has more did more work than it takes to let go of it.  And a thread that gets the theap of another frees the
//      blocks of that into its bins, which keeps old pages from becoming empty (docs/decisions/018).
// WA4  The theap that was left last is the first to be taken.  All of it is under the registry lock.
#pragma once

#include "heap.h"

#define MI_WARM_SLICES 128 // 8 MiB
#define MI_WARM_MORE   8   // short tasks have hardly any; 20 gave the same times

// The calling thread, which ends, leaves its backing theap.  False: it is to be released.
bool _mi_warm_leave(mi_theap_t* backing);

// One for a thread that starts; NULL if none is left.  Under the registry lock.
mi_theap_t* _mi_warm_take(void);

// A round has emptied the theap: it becomes vacant if it is warm.
void _mi_warm_end(mi_theap_t* theap);

// The same for all of them, whatever they hold.
void _mi_warm_end_all(void);

// The same, and _mi_attach_collect.
void _mi_warm_collect(void);

// In the child of a fork they are orphans.
void _mi_warm_forget(void);
