// Free memory that goes back before the process becomes larger than it ever was.  Layer: arena.  See purge_at_peak.h.
#include "purge_at_peak.h"

#include "chunk.h"
#include "give.h"
#include "place.h"
#include "purge.h"
#include "swing.h"
#include "trade.h"

static mi_trade_t peak_trade;

// TD1, TD3: gives n slices back.
static size_t peak_give(size_t n) {
  bool   is_refused = false;
  size_t n_given = _mi_give_slices(NULL, n, 0, false, &is_refused);
  if (n_given > 0 || is_refused) _mi_purge_note(n_given);
  if (n_given == 0) return 0;
  _mi_lock_acquire(&_mi_region_purge_lock);
  _mi_recall_lessen(&_mi_purge_recall, n_given);
  _mi_lock_release(&_mi_region_purge_lock);
  return n_given;
}

// Processor time of the process.  To look at it is a system call, which is made once in a millisecond at most.
static int64_t peak_cpu_ms(void) {
  static mi_atomic(int64_t) seen, seen_at;
  int64_t                   now = _mi_prim_clock_ms();
  if (mi_load_acquire(&seen_at) != now) {
    mi_store_relaxed(&seen, _mi_prim_cpu_time_ms());
    mi_store_release(&seen_at, now); // whoever sees it sees the time that was read for it, or a later one
  }
  return mi_load_relaxed(&seen);
}

bool _mi_purge_at_peak(void) {
  if (!_mi_purge_has_thread()) _mi_swing_note_used(); // frees do not see the block that they free
  size_t n_free = _mi_chunk_purgeable(), n = _mi_place_n_taken() + n_free, n_given = 0;
  if (mi_likely(!_mi_trade_is_peak(&peak_trade, n))) return false;
  if (_mi_purge_interval() > 0 && !_mi_purge_is_refused()) {
    size_t n_allowed = _mi_trade_allows(&peak_trade, n, peak_cpu_ms());
    if (n_free >= MI_TRADE_MIN && n_allowed > 0) n_given = peak_give(n_allowed);
  }
  _mi_trade_note(&peak_trade, n - mi_min(n, n_given), n_given);
  return true;
}
