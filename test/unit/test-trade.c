// Proves: by a clock of its own, that what may go back in trade is bounded by the growth and by the time (TD1, TD2); and that a process
// whose requests are of another kind than what it has freed does not become larger by all of them, whether it asks for slices, for
// pages, or for large blocks, nor holds more because of that (TD3).
#include <errno.h>
#include "../check.h"
#include "../modes/support.h"
#include "arena/place.h"
#include "arena/purge.h"
#include "arena/purge_at_peak.h"
#include "arena/trade.h"
#include "heap/heap.h"
#include "mimalloc.h"

enum { mib = MI_TRADE_MIN, n_chunks = 16 };

// ---- how much ---------------------------------------------------------------------------------------------------------------

static void check_bounds(void) {
  mi_trade_t trade = {0, 0};
  int64_t    now = 5000000;
  CHECK(_mi_trade_is_peak(&trade, 1) && !_mi_trade_is_peak(&trade, 0));
  CHECK_EQ(_mi_trade_allows(&trade, 100 * mib, now), 0); // no time has passed since it was asked first
  _mi_trade_note(&trade, 100 * mib, 0);
  CHECK(!_mi_trade_is_peak(&trade, 100 * mib) && _mi_trade_is_peak(&trade, 100 * mib + 1));

  CHECK_EQ(_mi_trade_allows(&trade, 101 * mib, now + MI_TRADE_MS_MIB - 1), 0);
  now += 3 * MI_TRADE_MS_MIB;
  CHECK_EQ(_mi_trade_allows(&trade, 100 * mib + 1, now), mib);         // a MiB at least
  CHECK_EQ(_mi_trade_allows(&trade, 102 * mib + 1, now), 2 * mib + 1); // what it grows by
  CHECK_EQ(_mi_trade_allows(&trade, 110 * mib, now), 3 * mib);         // what it has time for
  _mi_trade_note(&trade, 100 * mib + 1, 2 * mib);
  CHECK(!_mi_trade_is_peak(&trade, 100 * mib + 1));
  CHECK_EQ(_mi_trade_allows(&trade, 110 * mib, now), mib);

  now += 100 * MI_TRADE_MS_SAVED; // no more than a second is saved
  CHECK_EQ(_mi_trade_allows(&trade, 1000 * mib, now), MI_TRADE_MS_SAVED / MI_TRADE_MS_MIB * mib);
  now -= 200 * MI_TRADE_MS_SAVED; // a clock that goes back
  CHECK_EQ(_mi_trade_allows(&trade, 1000 * mib, now), 0);
}

// However it asks, no more goes back than a MiB in ten milliseconds.
static void check_rate(uint64_t seed) {
  mi_trade_t trade = {0, 0};
  rng_t      r = rng_make(seed);
  int64_t    start = 1000, now = start;
  size_t     n = 0, n_given = 0;
  for (int i = 0; i < 100000; i++) {
    now += (int64_t)rng_below(&r, 4);
    n += rng_below(&r, 64);
    size_t n_allowed = _mi_trade_allows(&trade, n, now), n_now = n_allowed == 0 ? 0 : rng_below(&r, n_allowed + 1);
    n -= mi_min(n, n_now);
    n_given += n_now;
    _mi_trade_note(&trade, n, n_now);
  }
  CHECK_FOR(n_given * MI_TRADE_MS_MIB <= (size_t)(now - start) * mib + 100000 * (size_t)MI_TRADE_MS_MIB,
            "%zu in %lld ms", n_given, (long long)(now - start));
  CHECK_FOR(n_given > (size_t)(now - start) * mib / MI_TRADE_MS_MIB / 4, "%zu in %lld ms", n_given,
            (long long)(now - start));
}

// ---- that it does ---------------------------------------------------------------------------------------------------------

static mi_run_t runs[4 * n_chunks];
static size_t   n_before, n_given_before; // slices that were there when it began, and calls that give some back

static size_t n_there(void) {
  return _mi_place_n_taken() + _mi_chunk_purgeable();
}

static size_t n_calls(void) {
  return (size_t)mi_load_relaxed(&_mi_prim_calls.purge);
}

// Time that is slept through is not to be spent.
static void work_ms(int64_t ms) {
  sleep_ms(2); // the clock of the processor is looked at once in a millisecond
  for (int64_t end = _mi_prim_cpu_time_ms() + ms; _mi_prim_cpu_time_ms() < end;) {
  }
  sleep_ms(2);
}

