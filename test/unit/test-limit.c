// Proves: memory limits count exactly what slices and mapped blocks there are, whatever is done with them and whichever call to
// the system fails; what is retained is given back before a request is refused; a refused request leaves everything as it was; what
// the system does not take back is used again under the limit; what the limit of a heap refuses is not taken and cleared first.
#include "../check.h"
#include "../modes/support.h"
#include "arena/purge.h"
#include "arena/shrink.h"
#include "arena/slices.h"
#include "counted.h"
#include "heap/check.h"
#include "heap/heap.h"
#include "mimalloc-limit.h"
#include "mimalloc-stats.h"
#include "mimalloc.h"
#include "slots.h"

// The thread sanitizer, which takes long, has little to look for: there is one thread.
enum { n_steps = MI_TSAN ? 4000 : 20000, n_failures = MI_TSAN ? 40 : 200 };

static mi_run_t take(size_t n, mi_request_t request) {
  return _mi_slices_alloc(n, 1, request, MI_ARENA_ANY);
}

static void give(mi_run_t run) {
  if (run.region != NULL) _mi_slices_free(run.region, run.slice, run.n_slices, false);
}

static void check_counted(const char* after) {
  CHECK_FOR(mi_limit_used() == counted_bytes(), "after %s: %zu, and there are %zu", after, mi_limit_used(),
            counted_bytes());
}

static size_t set_limit(size_t more) {
  mi_collect(true);
  size_t limit = mi_limit_used() + more;
  CHECK_EQ(mi_limit_set(limit, 0), 0);
  return limit;
}

// ---- counting ---------------------------------------------------------------------------------------------------------

// One random step; blocks are of all kinds.
static void step(rng_t* rng) {
  size_t i = rng_below(rng, n_slots);
  switch (rng_below(rng, 8)) {
    case 0:
    case 1:
    case 2: slot_malloc(i, rng_size(rng, 4 * MiB)); break;
    case 3:
      if (rng_below(rng, 8) == 0) slot_malloc(i, 33 * MiB + rng_below(rng, 8 * MiB));
      else slot_free(i);
      break;
    case 4: slot_realloc(i, rng_size(rng, rng_below(rng, 20) == 0 ? 48 * MiB : 4 * MiB)); break;
    case 5: slot_malloc_aligned(i, rng_size(rng, MiB), (size_t)1 << rng_below(rng, 23)); break;
    case 6: mi_collect_reduce(rng_below(rng, 64 * MiB)); break;
    default: slot_free(i);
  }
}

static void check_counts(uint64_t seed) {
  rng_t rng = rng_make(seed);
  for (size_t i = 0; i < n_steps * test_scale(); i++) {
    step(&rng);
    if (i % 256 == 0) check_counted("steps");
  }
  free_all();
  mi_collect(true);
  check_counted("a purge");
  CHECK(mi_limit_used() <= 4 * MiB || MI_HARDENED); // freed guarded blocks wait
}

// The same under a limit, which is never exceeded.
static void check_counts_limited(uint64_t seed) {
  rng_t  rng = rng_make(seed);
  size_t n_refused = mi_load_relaxed(&_mi_limit_process.n_refused);
  set_limit(48 * MiB);
  size_t hard;
  mi_limit_get(&hard, NULL);
  for (size_t i = 0; i < n_steps * test_scale(); i++) {
    step(&rng);
    // Contents that move to a mapping of their own are counted twice for a moment, but not afterwards.
    CHECK_FOR(mi_limit_used() <= hard, "step %zu: %zu", i, mi_limit_used());
    if (i % 256 == 0) check_counted("limited steps");
  }
  CHECK(mi_load_relaxed(&_mi_limit_process.n_refused) > n_refused);
  CHECK(mi_heap_check(NULL));
  free_all();
  mi_limit_set(0, 0);
  mi_collect(true);
  check_counted("limited steps");
}

