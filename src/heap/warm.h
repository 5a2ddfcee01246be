// Theaps of threads that have ended, with all that they hold.  Layer: heap.
//
//   live --its thread ends--> warm --the next thread starts--> live
//                              |---- a round finds it unused ----> vacant
//
// A program that starts a thread for each of its tasks would fill the bins of each thread and empty them at its end.  If the task is short,
// that is as much work as the task itself.  So such a thread leaves its theap to the next thread.
//
// WA1  A warm theap is live, of the main heap, and of no thread.  For rounds it is the theap of a thread that sleeps (idle.h): its memory
//      goes back within three rounds, and then it becomes vacant.  So theaps are left warm only where the library's thread makes rounds.
// WA2  It is the only theap that its thread had, its outbox is empty, and it has neither gap pages nor a sampler.
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
