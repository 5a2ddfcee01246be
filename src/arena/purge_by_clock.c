// What goes back at the end of an interval.  Layer: arena.  See purge_by_clock.h.
#include "purge_by_clock.h"

#include "../support/stat.h"
#include "chunk.h"
#include "hold.h"
#include "hole.h"
#include "purge.h"
#include "shrink.h"
#include "swing.h"

#define CLOCK_HOLES 256 // chunks with holes that are looked at in a round

static mi_atomic(int64_t) clock_last_ms; // when this interval began

// CL1, CL2
static size_t clock_may_give(const mi_hold_interval_t* seen, bool has_thread, bool is_idle) {
  if (seen->is_held && has_thread) return seen->n_unheld;
  if (seen->is_held && !is_idle) return 0;
  return is_idle ? _mi_chunk_purgeable() : seen->n_low;
}

static void clock_begin(size_t swing, int64_t last, int64_t now) {
  bool was_short = (mi_load_relaxed(&clock_last_ms) - last < MI_SWING_MISTAKE_MS + _mi_purge_interval());
  _mi_swing_begin(swing, was_short, now);
}

void _mi_purge_by_clock(bool is_idle) {
  int64_t now = _mi_prim_clock_ms(), last = mi_load_relaxed(&clock_last_ms);
  _mi_hold_look(now);
  if (!is_idle && now - last < _mi_purge_interval()) return;
  // CL3: for the next one nothing was free for long.
  if (!mi_cas_strong(&clock_last_ms, &last, now, relaxed, relaxed)) return;
  bool               has_thread = _mi_purge_has_thread();
  mi_hold_interval_t seen = _mi_hold_end_interval(last, now, has_thread);
  size_t             n = clock_may_give(&seen, has_thread, is_idle);
  clock_begin(seen.swing, last, now);
  if (n > 0) {
    _mi_purge_note(_mi_purge_slices(n));
    _mi_shrink_clean();
    _mi_stat_count(&_mi_stat_live.arena_purges, 1);
  }
  _mi_hole_close_filled(CLOCK_HOLES);
}