// ---- failures of the system ----------------------------------------------------------------------------------------------

#if MI_FAULT_INJECTION
static void scenario(void) {
  rng_t rng = rng_make(7);
  for (size_t i = 0; i < 250; i++) step(&rng);
  mi_collect(true);
}

static void check_faults(void) {
  mi_collect(true);
  _mi_prim_fail_nth(SIZE_MAX, false);
  scenario();
  size_t n_calls = _mi_prim_fail_nth(0, false);
  printf("%zu calls that can fail\n", n_calls);
  free_all();
  mi_collect(true);
  CHECK(n_calls > 5);
  for (size_t n = 1; n <= n_calls; n += 1 + n_calls / n_failures) {
    for (int repeat = 0; repeat <= 1; repeat++) {
      _mi_prim_fail_nth(n, repeat != 0);
      scenario();
      _mi_prim_fail_nth(0, false);
      check_counted("a failure");
      free_all();
      mi_collect(true);
      check_counted("a failure, and frees");
    }
  }
}
#else
static void check_faults(void) {}
#endif

// ---- what is retained --------------------------------------------------------------------------------------------------

static void check_retained_comes_first(void) {
  set_limit(8 * MiB);
  mi_run_t run = take(112, MI_REQUEST_MIXED); // 7 MiB
  CHECK(run.region != NULL);
  give(run);
  CHECK(_mi_chunk_purgeable() >= 112); // retained: pages do not go where runs were
  mi_run_t pages[120];
  for (size_t i = 0; i < 120; i++) {
    pages[i] = take(1, MI_REQUEST_SMALL);
    CHECK_FOR(pages[i].region != NULL, "page %zu", i);
  }
  check_counted("pages in place of a run");
  for (size_t i = 0; i < 120; i++) give(pages[i]);
  run = take(120, MI_REQUEST_MIXED); // and back
  CHECK(run.region != NULL);
  CHECK(take(16, MI_REQUEST_MIXED).region == NULL);
  check_counted("a refusal");
  give(run);
  mi_limit_set(0, 0);
}

// The same where what is used and what is asked for are together more than a size can say: 3 GiB and 2 GiB with pointers of 32 bits.
static void check_retained_at_end(void) {
  if (!MI_PRIM_VIRTUAL) return; // there are no mappings
  mi_collect(true);
  mi_run_t run = take(64 * MiB / MI_SLICE_SIZE, MI_REQUEST_MIXED);
  CHECK(run.region != NULL);
  give(run);
  size_t hard = SIZE_MAX - 16 * MiB, others = hard - 8 * MiB - mi_limit_used();
  CHECK(_mi_chunk_purgeable() >= 32 * MiB / MI_SLICE_SIZE);
  CHECK_EQ(mi_limit_set(hard, 0), 0);
  _mi_limit_force(&_mi_limit_process, others);
  void* block = _mi_mapped_new(40 * MiB, 1);
  CHECK(block != NULL);
  CHECK_FOR(mi_limit_used() <= hard && mi_limit_used() > others, "%zu", mi_limit_used());
  if (block != NULL) _mi_mapped_free(block, _mi_mapped_take_out(block));
  _mi_limit_remove(&_mi_limit_process, others);
  mi_limit_set(0, 0);
  mi_collect(true);
  check_counted("a limit near the greatest size");
}

// A refused request takes nothing, and opens nothing that stays.
static void check_refused(void) {
  set_limit(4 * MiB);
  size_t before = mi_limit_used(), purgeable = _mi_chunk_purgeable();
  for (int i = 0; i < 1000; i++) {
    CHECK(take(100, MI_REQUEST_MIXED).region == NULL);
    CHECK(_mi_mapped_new(64 * MiB, 1) == NULL);
  }
  CHECK_EQ(mi_limit_used(), before);
  CHECK_EQ(_mi_chunk_purgeable(), purgeable);
  check_counted("refusals");
  mi_limit_set(0, 0);
  mi_run_t run = take(100, MI_REQUEST_MIXED);
  CHECK(run.region != NULL);
  give(run);
}