// Three of four runs of half a MiB are free and backed, in chunks where no page may lie.
static void make_holes(void) {
  for (size_t i = 0; i < COUNT_OF(runs); i++) {
    runs[i] = _mi_slices_alloc(MI_CHUNK_SLICES / 4, 1, MI_REQUEST_MIXED, MI_ARENA_ANY);
    CHECK(runs[i].region != NULL);
  }
  _mi_purge_at_peak();
  for (size_t i = 0; i < COUNT_OF(runs); i++) {
    if (i % 4 != 0) _mi_slices_free(runs[i].region, runs[i].slice, runs[i].n_slices, false);
  }
  n_before = n_there();
  n_given_before = n_calls();
  CHECK_FOR(_mi_chunk_purgeable() >= 24 * n_chunks, "%zu", _mi_chunk_purgeable());
}

static void leave_holes(void) {
  make_holes();
  work_ms(20 + MI_TRADE_MS_MIB * 3 * n_chunks / 2);
}

static void end_holes(void) {
  for (size_t i = 0; i < COUNT_OF(runs); i += 4)
    _mi_slices_free(runs[i].region, runs[i].slice, runs[i].n_slices, false);
  _mi_purge_to(0);
}

static void check_slices(void) {
  static mi_run_t pages[20 * n_chunks];
  leave_holes();
  for (size_t i = 0; i < COUNT_OF(pages); i++) {
    pages[i] = _mi_slices_alloc(1, 1, MI_REQUEST_SMALL, MI_ARENA_ANY);
    CHECK(pages[i].region != NULL);
    _mi_purge_at_peak();
  }
  CHECK_FOR(n_there() <= n_before + mib, "%zu slices, then %zu", n_before, n_there());
  CHECK_FOR(n_calls() - n_given_before <= COUNT_OF(pages) / 4, "%zu calls",
            n_calls() - n_given_before); // a MiB at a time
  for (size_t i = 0; i < COUNT_OF(pages); i++) _mi_slices_free(pages[i].region, pages[i].slice, 1, false);
  end_holes();
}

enum { n_growths = 12, n_more = 3 * n_chunks / 2 };

static mi_run_t more[n_growths][n_more];

// Calls that give something back while 24 MiB more than ever are asked for, MiB by MiB.
static size_t calls_to_grow(mi_run_t* growth) {
  make_holes();
  for (size_t i = 0; i < n_more; i++) {
    growth[i] = _mi_slices_alloc(mib, 1, MI_REQUEST_SMALL, MI_ARENA_ANY);
    CHECK(growth[i].region != NULL);
    _mi_purge_at_peak();
  }
  size_t n = n_calls() - n_given_before;
  end_holes();
  return n;
}

// A process that has slept has no more to spend.
static void check_asleep(void) {
  size_t n = 1, i = 0;
  while (i < n_growths - 1 && n > 0) n = calls_to_grow(more[i++]); // until all time is spent
  CHECK_FOR(n <= 2, "%zu calls", n);
  sleep_ms(400);
  n = calls_to_grow(more[i++]);
  CHECK_FOR(n <= 4, "%zu calls after a sleep", n);
  for (size_t k = 0; k < i * n_more; k++)
    _mi_slices_free(more[k / n_more][k % n_more].region, more[k / n_more][k % n_more].slice, mib, false);
  _mi_purge_to(0);
}

// What is not backed when it is freed (moved by the system, purged for a guard) is not taken any more, either: else each such round
// would be a peak.
static void check_clean(void) {
  size_t before = _mi_place_n_taken();
  for (int i = 0; i < 10; i++) {
    mi_run_t run = _mi_slices_alloc(2 * mib, 1, MI_REQUEST_MIXED, MI_ARENA_ANY);
    CHECK(run.region != NULL);
    CHECK_EQ(_mi_place_n_taken(), before + 2 * mib);
    int err = _mi_prim_purge(_mi_region_slice_start(run.region, run.slice), 2 * MI_MiB);
    CHECK(err == 0 || err == ENOTSUP); // what the system cannot clear it decommits
    _mi_slices_free(run.region, run.slice, run.n_slices, true);
    CHECK_EQ(_mi_place_n_taken(), before);
  }
  _mi_purge_to(0);
  CHECK_EQ(_mi_place_n_taken(), before);
}

