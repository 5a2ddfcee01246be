// Proves: slices are handed out once, aligned, zero when it is said, and keep what is written to them; runs come from the
// fullest chunk that has them, and chunks become wholly free again; what is free and backed is counted exactly; purging
// gives it back and nothing else.  All against a map of our own of each slice.
#include "mimalloc.h"
#include "arena/arena.h"
#include "slice_model.h"

// ---- checks ---------------------------------------------------------------------------------------------------------

// Three chunks that are full but for one slice, four, two: they are filled up in the order of that, fullest first.
static void check_fullest_first(void) {
  static const size_t holes[] = {1, 4, 2};
  static const size_t order[] = {0, 2, 1};
  size_t              slices[4 * MI_CHUNK_SLICES], n = 0;
  size_t              chunks[COUNT_OF(holes)] = {0};
  while (map_fullest(MI_CHUNK_SMALL, 1, MI_CHUNK_BY_FREE) != 0)
    slices[n++] = take(1, 1, MI_CHUNK_SMALL); // what main began with
  size_t first = n;
  for (size_t i = 0; i < COUNT_OF(holes) * MI_CHUNK_SLICES; i++) slices[n++] = take(1, 1, MI_CHUNK_SMALL);
  for (size_t i = 0; i < COUNT_OF(holes); i++) {
    chunks[i] = slices[first + i * MI_CHUNK_SLICES] / MI_CHUNK_SLICES;
    for (size_t k = 0; k < holes[i]; k++) give(slices[first + i * MI_CHUNK_SLICES + 3 * k], 1, false);
  }
  for (size_t i = 0; i < COUNT_OF(order); i++) {
    for (size_t k = 0; k < holes[order[i]]; k++) {
      CHECK_EQ(take(1, 1, MI_CHUNK_SMALL) / MI_CHUNK_SLICES, chunks[order[i]]);
    }
  }
  check_all();
  // Wholly free again, each is there for any kind.
  for (size_t i = 0; i < n; i++) give(slices[i], 1, false);
  check_all();
  size_t slice = take(COUNT_OF(holes) * MI_CHUNK_SLICES, 1, MI_CHUNK_MIXED);
  CHECK(slice / MI_CHUNK_SLICES <= chunks[0]);
  give(slice, COUNT_OF(holes) * MI_CHUNK_SLICES, false);
  purge(SIZE_MAX);
}

static void check_low(void) {
  size_t slice = take(20, 1, MI_CHUNK_MIXED);
  give(slice, 20, false);
  size_t now = map_purgeable();
  size_t swing = 1;
  _mi_chunk_purgeable_low(&swing);
  CHECK_EQ(_mi_chunk_purgeable_low(&swing), now);
  CHECK_EQ(swing, 0);
  slice = take(15, 1, MI_CHUNK_MIXED);
  size_t low = map_purgeable();
  give(slice, 15, false);
  size_t high = map_purgeable();
  CHECK_EQ(_mi_chunk_purgeable_low(&swing), low);
  CHECK_EQ(swing, high - low);
  CHECK_EQ(_mi_chunk_purgeable_low(&swing), map_purgeable());
  CHECK_EQ(swing, 0);
}

// Whole chunks and holes in chunks that are in use: the memory is the system's again, all else is as it was.
static void check_purge(void) {
  enum { n_run = 24 * MI_CHUNK_SLICES, n_holes = 64 };
  size_t holes[n_holes];
  size_t run = take(n_run, 1, MI_CHUNK_MIXED);
  for (size_t i = 0; i < n_holes; i++) {
    holes[i] = take(1, 1, MI_CHUNK_SMALL);
    mi_track_writable(_mi_region_slice_start(region, holes[i]), MI_SLICE_SIZE);
    memset(_mi_region_slice_start(region, holes[i]), 1, MI_SLICE_SIZE);
    fill(holes[i], 1, i);
  }
  mi_track_writable(_mi_region_slice_start(region, run), n_run * MI_SLICE_SIZE);
  memset(_mi_region_slice_start(region, run), 1, n_run * MI_SLICE_SIZE);
  give(run, n_run, false);
  for (size_t i = 1; i < n_holes; i += 2) give(holes[i], 1, false);
  size_t before = rss_now();
  purge(SIZE_MAX);
  size_t after = rss_now();
  CHECK_EQ(_mi_chunk_purgeable(), 0);
  CHECK(rss_within("resident after purging 50 MiB", after, minus(before, 48 * MiB)));
  for (size_t i = 0; i < n_holes; i += 2) check_filled(holes[i], 1, i);
  for (size_t i = 0; i < n_holes; i += 2) give(holes[i], 1, false);
  purge(SIZE_MAX); // what is backed would come first
  run = take(n_run, 1, MI_CHUNK_MIXED);
  CHECK(!map_any(map_dirty, run + 2 * MI_CHUNK_SLICES, n_run - 2 * MI_CHUNK_SLICES));
  CHECK(is_zero(_mi_region_slice_start(region, run + 4 * MI_CHUNK_SLICES), 0,
                (n_run - 4 * MI_CHUNK_SLICES) * MI_SLICE_SIZE));
  give(run, n_run, true);
  purge(SIZE_MAX);
  check_all();
}