#if MI_FAULT_INJECTION
// The system takes nothing back (the memory is locked): what is free and backed has to do.
static void check_stays_backed(void) {
  mi_run_t pages[32], low = take(32, MI_REQUEST_MIXED), high = take(32, MI_REQUEST_MIXED),
                      rest = take(32, MI_REQUEST_MIXED);
  CHECK(low.region != NULL && high.region != NULL && rest.region != NULL);
  give(low);
  mi_collect(true); // a free chunk that is not backed comes first,
  give(high);       // and one that is behind it
  CHECK_EQ(mi_limit_set(mi_limit_used(), 0), 0);
  size_t n = 0;
  for (; n < 32; n++) {
    _mi_prim_fail_nth(1, true);
    pages[n] = take(1, MI_REQUEST_SMALL);
    _mi_prim_fail_nth(0, false);
    if (pages[n].region == NULL) break;
  }
  CHECK_EQ(n, 32);
  check_counted("pages where nothing can be purged");
  for (size_t i = 0; i < n; i++) give(pages[i]);
  give(rest);
  mi_limit_set(0, 0);
  mi_collect(true);
}

// ... and what was never backed does not count as if it were.
static void check_stays_clean(void) {
  mi_collect(true);
  mi_run_t run = take(3, MI_REQUEST_MIXED);
  CHECK(run.region != NULL);
  give(run);
  size_t used = mi_limit_used();
  _mi_prim_fail_nth(1, true);
  mi_collect(true);
  _mi_prim_fail_nth(0, false);
  CHECK_EQ(mi_limit_used(), used);
  check_counted("a purge that was refused");
  mi_collect(true);
}
#else
static void check_stays_backed(void) {}
static void check_stays_clean(void) {}
#endif

// ---- arenas --------------------------------------------------------------------------------------------------------------

static void check_arenas(void) {
  static char   memory[8 * 1024 * 1024];
  mi_arena_id_t given;
  size_t        before = mi_limit_used(), limit = set_limit(MiB);
  CHECK(mi_manage_os_memory_ex(memory, sizeof(memory), true, false, true, -1, true, &given));
  mi_heap_t* heap = mi_heap_new_in_arena(given);
  CHECK(heap != NULL);
  void* p = mi_heap_malloc(heap, 3 * MiB); // the program's own memory does not count
  CHECK(p != NULL);
  check_counted("an arena of the program's memory");
  CHECK(mi_limit_used() <= before + MiB);
  mi_free(p);
  CHECK_EQ(mi_reserve_os_memory(64 * MiB, false, false), 0); // this counts as it is used
  void* q = mi_malloc(4 * MiB);
  if (q != NULL) { // as much was given up that waited
    CHECK(mi_limit_used() <= limit);
    mi_free(q);
    set_limit(MiB);
    q = mi_malloc(4 * MiB);
  }
  CHECK(q == NULL || MI_HARDENED); // there is always more that waits
  mi_free(q);
  mi_limit_set(0, 0);
  q = mi_malloc(4 * MiB);
  CHECK(q != NULL);
  check_counted("a reserved arena");
  mi_free(q);
  mi_heap_delete(heap);
  mi_collect(true);
  check_counted("arenas");
}

// What there is room for, to the byte; and where there is room, it is made without giving anything back.
static void check_room(void) {
  int tries = 0;
  free_all();
  set_limit(64 * MiB);
  give(take(64, MI_REQUEST_MIXED));
  size_t n_backed = _mi_chunk_purgeable(), room = 64 * MiB - n_backed * MI_SLICE_SIZE;
  CHECK(n_backed >= 64);
  CHECK(_mi_limit_has_room(0) && _mi_limit_has_room(room) && !_mi_limit_has_room(room + 1));
  CHECK(_mi_limit_make_room(room, 0, &tries));
  CHECK_EQ(_mi_chunk_purgeable(), n_backed);
  CHECK(_mi_limit_make_room(room + 16 * MI_SLICE_SIZE, 0, &tries)); // now some of it
  CHECK_FOR(_mi_chunk_purgeable() + 16 <= n_backed, "%zu of %zu", _mi_chunk_purgeable(), n_backed);
  CHECK_EQ(mi_limit_set(0, 0), 0);
}

