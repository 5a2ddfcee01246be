// Proves: the lowest run of free chunks is found that there is, against a search of our own, wherever groups of chunks begin and
// end; so is the one where most is backed; what a search costs does not depend on how many chunks there are, nor what a purge costs;
// a purge takes chunks side by side in one call, and ends though the system refuses, which is not asked again by each free;
// threads that purge at the same time do not purge more than one of them would; and a request that was refused is looked for again when
// something was freed, but not before.
#include <pthread.h>

#include "../check.h"
#include "../modes/support.h"
#include "arena/chunk.h"
#include "arena/hole.h"
#include "arena/place.h"
#include "arena/hold.h"
#include "arena/purge.h"
#include "arena/purge_by_amount.h"
#include "arena/purge_by_clock.h"
#include "arena/shrink.h"
#include "arena/slices.h"
#include "mimalloc.h"
#include "support/stat.h"

// ---- a region of bits only ------------------------------------------------------------------------------------------

enum { max_chunks = 1 << 18 };

static mi_region_t fake;
static mi_chunk_t  fake_chunks[max_chunks];
static uint64_t    fake_words[max_chunks / 64];

// All chunks are in use.
static void fake_begin(size_t n_chunks, uint8_t group_shift) {
  memset(&fake, 0, sizeof(fake));
  memset(fake_chunks, 0, sizeof(fake_chunks));
  memset(fake_words, 0, sizeof(fake_words));
  fake.n_chunks = fake.n_usable = fake.n_open = fake.n_used = n_chunks;
  fake.chunks = fake_chunks;
  fake.free_chunks = fake_words;
  _mi_region_set_groups(&fake);
  if (group_shift != 0) fake.group_shift = group_shift;
  CHECK(n_chunks <= (size_t)MI_REGION_GROUPS << fake.group_shift);
  for (size_t i = 0; i < n_chunks; i++) fake_chunks[i].kind = MI_CHUNK_MIXED;
}

static void fake_put(size_t i, size_t n) {
  for (; n > 0; n--, i++) _mi_chunk_put(&fake, i, UINT32_MAX, MI_CONTENTS_ZERO);
}

static void fake_take(size_t i, size_t n) {
  for (; n > 0; n--, i++) _mi_chunk_take(&fake, i, UINT32_MAX, MI_CHUNK_MIXED);
}

static size_t fake_find(size_t n) {
  return _mi_chunk_find_free(&fake, n, MI_CHUNK_MIXED);
}

// What was searched in vain says nothing about shorter runs, however long it was.
static void check_long(void) {
  fake_begin(4000, 0);
  fake_put(100, 768);
  for (size_t n = 769; n < 3000; n += 111) {
    CHECK_EQ(fake_find(n), SIZE_MAX);
    CHECK_EQ(fake_find(768), 100);
    CHECK_EQ(fake_find(256), 100);
  }
}

static size_t slow_find(size_t n) {
  size_t found = 0;
  for (size_t i = 0; i < fake.n_used; i++) {
    found = (_mi_chunk_is_free(&fake, i) ? found + 1 : 0);
    if (found == n) return i + 1 - n;
  }
  return SIZE_MAX;
}

static size_t random_length(rng_t* r) {
  switch (rng_below(r, 8)) {
    case 0: return 1 + rng_below(r, 300);
    case 1: return 1 + rng_below(r, 70);
    default: return 1 + rng_below(r, 6);
  }
}

// Runs that are taken where they are found, and given back in parts, anywhere.
static void check_find(rng_t* r, size_t n_chunks, uint8_t group_shift, size_t n_ops) {
  fake_begin(n_chunks, group_shift);
  fake_put(0, n_chunks);
  CHECK(fake_find(n_chunks) == 0 && fake_find(n_chunks + 1) == SIZE_MAX);
  for (size_t op = 0; op < n_ops; op++) {
    size_t n = random_length(r);
    bool   is_filling = (op / 1000 % 2 == 0);
    if (rng_below(r, 10) < (is_filling ? 7u : 3u)) {
      size_t i = fake_find(n);
      CHECK_FOR(i == slow_find(n), "%zu chunks at %zu, not %zu", n, i, slow_find(n));
      if (i != SIZE_MAX) fake_take(i, n);
    }
    else {
      size_t i = rng_below(r, n_chunks);
      for (; n > 0 && i < n_chunks && !_mi_chunk_is_free(&fake, i); n--, i++) fake_put(i, 1);
    }
  }
}

