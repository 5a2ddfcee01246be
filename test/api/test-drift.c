// Proves: a cache whose values change their size needs no more than twice what is live, while sizes grow, shrink, and go back
// and forth; all of its memory goes back afterwards.  Blocks in gap pages are like others: they have their size, their contents
// and their alignment, are visited (each as an area), counted, resized and freed, by any thread, after the end of theirs, and in
// the child of a fork.  A program whose sizes stay as they are has no gap pages.
#include "../check.h"
#include "../modes/support.h"
#include "base/compiler.h"
#include "base/mode.h"
#include "mimalloc-stats.h"
#include "mimalloc.h"

#include <pthread.h>
#include <stdatomic.h>
#if !defined(_WIN32) && !defined(__wasm__)
  #include <sys/wait.h>
#endif

#define LIVE  (10 * MiB)
#define SLICE (64 * KiB)

// Does the build have gap pages (heap/gaps.h)?
#define HAS_GAPS (!MI_PADDING && !MI_TRACK && !MI_TAGS)

// Does a thread of the library's take from those that sleep (heap/idle.h)?
#define HAS_ROUNDS (TEST_HAS_BACKGROUND && !MI_TSAN)

enum { n_max = 600000, n_phases = 6 };

static unsigned char* blocks[n_max];
static uint32_t       sizes[n_max];
static size_t         n_blocks, n_bytes;
static atomic_bool    must_stop; // the other thread

static int64_t pages_committed(void) {
  mi_stats_t_decl(stats);
  mi_stats_get(&stats);
  return stats.page_committed.current;
}

static void add(size_t size) {
  blocks[n_blocks] = (unsigned char*)mi_malloc(size);
  sizes[n_blocks] = (uint32_t)size;
  memset(blocks[n_blocks], (int)(size % 251), size);
  n_blocks++;
  n_bytes += size;
}

static void check_block(size_t i) {
  unsigned char mark = (unsigned char)(sizes[i] % 251);
  CHECK(blocks[i][0] == mark && blocks[i][sizes[i] / 2] == mark && blocks[i][sizes[i] - 1] == mark);
  CHECK(mi_usable_size(blocks[i]) >= sizes[i]);
}

static void drop(size_t i) {
  check_block(i);
  mi_free(blocks[i]);
  n_bytes -= sizes[i];
  n_blocks--;
  blocks[i] = blocks[n_blocks];
  sizes[i] = sizes[n_blocks];
}

static void drop_all(void) {
  while (n_blocks > 0) drop(n_blocks - 1);
}

static void turn(rng_t* r, size_t mean, size_t n) {
  for (size_t done = 0; done < n;) {
    size_t size = 20 + mean / 2 + rng_below(r, mean);
    add(size);
    done += size;
    while (n_bytes > LIVE) drop(rng_below(r, n_blocks));
  }
}

typedef struct found_s {
  size_t    n, bytes;           // blocks that were visited
  size_t    n_used, used_bytes; // as the areas say
  size_t    n_in_gaps;
  uintptr_t slice; // of the last area
} found_t;

// A page has slices of its own: areas in the same slice are blocks of a gap page.
static void visit_area(const mi_heap_area_t* area, found_t* found) {
  uintptr_t slice = (uintptr_t)area->blocks / SLICE;
  CHECK(area->block_size <= area->full_block_size && area->used * area->full_block_size <= area->committed);
  CHECK(area->committed <= area->reserved);
  found->n_used += area->used;
  found->used_bytes += area->used * area->block_size;
  if (slice == found->slice) {
    CHECK(area->used == 1 && area->block_size == area->full_block_size && area->block_size == area->reserved);
    found->n_in_gaps++;
  }
  found->slice = slice;
}

static bool visit(const mi_heap_t* heap, const mi_heap_area_t* area, void* block, size_t size, void* arg) {
  found_t* found = (found_t*)arg;
  size_t   offset = (size_t)((char*)block - (char*)area->blocks);
  (void)heap;
  if (block == NULL) {
    visit_area(area, found);
    return true;
  }
  CHECK(size == area->block_size && offset < area->reserved && offset % area->full_block_size == 0);
  found->n++;
  found->bytes += size;
  return true;
}

static void check_all(size_t n_before) {
  found_t found = {0, 0, 0, 0, 0, 0}, areas = {0, 0, 0, 0, 0, 0};
  size_t  bytes = 0;
  CHECK(mi_heap_check(NULL));
  for (size_t i = 0; i < n_blocks; i++) {
    check_block(i);
    bytes += mi_usable_size(blocks[i]);
  }
  mi_heap_visit_blocks(mi_heap_get_default(), true, &visit, &found);
  CHECK_EQ(found.n, n_blocks + n_before);
  CHECK(found.bytes >= bytes);
  CHECK(found.n_used == found.n && found.used_bytes == found.bytes);
  mi_heap_visit_blocks(mi_heap_get_default(), false, &visit, &areas);
  CHECK(areas.n == 0 && areas.n_used == found.n && areas.used_bytes == found.bytes);
}