// As much as is asked for, and less than a chunk more: one chunk by itself, and then some of six side by side.
static void check_purge_amount(void) {
  enum { n_run = 8 * MI_CHUNK_SLICES, n_asked = 2 * MI_CHUNK_SLICES + MI_CHUNK_SLICES / 2 };
  purge(SIZE_MAX);
  size_t run = take(n_run, 1, MI_CHUNK_MIXED);
  give(run, n_run - 2 * MI_CHUNK_SLICES, false);
  give(run + n_run - MI_CHUNK_SLICES, MI_CHUNK_SLICES, false);
  size_t before = map_purgeable();
  purge(n_asked);
  size_t n_given = before - map_purgeable();
  CHECK_FOR(n_given >= n_asked && n_given < n_asked + MI_CHUNK_SLICES, "%zu slices", n_given);
  give(run + n_run - 2 * MI_CHUNK_SLICES, MI_CHUNK_SLICES, false);
  purge(SIZE_MAX);
  check_all();
}

// ---- region 1 -------------------------------------------------------------------------------------------------------

static mi_region_t* const dense = &_mi_region_all[MI_REGION_HUGE];

static mi_run_t take_huge(void) {
  return _mi_slices_alloc(1, 1, MI_REQUEST_HUGE, MI_ARENA_ANY);
}

static void free_run(mi_run_t run) {
  _mi_slices_free(run.region, run.slice, run.n_slices, false);
}

// Pages that are going to be filled come from region 1; but before a chunk is broken there, partly used ones of small
// pages are filled up, and wholly free ones that are backed in region 0 are used again.
static void check_huge_policy(void) {
  enum { n_taken = 3 * MI_CHUNK_SLICES };
  static mi_run_t taken[n_taken];
  CHECK(region->n_used >= 4);
  if (!_mi_region_may_be_huge()) {
    test_skip("huge-page chunks", "huge pages of this system are larger than a chunk");
    return;
  }
  _mi_purge_slices(SIZE_MAX);
  mi_run_t small = _mi_slices_alloc(1, 1, MI_REQUEST_SMALL, MI_ARENA_ANY);
  mi_run_t run = take_huge();
  CHECK(run.region == region && run.slice / MI_CHUNK_SLICES == small.slice / MI_CHUNK_SLICES);
  free_run(run);
  // No chunk of small pages has room: region 1.
  size_t n = 0;
  while (region->nonempty[MI_CHUNK_BY_FREE][MI_CHUNK_SMALL] != 0 && n < n_taken)
    taken[n++] = _mi_slices_alloc(1, 1, MI_REQUEST_SMALL, MI_ARENA_ANY);
  CHECK(region->nonempty[MI_CHUNK_BY_FREE][MI_CHUNK_SMALL] == 0);
  run = take_huge();
  CHECK(run.region == dense);
  CHECK_EQ(dense->chunks[run.slice / MI_CHUNK_SLICES].kind, MI_CHUNK_HUGE);
  // What is left of that chunk comes next, whatever region 0 has.
  mi_run_t next = take_huge();
  CHECK(next.region == dense && next.slice / MI_CHUNK_SLICES == run.slice / MI_CHUNK_SLICES);
  free_run(next);
  free_run(run);
  // What pages in huge-page chunks gave back is for all.
  mi_run_t other = _mi_slices_alloc(3, 1, MI_REQUEST_MEDIUM, MI_ARENA_ANY);
  CHECK(other.region == region); // 2 slices are backed there, not 3
  free_run(other);
  // With a wholly free chunk in region 0 that is backed, no new one is opened.
  mi_run_t whole = _mi_slices_alloc(MI_CHUNK_SLICES, 1, MI_REQUEST_MIXED, MI_ARENA_ANY);
  _mi_purge_slices(SIZE_MAX);
  CHECK(whole.region == region);
  free_run(whole);
  run = take_huge();
  CHECK(run.region == region && run.slice / MI_CHUNK_SLICES == whole.slice / MI_CHUNK_SLICES);
  free_run(run);
  for (size_t i = 0; i < n; i++) free_run(taken[i]);
  free_run(small);
  // A block that is going to be dense lies there too, however much is in use; others do not.
  mi_run_t large = _mi_slices_alloc(5 * MI_CHUNK_SLICES, 1, MI_REQUEST_MIXED, MI_ARENA_ANY);
  CHECK(large.region == region && region->n_used > 4);
  mi_run_t written = _mi_slices_alloc(2 * MI_CHUNK_SLICES, 1, MI_REQUEST_DENSE, MI_ARENA_ANY);
  CHECK(written.region == dense);
  free_run(written);
  free_run(large);
  mi_option_set(mi_option_allow_thp, 0);
  CHECK(take_huge().region == region);
  mi_option_set(mi_option_allow_thp, 1);
  _mi_purge_slices(SIZE_MAX);
}