// ---- what it costs --------------------------------------------------------------------------------------------------

// CPU seconds for searches with every second chunk free, that find nothing but at the end, with frees in between.
static double find_seconds(size_t n_chunks) {
  double best = 1e9;
  for (int run = 0; run < 3; run++) {
    fake_begin(n_chunks, 0);
    for (size_t i = 1; i < n_chunks; i += 2) fake_put(i, 1);
    double start = cpu_seconds();
    for (size_t i = 0; i < 2000; i++) {
      size_t at = i * 2 % (n_chunks - 4);
      CHECK(fake_find(2) == SIZE_MAX);
      fake_put(at, 1); // three side by side
      CHECK_EQ(fake_find(2), at > 0 ? at - 1 : at);
      fake_take(at, 1);
    }
    double seconds = cpu_seconds() - start;
    best = seconds < best ? seconds : best;
  }
  return best;
}

// The run where most is backed, against all of them counted one by one.
static void check_most_backed(rng_t* r) {
  enum { n_chunks = 300 };
  fake_begin(n_chunks, 0);
  for (size_t i = 0; i < n_chunks; i++) {
    if (rng_below(r, 8) > 0) fake_put(i, 1);
    fake_chunks[i].dirty_bits = (rng_below(r, 3) == 0 ? UINT32_MAX : (uint32_t)rng_below(r, 1000) << rng_below(r, 23));
  }
  for (int k = 0; k < 1000; k++) {
    size_t n = 1 + rng_below(r, 12), n_slices = (n - 1) * MI_CHUNK_SLICES + 1 + rng_below(r, MI_CHUNK_SLICES);
    size_t i = rng_below(r, n_chunks - n), look = rng_below(r, 80), most = 0, found = i, n_found;
    for (size_t at = i; at <= i + look && at + n <= n_chunks; at++) {
      size_t n_free = 0, n_backed = _mi_place_n_backed(&fake, at * MI_CHUNK_SLICES, n_slices);
      while (n_free < n && _mi_chunk_is_free(&fake, at + n_free)) n_free++;
      if (n_free == n && n_backed > most) most = n_backed, found = at;
    }
    CHECK_EQ(_mi_place_most_backed(&fake, i, n, look, n_slices, &n_found), found);
    CHECK_EQ(n_found, most);
  }
}

static void check_cost_of_finding(void) {
  double few = find_seconds(4096), many = find_seconds(max_chunks);
  printf("finding a run: %.2f us among 4096 chunks, %.2f us among %d\n", few / 4000 * 1e6, many / 4000 * 1e6,
         (int)max_chunks);
  CHECK(many < 8 * few + 0.001 + cpu_error());
}

// ---- purging --------------------------------------------------------------------------------------------------------

// Of 64 GiB of address space, or 1 GiB where pointers have 32 bits.
#if UINTPTR_MAX > UINT32_MAX
enum { many_chunks = 32 * 1024, n_freed = 1024, n_refused_frees = 1000, n_together = 2000, n_in_arena = 4096 };
#else
enum { many_chunks = 512, n_freed = 16, n_refused_frees = 500, n_together = 500, n_in_arena = 300 };
#endif
static mi_run_t runs[many_chunks];

static size_t take_chunks(size_t n) {
  size_t i = 0;
  while (i < n && (runs[i] = _mi_slices_alloc(MI_CHUNK_SLICES, 1, MI_REQUEST_MIXED, MI_ARENA_ANY)).region != NULL) i++;
  return i;
}

static void free_chunk(size_t i) {
  _mi_slices_free(runs[i].region, runs[i].slice, MI_CHUNK_SLICES, false);
}

