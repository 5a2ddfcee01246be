// Whether a thread is at work in its theap, and who else may be.  Layer: heap.
//
//   FREE --round--> ASKED --round--> CLOSED --round--> EMPTIED          TAKEN while a round is at the theap
//    ^----------------+----------------+------------------+             back when the thread enters its theap
//
// PR1  A theap's own thread marks the theap INSIDE from enter to leave, with plain stores.  Whoever revokes the theap pays by waiting.
// PR2  If a round sees that ASKED or CLOSED was set a round ago, and that the theap is OUTSIDE, it may take the theap for itself.  The reason:
//      a thread that enters stores INSIDE before it loads `revoked`.  If that load gave FREE, it was done before ASKED could be seen,
//      that is, a round ago (a millisecond at least), and a processor does not keep a store to itself for that long: each interrupt makes
//      it visible.  (A barrier on all threads would ensure the same at once, by a system call that sandboxes do not expect from malloc.)
#pragma once

#include "theap.h"

// The compiler fence keeps the store before the load in the program; PR2 says why that is enough for the processor.
static mi_always_inline bool _mi_presence_try_enter(mi_theap_t* theap) {
  mi_store_relaxed(&theap->presence, (uint32_t)MI_THEAP_INSIDE);
  if (MI_TSAN) mi_fence_seq_cst();
  else mi_compiler_fence();
  // acquire: what a round did to the theap's pages happened before
  return mi_likely(mi_load_acquire(&theap->revoked) == MI_THEAP_FREE);
}

static mi_always_inline void _mi_presence_leave(mi_theap_t* theap) {
  mi_store_release(&theap->presence, (uint32_t)MI_THEAP_OUTSIDE); // release: a round sees what the thread did
}

// After a failed try: waits for a round that has taken the theap, enters, and opens bins that a round has closed (bin.h).
mi_cold void _mi_presence_wait(mi_theap_t* theap);

static inline void _mi_presence_enter(mi_theap_t* theap) {
  if (!_mi_presence_try_enter(theap)) _mi_presence_wait(theap);
}

// For a round: takes a revoked theap, which is TAKEN then.  False if its thread has come by before.
static inline bool _mi_presence_take(mi_theap_t* theap, uint32_t revoked) {
  return mi_cas_strong(&theap->revoked, &revoked, (uint32_t)MI_THEAP_TAKEN, acq_rel, relaxed);
}

// Ends that: the theap is in state `next`, and a thread that waits for it goes on.
void _mi_presence_let_go(mi_theap_t* theap, mi_revoked_t next);
