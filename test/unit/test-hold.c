// Proves: where the library has no thread, what a program needs again at once begins a hold, if it is much, and there is one then until it
// is ended, when what it held goes back (HD4).  Before the first round a program counts as busy, so nothing depends on the time here.
#include "arena/hold.h"

#include "../check.h"
#include "../modes/support.h"
#include "arena/purge.h"
#include "mimalloc.h"

enum { n_early = (12 * MiB) / MI_SLICE_SIZE, n = 2 * n_early };

static void take_and_give(void) {
  mi_run_t run = _mi_slices_alloc(n, 1, MI_REQUEST_MIXED, MI_ARENA_ANY);
  CHECK(run.region != NULL);
  _mi_slices_free(run.region, run.slice, run.n_slices, false);
}

int main(void) {
  watchdog(60);
  mi_option_set(mi_option_purge_delay, -1); // no rounds but those of the test
  mi_free(mi_malloc(1));
  take_and_give();
  _mi_purge_to(0);
  take_and_give();
  CHECK(!_mi_hold_is());
  CHECK(!_mi_hold_begin(n_early - 1) && !_mi_hold_is());
  double start = now_seconds();
  CHECK(_mi_hold_begin(n_early));
  CHECK(_mi_hold_is() || now_seconds() - start > 1);
  CHECK_EQ(_mi_purge_n_backed(), n);
  _mi_hold_end();
  CHECK(!_mi_hold_is());
  CHECK(_mi_purge_n_backed() == 0 || now_seconds() - start > 1);
  return check_result();
}