// CPU seconds to purge single chunks at low addresses, below so many that are in use.
static double purge_seconds(size_t n_chunks) {
  size_t n = take_chunks(n_chunks);
  CHECK_EQ(n, n_chunks);
  if (n != n_chunks) return 0;
  for (size_t i = 0; i < 2 * n_freed; i += 2) free_chunk(i);
  double start = cpu_seconds();
  for (size_t i = 0; i < n_freed; i++) CHECK_EQ(_mi_purge_slices(1), MI_CHUNK_SLICES);
  double seconds = cpu_seconds() - start;
  CHECK_EQ(_mi_chunk_purgeable(), 0);
  for (size_t i = 0; i < n_chunks; i++) {
    if (i >= 2 * n_freed || i % 2 != 0) free_chunk(i);
  }
  _mi_purge_slices(SIZE_MAX);
  return seconds;
}

static void check_cost_of_purging(void) {
  purge_seconds(2 * n_freed); // now all are open
  double few = purge_seconds(2 * n_freed), many = purge_seconds(many_chunks);
  printf("purging a chunk: %.2f us among %d, %.2f us among %d\n", few / n_freed * 1e6, 2 * n_freed,
         many / n_freed * 1e6, (int)many_chunks);
  CHECK(many < 5 * few + 0.002 + cpu_error());
}

static void check_joined(void) {
  enum { n = 64 };
  CHECK_EQ(take_chunks(n), n);
  for (size_t i = 0; i < n; i++) free_chunk(i * 37 % n);
  int64_t before = mi_load_relaxed(&_mi_prim_calls.purge);
  size_t  purgeable = _mi_chunk_purgeable();
  CHECK(_mi_purge_slices(SIZE_MAX) >= n * MI_CHUNK_SLICES);
  CHECK_EQ(_mi_chunk_purgeable(), 0);
  // Eight at a time, and a few that lie between others by then.
  CHECK_FOR(mi_load_relaxed(&_mi_prim_calls.purge) - before <= n / 4, "%d calls for %zu slices",
            (int)(mi_load_relaxed(&_mi_prim_calls.purge) - before), purgeable);
}

// As long as the system takes what it is given, one call gives all of it, however many pieces there are.
static void check_pieces(void) {
  enum { n = 64 };
  CHECK_EQ(take_chunks(n), n);
  for (size_t i = 0; i < n; i += 2) free_chunk(i);
  size_t purgeable = _mi_chunk_purgeable();
  CHECK_EQ(_mi_purge_slices(SIZE_MAX), purgeable);
  for (size_t i = 1; i < n; i += 2) _mi_slices_free(runs[i].region, runs[i].slice, 1, false);
  CHECK_EQ(_mi_purge_slices(SIZE_MAX), n / 2);
  CHECK_EQ(_mi_chunk_purgeable(), 0);
  for (size_t i = 1; i < n; i += 2) _mi_slices_free(runs[i].region, runs[i].slice + 1, MI_CHUNK_SLICES - 1, false);
  _mi_purge_slices(SIZE_MAX);
}

// It ends, and what could not go back is still there to go.
static void check_refused_purge(void) {
  CHECK_EQ(take_chunks(16), 16);
  for (size_t i = 0; i < 16; i++) {
    if (i % 3 != 0) free_chunk(i);
    else _mi_slices_free(runs[i].region, runs[i].slice, 7, false);
  }
  size_t purgeable = _mi_chunk_purgeable();
  _mi_prim_fail_nth(1, true);
  _mi_purge_slices(SIZE_MAX);
  CHECK_EQ(_mi_prim_fail_nth(0, false), 2 * 4); // of whole chunks and of parts: so often it is asked (GIVE_REFUSALS)
  CHECK_EQ(_mi_chunk_purgeable(), purgeable);
  CHECK_EQ(_mi_purge_slices(SIZE_MAX), purgeable);
  CHECK_EQ(_mi_chunk_purgeable(), 0);
  for (size_t i = 0; i < 16; i += 3) _mi_slices_free(runs[i].region, runs[i].slice + 7, MI_CHUNK_SLICES - 7, false);
  _mi_purge_slices(SIZE_MAX);
}