// Nothing goes back where memory is never to go back, nor below the highest that there was.
static void check_none(void) {
  mi_option_set(mi_option_purge_delay, -1);
  leave_holes();
  mi_run_t run = _mi_slices_alloc(4 * mib, 1, MI_REQUEST_SMALL, MI_ARENA_ANY);
  _mi_purge_at_peak();
  CHECK_EQ(n_calls(), n_given_before);
  _mi_slices_free(run.region, run.slice, run.n_slices, false);
  end_holes();
  mi_option_set(mi_option_purge_delay, 3600 * 1000);
  run = _mi_slices_alloc(mib, 1, MI_REQUEST_SMALL, MI_ARENA_ANY);
  n_given_before = n_calls();
  _mi_purge_at_peak();
  CHECK_EQ(n_calls(), n_given_before);
  _mi_slices_free(run.region, run.slice, run.n_slices, false);
  _mi_purge_to(0);
}

static size_t n_decommits;

static bool on_commit(bool commit, void* start, size_t size, bool* is_zero, void* arg) {
  (void)start, (void)size, (void)arg;
  n_decommits += !commit;
  if (is_zero != NULL) *is_zero = false;
  return true;
}

// A run of an arena.
static mi_run_t take_in(mi_arena_id_t id, size_t n) {
  mi_heap_t* heap = mi_heap_new_in_arena(id);
  mi_run_t   run = _mi_slices_alloc(n, 1, MI_REQUEST_MIXED, mi_load_relaxed(&heap->arena));
  CHECK(run.region != NULL && run.region->origin == MI_REGION_GIVEN);
  mi_heap_delete(heap);
  return run;
}

// Memory that the program commits is no part of a trade, and pinned memory no part of what a process has.
static void check_arenas(void) {
  enum { size = 33 * MI_MiB };
  static char   memory[2][size];
  mi_arena_id_t ids[2];
  CHECK(mi_manage_memory(memory[0], size, false, false, true, -1, true, &on_commit, NULL, &ids[0]));
  CHECK(mi_manage_os_memory_ex(memory[1], size, true, true, true, -1, true, &ids[1]));
  leave_holes();
  mi_run_t run = take_in(ids[0], 8 * mib);
  _mi_slices_free(run.region, run.slice, run.n_slices, false);
  size_t before = _mi_place_n_taken();
  run = take_in(ids[1], 4 * mib);
  CHECK_EQ(_mi_place_n_taken(), before);
  _mi_slices_free(run.region, run.slice, run.n_slices, false);
  CHECK_EQ(_mi_place_n_taken(), before);
  run = _mi_slices_alloc(32 * mib, 1, MI_REQUEST_SMALL, MI_ARENA_ANY);
  _mi_purge_at_peak();
  CHECK(n_calls() > n_given_before);
  CHECK_EQ(n_decommits, 0);
  _mi_slices_free(run.region, run.slice, run.n_slices, false);
  end_holes();
  CHECK(n_decommits > 0);
}

// As the heap does it.
static void check_blocks(size_t size) {
  static void* blocks[80 * 1024];
  size_t       n = 10 * n_chunks * MI_MiB / 8 / size;
  leave_holes();
  for (size_t i = 0; i < n; i++) CHECK((blocks[i] = mi_malloc(size)) != NULL);
  // A large block may lie in the holes; where blocks are guarded, the runs of those that were freed are not backed.
  CHECK_FOR(n_there() <= n_before + (MI_HARDENED ? 8 : 3) * mib, "size %zu: %zu slices, then %zu", size, n_before,
            n_there());
  for (size_t i = 0; i < n; i++) mi_free(blocks[i]);
  mi_collect(true);
  end_holes();
}

// The same for a block that grows where it is: in builds that check blocks it does not.
static void check_growth(void) {
  leave_holes();
  char* p = mi_malloc(4 * MI_MiB);
  for (size_t n = 5; n <= 20; n++) {
    char* grown = mi_realloc(p, n * MI_MiB);
    CHECK(grown != NULL);
    p = grown;
  }
  CHECK_FOR(n_there() <= n_before + 5 * mib, "%zu slices, then %zu", n_before, n_there());
  mi_free(p);
  mi_collect(true);
  end_holes();
}

int main(int argc, char** argv) {
  watchdog(120);
  check_bounds();
  check_rate(test_seed(argc, argv));
  mi_free(mi_malloc(1));
  mi_option_set(mi_option_purge_delay, 3600 * 1000); // an interval that does not end in this test
  mi_option_set(mi_option_arena_purge_mult, 1);
  check_slices();
  check_clean();
  check_blocks(256);
  check_blocks(24 * KiB);
  check_blocks(1800 * KiB);
  if (!MI_HARDENED && !MI_TRACK) check_growth();
  else test_skip("a block that grows", "in this build it is moved");
  check_none(); // these make the highest higher
  check_arenas();
  check_asleep();
  return check_result();
}