static mi_run_t take_medium(mi_request_t request) {
  return _mi_slices_alloc(3, 1, request, MI_ARENA_ANY);
}

static size_t chunk_of(mi_run_t run) {
  return run.slice / MI_CHUNK_SLICES;
}

// The same for pages of several slices, in chunks of their own.
static void check_medium_policy(void) {
  enum { n_taken = MI_CHUNK_SLICES / 3 };
  mi_run_t taken[n_taken];
  if (!_mi_region_may_be_huge()) return;
  _mi_purge_slices(SIZE_MAX);
  for (size_t i = 0; i < n_taken; i++) {
    taken[i] = take_medium(i == 0 ? MI_REQUEST_MEDIUM : MI_REQUEST_MEDIUM_HUGE);
    CHECK(taken[i].region == region && chunk_of(taken[i]) == chunk_of(taken[0]));
  }
  mi_run_t run = take_medium(MI_REQUEST_MEDIUM_HUGE), next = take_medium(MI_REQUEST_MEDIUM_HUGE), one = take_huge();
  CHECK(run.region == dense && next.region == dense && chunk_of(next) == chunk_of(run));
  CHECK_EQ(dense->chunks[chunk_of(run)].kind, MI_CHUNK_MEDIUM);
  CHECK(one.region != dense || chunk_of(one) != chunk_of(run));
  free_run(next);
  mi_run_t other = take_medium(MI_REQUEST_MEDIUM);
  CHECK(other.region == dense && other.slice == next.slice); // it is backed
  free_run(other);
  free_run(one);
  free_run(run);
  _mi_purge_slices(SIZE_MAX);
  mi_option_set(mi_option_allow_thp, 0);
  run = take_medium(MI_REQUEST_MEDIUM_HUGE);
  CHECK(run.region == region);
  CHECK_EQ(region->chunks[chunk_of(run)].kind, MI_CHUNK_MEDIUM);
  free_run(run);
  mi_option_set(mi_option_allow_thp, 1);
  for (size_t i = 0; i < n_taken; i++) free_run(taken[i]);
  _mi_purge_slices(SIZE_MAX);
}

// Where a large block lies if the first n chunks of the huge-page region are backed and free.
static const mi_region_t* request_region(mi_request_t request, size_t n, size_t n_slices) {
  if (n > 0) {
    mi_run_t backed =
        _mi_slices_alloc(n * MI_CHUNK_SLICES, 1, n == 1 ? MI_REQUEST_HUGE : MI_REQUEST_DENSE, MI_ARENA_ANY);
    CHECK(backed.region == dense);
    free_run(backed);
  }
  mi_run_t run = _mi_slices_alloc(n_slices, 1, request, MI_ARENA_ANY);
  free_run(run);
  _mi_purge_slices(SIZE_MAX);
  return run.region;
}

// The same if it is not known to be dense.
static const mi_region_t* large_region(size_t n, size_t n_slices) {
  return request_region(MI_REQUEST_MIXED, n, n_slices);
}