// A system that takes nothing is not asked by each free for all that is free, but it is asked again.
static void check_refused_frees(void) {
  enum { n_chunks = n_refused_frees, n_calls_max = 4 * n_chunks };
  CHECK_EQ(take_chunks(n_chunks), n_chunks);
  mi_option_set(mi_option_purge_delay, 100);
  _mi_prim_fail_nth(1, true);
  for (size_t i = 0; i < n_chunks; i++) {
    free_chunk(i);
    _mi_purge_by_amount();
  }
  size_t n_calls = _mi_prim_fail_nth(0, false);
  printf("%zu calls for %d frees that the system refused\n", n_calls, n_chunks);
  CHECK(n_calls > 0 && n_calls < n_calls_max);
  CHECK_EQ(_mi_chunk_purgeable(), n_chunks * MI_CHUNK_SLICES);
  CHECK(!_mi_purge_has_more());
  for (int i = 0; i < 2000 && !_mi_purge_has_more(); i++) {
    sleep_ms(10);
    _mi_purge_by_amount();
  }
  CHECK(_mi_chunk_purgeable() * MI_SLICE_SIZE <= 32 * MiB);
  mi_option_set(mi_option_purge_delay, -1);
  _mi_purge_slices(SIZE_MAX);
}

// Of chunks that are partly used the one with most to give goes first, whatever it is for.
static void check_most_first(void) {
  static const mi_request_t requests[] = {MI_REQUEST_SMALL, MI_REQUEST_MEDIUM, MI_REQUEST_MIXED};
  mi_run_t                  whole[COUNT_OF(requests)];
  for (size_t most = 0; most < COUNT_OF(requests); most++) {
    for (size_t i = 0; i < COUNT_OF(requests); i++) {
      whole[i] = _mi_slices_alloc(MI_CHUNK_SLICES, 1, requests[i], MI_ARENA_ANY);
      CHECK(whole[i].region != NULL && whole[i].slice % MI_CHUNK_SLICES == 0);
    }
    CHECK_EQ(_mi_chunk_purgeable(), 0);
    for (size_t i = 0; i < COUNT_OF(requests); i++)
      _mi_slices_free(whole[i].region, whole[i].slice, i == most ? 20 : 6, false);
    CHECK_EQ(_mi_purge_slices(1), 20);
    CHECK_EQ(_mi_purge_slices(SIZE_MAX), 12);
    for (size_t i = 0; i < COUNT_OF(requests); i++) {
      size_t n = (i == most ? 20 : 6);
      _mi_slices_free(whole[i].region, whole[i].slice + n, MI_CHUNK_SLICES - n, false);
    }
    _mi_purge_slices(SIZE_MAX);
  }
}

enum { n_purgers = 4 };

static pthread_barrier_t purgers_begin;

static void* purge_together(void* arg) {
  pthread_barrier_wait(&purgers_begin);
  _mi_purge_by_amount();
  return arg;
}

// Threads that find too much at the same time give it back once: half of the allowance stays.
static void check_together(void) {
  enum { n_chunks = n_together, stays = 16 * MiB / MI_SLICE_SIZE };
  pthread_t threads[n_purgers];
  CHECK_EQ(take_chunks(n_chunks), n_chunks);
  _mi_purge_by_clock(true);
  _mi_hold_end(); // that these were needed again holds nothing
  for (size_t i = 0; i < n_chunks; i++) free_chunk(i);
  pthread_barrier_init(&purgers_begin, NULL, n_purgers + 1);
  for (size_t i = 0; i < n_purgers; i++) CHECK_EQ(pthread_create(&threads[i], NULL, &purge_together, NULL), 0);
  mi_option_set(mi_option_purge_delay, 1000000); // no round, which gives back what was free for long
  purge_together(NULL);
  for (size_t i = 0; i < n_purgers; i++) pthread_join(threads[i], NULL);
  mi_option_set(mi_option_purge_delay, -1);
  CHECK_FOR(_mi_chunk_purgeable() > stays - MI_CHUNK_SLICES && _mi_chunk_purgeable() <= stays, "%zu stay",
            _mi_chunk_purgeable());
  _mi_purge_slices(SIZE_MAX);
}

