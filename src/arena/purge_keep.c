// How much free memory threads may keep for their next requests.  Layer: arena.  See purge_keep.h.
#include "purge_keep.h"

#include "chunk.h"
#include "hold.h"
#include "purge.h"
#include "purge_by_amount.h"
#include "swing.h"

// May so many slices be kept, with what is free?  Whether there is a hold is asked only if it matters.
static bool keep_may(size_t n, bool is_bounded, size_t n_mistaken) {
  if (is_bounded && n <= _mi_purge_by_amount_allowance(n_mistaken)) return true;
  return n <= mi_min(MI_PURGE_MAX_SLICES, _mi_purge_retained()) && (!is_bounded || _mi_hold_is());
}

// Where it is bounded: n_besides more may be free and backed.  What is lent counts too: it comes back without asking.
static bool keep_slices(size_t n, size_t n_besides, size_t n_mistaken) {
  int64_t interval = _mi_purge_interval();
  if (interval == 0) return false;
  bool   is_bounded = (interval > 0 && !_mi_purge_has_thread());
  size_t n_kept = _mi_purge_n_kept();
  size_t n_backed = (is_bounded ? _mi_chunk_purgeable() + n_kept + n_besides : n_kept);
  if (!keep_may(n_backed + n, is_bounded, n_mistaken)) return false;
  _mi_purge_count_kept(n);
  return true;
}

bool _mi_purge_keep(size_t n) {
  return keep_slices(n, 0, _mi_swing_n_mistaken());
}

// Slices that frees of one page after the other put back stay in any case if they are few (MI_PURGE_MIN_SLICES).
bool _mi_purge_keep_waiting(size_t n) {
  size_t n_free = _mi_chunk_purgeable();
  if (!keep_slices(n, MI_PURGE_MIN_SLICES - mi_min(n_free, MI_PURGE_MIN_SLICES), 0)) return false;
  _mi_swing_wait(n);
  return true;
}

void _mi_purge_keep_end_wait(size_t n, bool is_used) {
  _mi_swing_end_wait(n, is_used);
  _mi_purge_unkeep(n);
}