static size_t count_visited(void) {
  found_t found = {0, 0, 0, 0, 0, 0};
  mi_heap_visit_blocks(mi_heap_get_default(), true, &visit, &found);
  return found.n;
}

// Blocks that lie in pages with blocks of other sizes.
static size_t in_gap_pages(void) {
  found_t found = {0, 0, 0, 0, 0, 0};
  mi_heap_visit_blocks(mi_heap_get_default(), false, &visit, &found);
  return found.n_in_gaps;
}

// ---- drift --------------------------------------------------------------------------------------------------------------

static void test_drift(const size_t* means) {
  rng_t   r = rng_make(means[0]);
  size_t  n_before = count_visited();
  int64_t before = pages_committed();
  for (size_t i = 0; i < n_phases; i++) {
    turn(&r, means[i], LIVE);
    int64_t committed = pages_committed() - before;
    if (HAS_GAPS)
      CHECK_FOR(committed <= 2 * (int64_t)LIVE, "%zu bytes: %lld KiB", means[i], (long long)committed / 1024);
    check_all(n_before);
  }
  CHECK(!HAS_GAPS || in_gap_pages() > 0);
  drop_all();
  mi_collect(true);
  CHECK(in_gap_pages() <= n_before); // the C library's
  CHECK(pages_committed() - before <= (int64_t)(100 * SLICE));
}

static const size_t growing[] = {44, 100, 210, 480, 1100, 2500};
static const size_t shrinking[] = {2500, 1100, 480, 210, 100, 44};
static const size_t alternating[] = {100, 1100, 100, 1100, 100, 1100};

// A round takes the pages of a thread that sleeps for three of them, and shares them.  It finds the gaps in them again.  Returns
// the most that was committed.
static int64_t drift_slowly(void) {
  enum { n_parts = 20, n_slow_phases = 3, nap_ms = 400 };
  rng_t   r = rng_make(20);
  int64_t before = pages_committed(), most = 0;
  for (size_t i = 0; i < n_slow_phases; i++) {
    for (size_t k = 0; k < n_parts; k++) {
      turn(&r, growing[i], LIVE / n_parts);
      sleep_ms(nap_ms);
    }
    if (pages_committed() - before > most) most = pages_committed() - before;
  }
  drop_all();
  mi_collect(true);
  return most;
}

static void* sleep_until_stop(void* arg) {
  mi_free(mi_malloc(1)); // so that the program has two threads that allocate
  while (!atomic_load(&must_stop)) sleep_ms(10);
  return arg;
}

// On a machine with much else to do rounds come late; then it tries again.
static void test_slow(void) {
  pthread_t thread;
  int64_t   committed = INT64_MAX;
  if (!HAS_GAPS) return;
  if (!HAS_ROUNDS) {
    test_skip("slow drift", "the library has no thread that makes rounds, or they do not close bins");
    return;
  }
  atomic_store(&must_stop, false);
  CHECK_EQ(pthread_create(&thread, NULL, &sleep_until_stop, NULL), 0);
  for (int i = 0; i < 3 && committed > 2 * (int64_t)LIVE; i++) committed = drift_slowly();
  CHECK_FOR(committed <= 2 * (int64_t)LIVE, "%lld KiB", (long long)committed / 1024);
  atomic_store(&must_stop, true);
  pthread_join(thread, NULL);
}

// ---- nothing drifts -------------------------------------------------------------------------------------------------------

static void test_steady(void) {
  rng_t r = rng_make(1);
  for (size_t i = 0; i < 8; i++) {
    for (size_t n = 0; n < LIVE;) {
      size_t size = 20 + rng_below(&r, 1000);
      add(size);
      n += size;
      while (n_bytes > LIVE) drop(rng_below(&r, n_blocks));
    }
    CHECK_EQ(in_gap_pages(), 0);
  }
  drop_all();
}

// ---- other calls, other threads -------------------------------------------------------------------------------------------

// Beside other threads, one that gets little processor time may lose its sparse pages to a round before it makes gap pages of
// them.  Then it tries again.
static void drift_some(uint64_t seed) {
  rng_t r = rng_make(seed);
  for (int i = 0; i < 8; i++) {
    drop_all();
    turn(&r, 44, LIVE);
    turn(&r, 210, LIVE);
    if (!HAS_GAPS || in_gap_pages() > 0) return;
  }
  CHECK(false);
}

