// Proves: what was free and backed and taken again in an interval is its swing, and no more than was free at times; what waited and was
// used again, and what went back and had to be backed again, is added to it; a long interval has none (SW3).
#include "arena/swing.h"

#include "../check.h"
#include "../modes/support.h"
#include "arena/place.h"
#include "arena/purge.h"
#include "arena/purge_keep.h"
#include "mimalloc.h"

enum { n = 2 * MI_CHUNK_SLICES };

static void take_and_give(void) {
  mi_run_t run = _mi_slices_alloc(n, 1, MI_REQUEST_MIXED, MI_ARENA_ANY);
  CHECK(run.region != NULL);
  _mi_slices_free(run.region, run.slice, run.n_slices, false);
}

// The swing of an interval that ends.
static size_t swing_of(size_t n_free, bool was_short) {
  _mi_swing_begin(n_free, was_short, _mi_prim_clock_ms());
  return _mi_swing_last();
}

static void check_reused(void) {
  take_and_give();
  swing_of(SIZE_MAX, true);
  take_and_give();
  CHECK_EQ(swing_of(SIZE_MAX, true), n);
  take_and_give();
  CHECK_EQ(swing_of(n / 2, true), n / 2);
  CHECK_EQ(swing_of(SIZE_MAX, true), 0);
}

static void check_waiting(void) {
  CHECK(_mi_purge_keep_waiting(7));
  _mi_purge_keep_end_wait(7, true);
  CHECK(_mi_purge_keep_waiting(5));
  _mi_purge_keep_end_wait(5, false);
  take_and_give();
  CHECK_EQ(swing_of(SIZE_MAX, true), n + 7);
  CHECK_EQ(swing_of(SIZE_MAX, true), 0);
}

static void check_mistaken(void) {
  _mi_swing_begin_giving();
  _mi_swing_note_given(_mi_purge_to(0));
  CHECK_EQ(_mi_swing_n_mistaken(), 0);
  take_and_give();
  CHECK_EQ(_mi_swing_n_mistaken(), n);
  take_and_give();
  CHECK_EQ(swing_of(SIZE_MAX, true), 2 * n);
  CHECK_EQ(_mi_swing_n_mistaken(), 0);
}

int main(void) {
  watchdog(60);
  mi_option_set(mi_option_purge_delay, -1); // no rounds but those of the test
  mi_free(mi_malloc(1));
  _mi_purge_to(0);
  check_reused();
  check_waiting();
  check_mistaken();
  take_and_give();
  CHECK_EQ(swing_of(SIZE_MAX, false), 0);
  return check_result();
}