// In the huge-page region if more than half of it is backed there, less what its last huge page would back behind it.
static void check_large_policy(void) {
  enum { n_taken = 3 * MI_CHUNK_SLICES };
  static mi_run_t taken[n_taken];
  size_t          n = 0;
  if (!_mi_region_may_be_huge()) return;
  // What partly used chunks of the other region have comes first: they have nothing.
  while (region->nonempty[MI_CHUNK_BY_FREE][MI_CHUNK_MIXED] != 0 && n < n_taken)
    taken[n++] = _mi_slices_alloc(1, 1, MI_REQUEST_MIXED, MI_ARENA_ANY);
  free_run(_mi_slices_alloc(6 * MI_CHUNK_SLICES, 1, MI_REQUEST_DENSE, MI_ARENA_ANY)); // so many chunks are there
  _mi_purge_slices(SIZE_MAX);
  CHECK(large_region(2, 2 * MI_CHUNK_SLICES) == dense);
  CHECK(large_region(2, 3 * MI_CHUNK_SLICES) == dense);
  CHECK(large_region(2, 2 * MI_CHUNK_SLICES + 8) == dense); // 64 - 24 > 36
  CHECK(large_region(2, 2 * MI_CHUNK_SLICES + 2) == dense); // 64 - 30 > 33
  CHECK(large_region(2, 5 * MI_CHUNK_SLICES) == region);
  CHECK(large_region(1, MI_CHUNK_SLICES + 2) == region);  // 32 - 30
  CHECK(large_region(1, MI_CHUNK_SLICES + 22) == region); // 32 - 10 < 27
  CHECK(large_region(1, MI_CHUNK_SLICES + 28) == region); // 32 - 4 < 30
  // What fits into one takes it if it is there, but for what has grown, or will not be written.
  CHECK(large_region(0, 20) == region);
  CHECK(large_region(1, 20) == dense);
  CHECK(large_region(1, MI_CHUNK_SLICES) == dense);
  CHECK(request_region(MI_REQUEST_GROWN, 1, 20) == region);
  CHECK(request_region(MI_REQUEST_THIN, 1, 20) == region);
  for (size_t i = 0; i < n; i++) free_run(taken[i]);
}

static mi_run_t take_dense(size_t n, mi_request_t request) {
  return _mi_slices_alloc(n, 1, request, MI_REGION_HUGE);
}

// What is no large block leaves 15 chunks behind one that ends within a chunk; all that it takes is free, also if it needs two.
static void check_apart(void) {
  if (!_mi_region_may_be_huge()) return;
  mi_run_t large = take_dense(MI_CHUNK_SLICES + 2, MI_REQUEST_MIXED);
  mi_run_t behind = take_dense(MI_CHUNK_SLICES - 2 + 16 * MI_CHUNK_SLICES, MI_REQUEST_MIXED);
  CHECK_EQ(behind.slice, large.slice + large.n_slices);
  mi_run_t end = take_dense(MI_CHUNK_SLICES, MI_REQUEST_META);
  CHECK_EQ(end.slice, behind.slice + behind.n_slices);
  free_run(behind);
  mi_run_t one = take_dense(1, MI_REQUEST_META);
  CHECK_EQ(one.slice, end.slice - MI_CHUNK_SLICES);
  free_run(one);
  mi_run_t two = take_dense(MI_CHUNK_SLICES + 1, MI_REQUEST_META);
  CHECK_EQ(two.slice, end.slice + MI_CHUNK_SLICES);
  free_run(two);
  free_run(end);
  free_run(large);
  _mi_purge_slices(SIZE_MAX);
}

// Its buckets, with chunks of every kind in them.
static void check_huge(rng_t* r) {
  region = dense;
  arena = MI_REGION_HUGE;
  map_begin();
  check_all();
  check_random(r, 6000 * test_scale());
  purge(SIZE_MAX);
  check_all();
}

// Where pointers have 32 bits region 0 is small: an arena stands for it.
static void begin_arena(void) {
  CHECK_EQ(_mi_arena_reserve(max_chunks * MI_CHUNK_SIZE, false, false, true, &arena), 0);
  region = &_mi_region_all[arena];
  is_bounded = true;
}

int main(int argc, char** argv) {
  watchdog(120);
  rng_t r = rng_make(test_seed(argc, argv));
  mi_option_set(mi_option_purge_delay, -1); // nobody but we
  CHECK(mi_malloc(1) != NULL);
  if (sizeof(void*) == 4) begin_arena();
  map_begin();
  check_all();
  check_fullest_first();
  check_low();
  check_random(&r, 6000 * test_scale());
  check_purge();
  check_purge_amount();
  if (dense->base == 0) {
    test_skip("huge-page chunks", "there are none on this system");
    return check_result();
  }
  check_huge_policy();
  check_medium_policy();
  check_large_policy();
  check_apart();
  check_huge(&r);
  return check_result();
}