// A chunk that was closed has no holes any more: the system is not asked about it, and once it is open again it is as others are.
static void check_closed_holes(void) {
  const size_t dense = MI_REGION_HUGE;
  mi_region_t* region = &_mi_region_all[dense];
  if (!region->is_planned || !_mi_region_may_be_huge()) return;
  for (int round = 0; round < 2; round++) {
    mi_run_t run = _mi_slices_alloc(MI_CHUNK_SLICES, 1, MI_REQUEST_HUGE, dense);
    size_t   i = run.slice / MI_CHUNK_SLICES;
    CHECK(run.region == region && i + 1 == region->n_used);
    _mi_slices_free(region, run.slice, 1, false);
    _mi_prim_fail_nth(0, false);
    CHECK_EQ(_mi_purge_slices(1), 1);
    CHECK_EQ(_mi_prim_fail_nth(0, false), 2); // no huge page, and the purge
    CHECK(region->chunks[i].has_holes != 0);
    _mi_slices_free(region, run.slice + 1, MI_CHUNK_SLICES - 1, false);
    _mi_lock_acquire(&_mi_region_lock);
    CHECK(_mi_shrink_regions());
    _mi_lock_release(&_mi_region_lock);
    CHECK(region->n_open <= i);
    if (round == 0) continue;
    _mi_prim_fail_nth(0, false);
    _mi_hole_close_filled(SIZE_MAX);
    CHECK_EQ(_mi_prim_fail_nth(0, false), 0);
    CHECK_EQ(region->chunks[i].has_holes, 0);
  }
}

// ---- what is not there ----------------------------------------------------------------------------------------------

static void check_refused(void) {
  enum { n_chunks = n_in_arena, n_requests = 4000 };
  mi_arena_id_t id;
  CHECK_EQ(mi_reserve_os_memory_ex(n_chunks * MI_CHUNK_SIZE, false, false, true, &id), 0);
  size_t       arena = (size_t)(uintptr_t)id;
  mi_region_t* region = &_mi_region_all[arena];
  size_t       n = 0;
  while (n < many_chunks && (runs[n] = _mi_slices_alloc(MI_CHUNK_SLICES, 1, MI_REQUEST_MIXED, arena)).region != NULL)
    n++;
  CHECK_EQ(n, n_chunks);
  for (size_t i = 0; i < n; i += 2) _mi_slices_free(region, runs[i].slice, 20, false);
  double start = cpu_seconds();
  CHECK(_mi_slices_alloc(21, 1, MI_REQUEST_META, arena).region == NULL);
  double once = cpu_seconds() - start;
  start = cpu_seconds();
  for (size_t i = 0; i < n_requests; i++) CHECK(_mi_slices_alloc(21 + i % 9, 1, MI_REQUEST_META, arena).region == NULL);
  double more = cpu_seconds() - start;
  printf("refused once: %.2f us, again: %.2f us\n", once * 1e6, more / n_requests * 1e6);
  CHECK(more < n_requests / 10 * once + 0.001 + cpu_error());
  // Fewer may be there; and when something was freed, so may that many.
  mi_run_t run = _mi_slices_alloc(20, 1, MI_REQUEST_META, arena);
  CHECK(run.region == region);
  _mi_slices_free(region, runs[n - 1].slice, 21, false);
  run = _mi_slices_alloc(21, 1, MI_REQUEST_META, arena);
  CHECK(run.region == region && run.slice == runs[n - 1].slice);
}

// The first of two runs of one slice that lie side by side in that region (NULL: in any).
static size_t find_pair(size_t n, const mi_region_t* region) {
  for (size_t i = 0; i + 1 < n; i++) {
    bool is_in = (region == NULL || runs[i].region == region) && runs[i].region == runs[i + 1].region;
    if (is_in && runs[i].slice + 1 == runs[i + 1].slice && runs[i + 1].slice % MI_CHUNK_SLICES > 0) return i;
  }
  return SIZE_MAX;
}

