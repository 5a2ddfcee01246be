// Proves: a chunk of a huge-page region that has holes asks for a huge OS page again when all of it is in use, however many such chunks
// there are; one in whose slices there are holes does so after all of its slices were free at once; what is given back of a slice in use
// is zero then, or the system's to take, and the rest of it stays.
#include "../check.h"
#include "../modes/support.h"
#include "arena/hole.h"
#include "arena/purge.h"
#include "mimalloc.h"

enum { n_chunks = 3 };

static const size_t dense = MI_REGION_HUGE;

static mi_run_t take(size_t n) {
  mi_run_t run = _mi_slices_alloc(n, 1, MI_REQUEST_HUGE, dense);
  CHECK(run.region == &_mi_region_all[dense]);
  return run;
}

static void give(mi_run_t run) {
  _mi_slices_free(run.region, run.slice, run.n_slices, false);
}

static bool has_holes(mi_run_t run) {
  return run.region->chunks[run.slice / MI_CHUNK_SLICES].has_holes != 0;
}

static void check_all_are_closed(void) {
  mi_run_t chunks[n_chunks], filled[n_chunks];
  for (int i = 0; i < n_chunks; i++) chunks[i] = take(MI_CHUNK_SLICES);
  for (int i = 0; i < n_chunks; i++) _mi_slices_free(chunks[i].region, chunks[i].slice, 1, false);
  CHECK_EQ(_mi_purge_slices(SIZE_MAX), n_chunks);
  for (int i = 0; i < n_chunks; i++) CHECK(has_holes(chunks[i]));
  _mi_hole_close_filled(SIZE_MAX);
  for (int i = 0; i < n_chunks; i++) CHECK(has_holes(chunks[i]));
  for (int i = 0; i < n_chunks; i++) filled[i] = take(1);
  _mi_hole_close_filled(SIZE_MAX);
  for (int i = 0; i < n_chunks; i++) CHECK(!has_holes(chunks[i]));
  for (int i = 0; i < n_chunks; i++) {
    give(filled[i]);
    _mi_slices_free(chunks[i].region, chunks[i].slice + 1, MI_CHUNK_SLICES - 1, false);
  }
  _mi_purge_slices(SIZE_MAX);
}

static void check_inside(void) {
  mi_run_t run = take(MI_CHUNK_SLICES);
  char*    start = _mi_region_slice_start(run.region, run.slice + 3);
  size_t   page = _mi_prim_os_page_size();
  memset(start, 1, MI_SLICE_SIZE);
  CHECK(_mi_hole_give(run.region, run.slice + 3, start + page, page));
  CHECK(start[page - 1] == 1 && start[2 * page] == 1 && is_zero(start, page, 2 * page));
  CHECK(has_holes(run));
  _mi_hole_close_filled(SIZE_MAX);
  CHECK(has_holes(run)); // all of it is in use, but not all is backed
  give(run);
  _mi_hole_close_filled(SIZE_MAX);
  CHECK(has_holes(run)); // other slices are backed
  run = take(MI_CHUNK_SLICES);
  CHECK(has_holes(run)); // the same
  _mi_hole_close_filled(SIZE_MAX);
  CHECK(!has_holes(run));
  give(run);
  _mi_purge_slices(SIZE_MAX);
}

// With purge_decommits=0 the system takes it when it needs it, if it can.
static void check_discarded(void) {
  mi_run_t run = take(MI_CHUNK_SLICES);
  char*    start = _mi_region_slice_start(run.region, run.slice);
  long     decommits = mi_option_get(mi_option_purge_decommits);
  mi_option_set(mi_option_purge_decommits, 0);
  size_t purges = (size_t)mi_load_relaxed(&_mi_prim_calls.purge);
  bool   may = _mi_region_discard(start, MI_SLICE_SIZE);
  CHECK(_mi_hole_give(run.region, run.slice, start, _mi_prim_os_page_size()));
  if (may) CHECK_EQ(mi_load_relaxed(&_mi_prim_calls.purge), purges);
  mi_option_set(mi_option_purge_decommits, decommits);
  give(run);
  _mi_purge_slices(SIZE_MAX);
}

int main(void) {
  watchdog(60);
  mi_option_set(mi_option_purge_delay, -1);
  mi_free(mi_malloc(1));
  if (!_mi_region_all[dense].is_planned || !_mi_region_may_be_huge() || !_mi_region_all[dense].is_huge) {
    test_skip("holes in huge pages", "the library asks for none here");
    return skip_code;
  }
  check_all_are_closed();
  if (_mi_region_purges_to_zero(&_mi_region_all[dense])) {
    if (!MI_TRACK) check_inside(); // it writes to what is no block
    check_discarded();
  }
  return check_result();
}
