// Waiting for a round that has taken a theap.  Layer: heap.
#include "presence.h"

#include "bin.h"

static void presence_await(mi_theap_t* theap, uint32_t revoked) {
  _mi_presence_leave(theap);
  bool is_held = (revoked == MI_THEAP_AWAITED);
  if (!is_held) is_held = mi_cas_strong(&theap->revoked, &revoked, (uint32_t)MI_THEAP_AWAITED, relaxed, relaxed);
  if (is_held) _mi_prim_wait(&theap->revoked, MI_THEAP_AWAITED, 10);
}

mi_cold void _mi_presence_wait(mi_theap_t* theap) {
  for (;;) {
    // Before the theap is made FREE: a round that asks for it from then on finds INSIDE.
    mi_store_relaxed(&theap->presence, (uint32_t)MI_THEAP_INSIDE);
    mi_fence_seq_cst();
    uint32_t revoked = mi_load_acquire(&theap->revoked);
    if (revoked == MI_THEAP_FREE) break;
    if (_mi_prim_is_ending()) mi_store_relaxed(&theap->revoked, (uint32_t)MI_THEAP_FREE); // no round is left
    else if (revoked == MI_THEAP_TAKEN || revoked == MI_THEAP_AWAITED) presence_await(theap, revoked);
    else if (mi_cas_strong(&theap->revoked, &revoked, (uint32_t)MI_THEAP_FREE, acq_rel, relaxed)) break;
  }
  if (_mi_bin_are_closed(theap)) _mi_bin_settle_all(theap);
}

void _mi_presence_let_go(mi_theap_t* theap, mi_revoked_t next) {
  if (mi_exchange_acq_rel(&theap->revoked, (uint32_t)next) == MI_THEAP_AWAITED) _mi_prim_wake(&theap->revoked, true);
}
