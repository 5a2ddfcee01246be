// Taking from a thread what it holds and does not use.  Layer: heap.
//
// V1  A theap whose thread takes no slow path from one round to the next is idle.  What it holds then goes back in two further
//     rounds, without the thread, whether that sleeps or computes:
//
//       FREE --round--> ASKED --round--> CLOSED --round--> EMPTIED          HELD while a round is at it
//        ^----------------+----------------+------------------+             back when the thread enters its theap
//
// V2  A round that sees ASKED or CLOSED set a round ago, and OUTSIDE, holds the theap alone: a thread that enters stores INSIDE
//     before it loads `revoked`.  If that load gave FREE, it was done before ASKED could be seen, a round ago, and a processor
//     does not keep a store to itself for so long: each interrupt makes it visible.  (A barrier on all threads would say the
//     same at once, by a system call that sandboxes do not know of a malloc.)
// V3  Bins have no mark, and a thread may have been stopped in the middle of taking a block from one, for any time.  So they are
//     taken in two steps.  CLOSED: `slots` becomes MI_BIN_NO_SLOTS and the list goes to `taken`, by two exchanges; what the thread
//     finds from then on is an empty bin without room, and that sends it to its slow paths.  A round later the list is
//     given back if `slots` and the length of the list say that the thread was not in the middle of anything then (H7), and if
//     it has not touched the bin since: `slots` is still MI_BIN_NO_SLOTS and the bin is empty, before and after the
//     list was counted.
//
//     The thread was, if it had changed `slots` but not yet the list (H1): then total - left is not the length.  If it goes on,
//     with a list that it has read before, each block that it takes changes `slots` for good, and each that it frees the list.
// V4  What a round cannot take stays in `taken` until the thread comes by, which knows what it did (_mi_idle_settle).
//
// test/model/bin_model.py goes through all interleavings of a thread and a round.
#pragma once

#include "theap.h"

// `slots` of a closed bin.  A malloc or two do not make up for it.
#define MI_BIN_NO_SLOTS (INT32_MIN / 2)

// Held while a theap is looked at; taken before all other locks but that of rounds.  Those who clear or read theaps of others
// take it.
extern mi_lock_t _mi_idle_lock;

// False: the bin was closed while its thread was in the middle of taking or freeing a block, and only that thread knows what it
// did (V4).  Under that lock.
mi_may_race bool _mi_idle_can_tell(const mi_theap_t* theap, size_t cls);

// The blocks that were taken from a bin and not yet given back, for those who look for all free blocks; under that lock.
// NULL also when nobody can tell.
mi_may_race const mi_block_t* _mi_idle_taken(const mi_theap_t* theap, size_t cls);

// Looks at all theaps.  True if there will be more to do; *is_idle: no thread has entered its theap since the last round.
bool _mi_idle_round(bool* is_idle);
// Is there anything for a round to take, or to find out?
bool _mi_idle_has_work(void);

// For the thread of a theap, between enter and leave, when there was a round since it did so last: what it holds of classes
// that it has not used since the round before goes back, in portions, and so do pages of the others that became empty by what
// other threads have freed.
mi_cold void _mi_idle_trim(mi_theap_t* theap);

// Between enter and leave, of a theap whose bins were closed (V4).
mi_cold void _mi_idle_settle(mi_theap_t* theap);