static void test_calls(void) {
  size_t n_moved = 0;
  drift_some(2);
  for (size_t i = 0; i < n_blocks; i++) {
    size_t usable = mi_usable_size(blocks[i]);
    CHECK(usable >= sizes[i] && mi_realloc(blocks[i], usable) == blocks[i]);
    if (n_moved++ % 16 != 0) continue;
    blocks[i] = (unsigned char*)mi_realloc(blocks[i], usable + 1);
    check_block(i);
  }
  CHECK(n_moved > 0);
  for (size_t align = 32; align <= 2048; align *= 2) {
    void* p = mi_malloc_aligned(align, align);
    CHECK((uintptr_t)p % align == 0);
    mi_free(p);
  }
  for (size_t size = 16; size < 2000; size += 16) {
    size_t i = 0;
    char*  p = (char*)mi_zalloc(size);
    while (i < size && p[i] == 0) i++;
    CHECK_EQ(i, size);
    mi_free(p);
  }
  CHECK(mi_heap_check(NULL));
  drop_all();
}

static void* free_half(void* arg) {
  (void)arg;
  for (size_t i = n_blocks; i-- > 0;) {
    if (i % 2 == 0) drop(i);
  }
  return NULL;
}

static void* drift_thread(void* arg) {
  drift_some((uintptr_t)arg);
  return NULL;
}

static void run(void* (*start)(void*), void* arg) {
  pthread_t thread;
  pthread_create(&thread, NULL, start, arg);
  pthread_join(thread, NULL);
}

static void test_threads(void) {
  int64_t before = pages_committed();
  drift_some(3);
  run(&free_half, NULL);
  CHECK(mi_heap_check(NULL));
  rng_t r = rng_make(4);
  turn(&r, 480, LIVE); // with what the other has freed
  CHECK(mi_heap_check(NULL));
  drop_all();
  run(&drift_thread, (void*)5);
  CHECK(mi_heap_check(NULL));
  for (size_t i = 0; i < n_blocks; i++) check_block(i);
  free_half(NULL);
  CHECK(mi_heap_check(NULL));
  turn(&r, 480, LIVE); // in pages of the one that has ended
  CHECK(mi_heap_check(NULL));
  drop_all();
  mi_collect(true);
  CHECK_FOR(pages_committed() - before <= (int64_t)(100 * SLICE), "%lld KiB stay",
            (long long)(pages_committed() - before) / 1024);
}

static void* watch(void* arg) {
  while (!atomic_load(&must_stop)) {
    mi_stats_t_decl(stats);
    CHECK(mi_heap_stats_get(mi_heap_main(), &stats));
    sleep_ms(1); // else it has locks nearly all the time
  }
  return arg;
}

// Another thread reads the statistics, and so the maps of gap pages that come and go.
static void test_watched(void) {
  pthread_t thread;
  atomic_store(&must_stop, false);
  pthread_create(&thread, NULL, &watch, NULL);
  for (uint64_t seed = 10; seed < 13; seed++) {
    drift_some(seed);
    drop_all();
  }
  atomic_store(&must_stop, true);
  pthread_join(thread, NULL);
}

#if !defined(_WIN32) && !defined(__wasm__)
// Most of what is there lies in gap pages.
static void fill_gaps(void) {
  rng_t r = rng_make(9);
  drop_all();
  while (n_bytes < LIVE) add(200);
  for (size_t i = n_blocks; i > 0; i--) {
    if (i % 40 != 0) drop(i - 1);
  }
  while (n_bytes < LIVE) add(700 + rng_below(&r, 200));
  CHECK(!HAS_GAPS || in_gap_pages() > n_blocks / 2);
}

static void* fork_in_thread(void* arg) {
  int64_t share = (arg != NULL ? 2 : 1); // so little stays when all is freed
  int     status = 1;
  int64_t before = pages_committed();
  pid_t   child = fork();
  if (child == 0) {
    rng_t r = rng_make(8);
    for (size_t i = 0; i < n_blocks; i++) check_block(i);
    turn(&r, 100, LIVE); // makes use of what orphans leave
    CHECK(mi_heap_check(NULL));
    CHECK_FOR(!HAS_GAPS || pages_committed() <= before + before / 4, "%lld of %lld", (long long)pages_committed(),
              (long long)before);
    drop_all();
    mi_collect(true);
    CHECK(mi_heap_check(NULL));
    CHECK_FOR(!HAS_GAPS || pages_committed() <= before / share, "%lld of %lld", (long long)pages_committed(),
              (long long)before);
    _exit(check_n_failed != 0);
  }
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
  return arg;
}

static void test_fork(void) {
  drift_some(7);
  fork_in_thread(NULL);
  run(&fork_in_thread, NULL);
  fill_gaps();
  run(&fork_in_thread, blocks); // the child does not have the thread whose pages they are
  drop_all();
}
#else
static void test_fork(void) {}
#endif

int main(void) {
  test_steady();
  test_drift(growing);
  test_drift(shrinking);
  test_drift(alternating);
  test_calls();
  test_threads();
  test_watched();
  test_fork();
  test_slow();
  return check_result();
}