// In arenas that are for all, too, unless the program forbids it.
static void check_last_resort_of_arenas(void) {
  enum { n_in_it = 4 * MI_CHUNK_SLICES };
  mi_arena_id_t id;
  CHECK_EQ(mi_reserve_os_memory_ex(4 * MI_CHUNK_SIZE, false, false, false, &id), 0);
  mi_option_enable(mi_option_disallow_os_alloc);
  size_t n = 0;
  while (n < n_in_it) runs[n++] = _mi_slices_alloc(1, 1, MI_REQUEST_SMALL, MI_ARENA_ANY);
  size_t pair = find_pair(n, &_mi_region_all[(size_t)(uintptr_t)id]);
  CHECK(pair != SIZE_MAX);
  for (size_t size = 1024 * MI_CHUNK_SLICES; size > 0; size /= 2) {
    mi_request_t request = (size > MI_CHUNK_SLICES ? MI_REQUEST_MIXED : MI_REQUEST_SMALL);
    while (n < many_chunks && (runs[n] = _mi_slices_alloc(size, 1, request, MI_ARENA_ANY)).region != NULL) n++;
  }
  CHECK(n < many_chunks);
  _mi_slices_free(runs[pair].region, runs[pair].slice, 2, false);
  mi_option_enable(mi_option_disallow_arena_alloc);
  CHECK(_mi_slices_alloc(2, 1, MI_REQUEST_MEDIUM, MI_ARENA_ANY).region == NULL);
  mi_option_disable(mi_option_disallow_arena_alloc);
  mi_run_t run = _mi_slices_alloc(2, 1, MI_REQUEST_MEDIUM, MI_ARENA_ANY);
  CHECK(run.region == runs[pair].region && run.slice == runs[pair].slice);
  mi_option_disable(mi_option_disallow_os_alloc);
  for (size_t i = 0; i < n; i++) _mi_slices_free(runs[i].region, runs[i].slice, runs[i].n_slices, false);
}

// Where no more memory may be opened, slices side by side serve any request, whatever the pages around them are for.
static void check_last_resort(void) {
  enum { n_first = 3 * MI_CHUNK_SLICES };
  size_t n = 0;
  while (n < n_first) runs[n++] = _mi_slices_alloc(1, 1, MI_REQUEST_SMALL, MI_ARENA_ANY);
  mi_option_enable(mi_option_disallow_os_alloc);
  while (n < many_chunks && (runs[n] = _mi_slices_alloc(1, 1, MI_REQUEST_SMALL, MI_ARENA_ANY)).region != NULL) n++;
  size_t pair = find_pair(n_first, NULL);
  CHECK(n < many_chunks && pair != SIZE_MAX);
  _mi_slices_free(runs[pair].region, runs[pair].slice, 2, false);
  CHECK(_mi_slices_alloc(3, 1, MI_REQUEST_MEDIUM, MI_ARENA_ANY).region == NULL);
  mi_run_t run = _mi_slices_alloc(2, 1, MI_REQUEST_MEDIUM, MI_ARENA_ANY);
  CHECK(run.region == runs[pair].region && run.slice == runs[pair].slice);
  mi_option_disable(mi_option_disallow_os_alloc);
  for (size_t i = 0; i < n; i++) _mi_slices_free(runs[i].region, runs[i].slice, 1, false);
  _mi_purge_slices(SIZE_MAX);
}

int main(int argc, char** argv) {
  watchdog(240);
  rng_t r = rng_make(test_seed(argc, argv));
  mi_option_set(mi_option_purge_delay, -1); // nobody but we
  mi_free(mi_malloc(1));
  _mi_purge_slices(SIZE_MAX);
  check_last_resort();
  check_find(&r, 64, 6, 3000 * test_scale());
  check_find(&r, 4000, 6, 6000 * test_scale());
  check_find(&r, 8000, 7, 4000 * test_scale());
  check_find(&r, 10000, 0, 4000 * test_scale());
  check_long();
  check_most_backed(&r);
  check_cost_of_finding();
  if (!TEST_SANITIZED && !MI_TRACK) check_cost_of_purging();
  check_joined();
  check_pieces();
  check_most_first();
  check_refused_purge();
  check_refused_frees();
  check_together();
  check_closed_holes();
  if (MI_API_LEVEL < 3) {
    check_refused();
    check_last_resort_of_arenas();
  }
  return check_result();
}