// A huge page is resident as a whole: under a limit that has no room for one no such chunk is opened, for whatever small part of it.
static void check_huge_pages(void) {
  enum { n = MI_CHUNK_SLICES / 4 };
  mi_run_t runs[n], others = take(8 * MI_CHUNK_SLICES, MI_REQUEST_MIXED); // there are huge pages from 8 MiB on
  mi_run_t dense = take(1, MI_REQUEST_HUGE);
  CHECK(dense.region != NULL && others.region != NULL);
  bool has_huge = (dense.region != NULL && dense.region->is_huge);
  give(dense);
  set_limit(MiB);
  for (size_t i = 0; i < n; i++) {
    runs[i] = take(1, MI_REQUEST_HUGE);
    CHECK_FOR(runs[i].region != NULL && !runs[i].region->is_huge, "%zu", i);
  }
  if (!has_huge) test_skip("huge pages under a limit", "the library asks for none here");
  for (size_t i = 0; i < n; i++) give(runs[i]);
  give(others);
  mi_limit_set(0, 0);
  mi_collect(true);
}

static size_t committed_most(void) {
  mi_stats_t_decl(stats);
  CHECK(mi_stats_get(&stats));
  return (size_t)stats.committed.peak;
}

// Where memory is cleared it would be far more work to take it than all the rest.
static void check_heap_refuses_first(void) {
  mi_heap_t* heap = mi_heap_new();
  CHECK_EQ(mi_heap_limit_set(heap, 8 * MiB, 0), 0);
  mi_free(mi_heap_malloc(heap, 1));
  size_t before = committed_most();
  for (size_t size = 16 * MiB; size <= 64 * MiB; size *= 2) CHECK(mi_heap_zalloc(heap, size) == NULL);
  CHECK_FOR(committed_most() == before, "%zu MiB more", minus(committed_most(), before) / MiB);
  mi_heap_destroy(heap);
}

static size_t used_at_crossing;

static void note_used(mi_limit_t* limit) {
  used_at_crossing = _mi_limit_used(limit);
}

// To ask changes nothing, not even for a moment: a heap that has ended meanwhile may be another one.
static void check_heap_asks(void) {
  mi_heap_t* heap = mi_heap_new();
  CHECK_EQ(mi_heap_limit_set(heap, 8 * MiB, MiB), 0);
  void* p = mi_heap_malloc(heap, 100);
  _mi_limit_on_crossed(&note_used);
  CHECK(_mi_heap_ask_limit(heap, 2 * MiB / MI_SLICE_SIZE)); // beyond the soft limit
  CHECK(used_at_crossing > 0 && used_at_crossing == mi_heap_limit_used(heap));
  CHECK(!_mi_heap_ask_limit(heap, 8 * MiB / MI_SLICE_SIZE));
  CHECK_EQ(mi_limit_set(0, 0), 0); // the library's own function is called again
  mi_free(p);
  mi_heap_destroy(heap);
}

int main(int argc, char** argv) {
  uint64_t seed = test_seed(argc, argv);
  watchdog(200);
  mi_option_set(mi_option_show_errors, 0);
  check_heap_refuses_first();
  check_heap_asks();
  check_huge_pages();
  check_room();
  check_counts(seed);
  check_counts_limited(seed + 1);
  check_retained_comes_first();
  check_retained_at_end();
  check_refused();
  check_stays_backed();
  check_stays_clean();
  check_faults();
  check_arenas();
  return check_result();
}
