// Proves: under a hard limit a program can use most of it in live blocks, in whatever sizes and whatever it did before, and its
// resident memory stays below the limit and little more; threads around the limit lose nothing, what one of them sets holds as a
// whole, and of what all of them find the hook is told once; the child of a fork has the limit; a program with one thread keeps one
// thread.
//
//   pattern                               live blocks, of the limit (asserted)
//   one size                              0.90, with guarded blocks among them 0.85, of a heap's 0.75
//   large blocks                          0.85
//   one size in holes of another          0.85
//   mixed sizes                           0.70, after random frees 0.65
//   one size in holes of mixed sizes      0.60
//   eight threads, mixed sizes            0.40: each has pages of its own for some forty sizes, of 64 to 512 KiB
#include "../check.h"
#include <mimalloc-limit.h>
#include <mimalloc-stats.h>
#include <mimalloc.h>
#include <pthread.h>
#include "base/mode.h"
#include "tasks.h"

enum { n_max = 2000000, n_threads = 8 };

#define LIMIT        (64 * MiB)
#define HEAP_LIMIT   (8 * MiB)
// Descriptors (1/1000, mapped ahead), two huge pages that are not full, what libc and the test write to.
#define SLACK        (6 * MiB)
// In builds that put something between the library and the program, blocks are larger and wait longer: only the bound on memory is
// checked then.
#define SHARES_COUNT (!MI_CHECKED && !TEST_SANITIZED)
// With a tool that watches every block none is sampled.
#define SAMPLES      (!MI_TRACK)

static void*    blocks[n_max];
static uint32_t sizes[n_max];
static size_t   base_rss, base_used;

typedef size_t next_size_t(rng_t* rng);

// clang-format off
static size_t size_48(rng_t* rng)    { (void)rng; return 48; }
static size_t size_1000(rng_t* rng)  { (void)rng; return 1000; }
static size_t size_30k(rng_t* rng)   { (void)rng; return 30 * KiB; }
static size_t size_mixed(rng_t* rng) { return 1 + rng_size(rng, 32 * KiB); }
static size_t size_large(rng_t* rng) { return 600 * KiB + rng_below(rng, 3 * MiB); }
// clang-format on

// As many blocks as there can be, all written to; their bytes.
static size_t fill(rng_t* rng, next_size_t* next_size, size_t* n) {
  size_t live = 0;
  for (int n_refused = 0; *n < n_max && n_refused < 4;) {
    size_t size = next_size(rng);
    void*  p = mi_malloc(size);
    if (p == NULL) {
      n_refused++;
      continue;
    }
    memset(p, 0x5A, size);
    blocks[*n] = p;
    sizes[(*n)++] = (uint32_t)size;
    live += size;
  }
  return live;
}

static void free_all(size_t* n) {
  while (*n > 0) mi_free(blocks[--*n]);
}

static void check_bounds(const char* what, size_t live, double share) {
  size_t hard;
  mi_limit_get(&hard, NULL);
  double have = (double)live / (double)LIMIT;
  printf("%-40s live %.3f of the limit (at least %.2f)\n", what, have, share);
  CHECK_FOR(have >= share || !SHARES_COUNT, "%s: %.3f", what, have);
  CHECK_FOR(mi_limit_used() <= hard, "%s: %zu", what, mi_limit_used());
  CHECK(rss_within("resident", minus(rss_now(), base_rss), LIMIT + SLACK));
}

static void check_pattern(const char* what, uint64_t seed, next_size_t* next_size, double share) {
  rng_t  rng = rng_make(seed);
  size_t n = 0, live = fill(&rng, next_size, &n);
  check_bounds(what, live, share);
  // Freed and taken again in random places: it stays possible.
  for (size_t i = 0; i < n / 2; i++) {
    size_t k = rng_below(&rng, n);
    mi_free(blocks[k]);
    live -= sizes[k];
    blocks[k] = blocks[--n];
    sizes[k] = sizes[n];
  }
  live += fill(&rng, next_size, &n);
  check_bounds("  the same after random frees", live, share - 0.05);
  free_all(&n);
}

// Blocks that end a little behind a huge page, replaced at random: what is behind them must not be resident.
static void check_replaced(uint64_t seed) {
  rng_t        rng = rng_make(seed);
  const size_t limit = 4 * LIMIT;
  size_t       n = 0;
  CHECK_EQ(mi_limit_set(base_used + limit, 0), 0);
  for (size_t i = 0; i < 4000; i++) {
    size_t size = 2100 * KiB + rng_below(&rng, 200 * KiB);
    void*  p = mi_malloc(size);
    if (p != NULL) blocks[n++] = memset(p, 1, size);
    for (size_t k = 0; p == NULL && k < 3 && n > 0; k++) {
      size_t j = rng_below(&rng, n--);
      mi_free(blocks[j]);
      blocks[j] = blocks[n];
    }
  }
  CHECK(rss_within("resident after large blocks", minus(rss_now(), base_rss), limit + SLACK));
  free_all(&n);
  CHECK_EQ(mi_limit_set(base_used + LIMIT, 0), 0);
}

// Guarded blocks, which are the less dense, leave nearly all of it to others.
static void check_guarded(uint64_t seed) {
  long rate = mi_option_get(mi_option_guarded_sample_rate);
  mi_option_set(mi_option_guarded_sample_rate, 1);
  check_pattern("48 bytes, guarded as far as they may be", seed, &size_48, 0.85);
  mi_option_set(mi_option_guarded_sample_rate, rate);
}

static size_t count_guarded(void) {
  mi_stats_t_decl(stats);
  CHECK(mi_stats_get(&stats));
  return (size_t)stats.malloc_guarded_count.total;
}

// Blocks of a heap until it refuses: as many of them are guarded as may be, whatever its blocks were before.
static void fill_guarded(mi_heap_t* heap, size_t* n) {
  size_t n_before = count_guarded(), size = 48;
  for (void* p; (p = mi_heap_malloc(heap, size)) != NULL;) blocks[(*n)++] = p;
  double have = (double)(*n * size) / (double)HEAP_LIMIT;
  printf("%-40s live %.3f of the limit\n", "a heap, guarded as far as it may be", have);
  CHECK_FOR(have >= 0.75 || !SHARES_COUNT, "%.3f", have);
  size_t n_guarded = count_guarded() - n_before;
  CHECK_FOR(n_guarded == HEAP_LIMIT / 16 / (64 * KiB) || !SAMPLES, "%zu guarded", n_guarded);
}

// The same of a heap's limit.
static void check_guarded_heap(void) {
  size_t n = 0;
  long   rate = mi_option_get(mi_option_guarded_sample_rate);
  mi_option_set(mi_option_guarded_sample_rate, 1);
  for (int round = 0; round < 4; round++) {
    mi_heap_t* heap = mi_heap_new();
    CHECK_EQ(mi_heap_limit_set(heap, HEAP_LIMIT, 0), 0);
    fill_guarded(heap, &n);
    free_all(&n);
    mi_collect(true); // blocks that wait after their free count
    fill_guarded(heap, &n);
    if (round % 2 == 0) mi_heap_delete(heap); // its blocks are the main heap's now
    else mi_heap_destroy(heap);
    if (round % 2 == 0) free_all(&n);
    n = 0;
  }
  mi_option_set(mi_option_guarded_sample_rate, rate);
}

// Half of the memory is freed, a run of blocks at a time, and taken in another size.
static void check_holes(const char* what, uint64_t seed, next_size_t* first, next_size_t* second, size_t run,
                        double share) {
  rng_t  rng = rng_make(seed);
  size_t n = 0, live = fill(&rng, first, &n), bytes = 0, k = 0;
  bool   is_hole = false;
  for (size_t i = 0; i < n; i++) {
    bytes += sizes[i];
    if (bytes > run) {
      is_hole = !is_hole;
      bytes = 0;
    }
    if (is_hole) {
      live -= sizes[i];
      mi_free(blocks[i]);
    }
    else {
      blocks[k] = blocks[i];
      sizes[k++] = sizes[i];
    }
  }
  n = k;
  live += fill(&rng, second, &n);
  check_bounds(what, live, share);
  free_all(&n);
}

// ---- threads -----------------------------------------------------------------------------------------------------------

static pthread_barrier_t barrier;
static size_t            live_of[n_threads];

static void* fill_in_thread(void* arg) {
  size_t index = (size_t)arg;
  rng_t  rng = rng_make(index);
  enum { n_own = 60000 };
  void** own = (void**)mi_calloc(n_own, sizeof(void*));
  size_t n = 0;
  pthread_barrier_wait(&barrier);
  for (int n_refused = 0; own != NULL && n < n_own && n_refused < 4;) {
    size_t size = size_mixed(&rng);
    own[n] = mi_malloc(size);
    if (own[n] == NULL) {
      n_refused++;
      continue;
    }
    memset(own[n++], 1, size);
    live_of[index] += size;
  }
  pthread_barrier_wait(&barrier);
  if (index == 0) {
    size_t live = 0;
    for (size_t i = 0; i < n_threads; i++) live += live_of[i];
    check_bounds("eight threads, mixed sizes", live, 0.40);
  }
  pthread_barrier_wait(&barrier);
  while (n > 0) mi_free(own[--n]);
  mi_free(own);
  return NULL;
}

static void run_threads(void* (*run)(void*)) {
  pthread_t threads[n_threads];
  pthread_barrier_init(&barrier, NULL, n_threads);
  for (size_t i = 0; i < n_threads; i++) CHECK_EQ(pthread_create(&threads[i], NULL, run, (void*)i), 0);
  for (size_t i = 0; i < n_threads; i++) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&barrier);
}

// ---- around the limit -----------------------------------------------------------------------------------------------------

enum { n_shared = 4096 };

typedef struct shared_s {
  pthread_mutex_t lock;
  void*           block;
  size_t          size;
  uint64_t        key;
} shared_t;

static shared_t shared[n_shared];
static size_t   n_refused, n_granted; // atomically

static void count_hook(mi_limit_event_t event, mi_heap_t* heap, size_t used, void* arg) {
  (void)event, (void)heap, (void)used;
  __atomic_fetch_add((size_t*)arg, 1, __ATOMIC_RELAXED);
  mi_free(mi_malloc(5000));
}

static void replace(shared_t* slot, size_t size, uint64_t key) {
  CHECK(pattern_check(slot->block, slot->size, slot->key) == slot->size);
  size_t keep = slot->size < size ? slot->size : size;
  void*  p = ((key & 1) != 0 ? mi_realloc(slot->block, size) : mi_malloc(size));
  __atomic_fetch_add(p == NULL ? &n_refused : &n_granted, 1, __ATOMIC_RELAXED);
  if (p == NULL) { // what was to be resized is as it was
    CHECK(pattern_check(slot->block, slot->size, slot->key) == slot->size);
    mi_free(slot->block);
    size = 0;
  }
  else if ((key & 1) == 0) {
    mi_free(slot->block);
  }
  else {
    CHECK(pattern_check(p, keep, slot->key) == keep);
  }
  pattern_fill(p, 0, size, key);
  slot->block = p;
  slot->size = size;
  slot->key = key;
}

static double stress_end;

static void* stress_in_thread(void* arg) {
  rng_t  rng = rng_make((uint64_t)(uintptr_t)arg + 100);
  size_t hard;
  mi_limit_get(&hard, NULL);
  while (now_seconds() < stress_end) {
    for (int i = 0; i < 100; i++) {
      shared_t* slot = &shared[rng_below(&rng, n_shared)];
      size_t    size = (rng_below(&rng, 50) == 0 ? rng_size(&rng, 3 * MiB) : rng_size(&rng, 60 * KiB));
      pthread_mutex_lock(&slot->lock);
      replace(slot, size, rng_next(&rng));
      pthread_mutex_unlock(&slot->lock);
    }
    CHECK_FOR(mi_limit_used() <= hard + 32 * MiB, "%zu", mi_limit_used()); // contents that are moving count twice
  }
  return NULL;
}

static void check_stress(uint64_t seed) {
  size_t n_called = 0, n = 0, hard;
  mi_limit_get(&hard, NULL);
  mi_limit_set(hard, hard - LIMIT / 8);
  mi_limit_hook(&count_hook, &n_called);
  for (size_t i = 0; i < n_shared; i++) pthread_mutex_init(&shared[i].lock, NULL);
  stress_end = now_seconds() + 2.0 * (double)test_scale();
  run_threads(&stress_in_thread);
  printf("%zu granted, %zu refused, hook %zu times\n", n_granted, n_refused, n_called);
  CHECK(n_refused > 0 && n_granted > n_refused && n_called > 0);
  CHECK(mi_limit_used() <= hard);
  CHECK(mi_heap_check(NULL));
  CHECK(rss_within("resident after threads", minus(rss_now(), base_rss), LIMIT + SLACK + 4 * MiB)); // and their stacks
  for (size_t i = 0; i < n_shared; i++) {
    CHECK(pattern_check(shared[i].block, shared[i].size, shared[i].key) == shared[i].size);
    mi_free(shared[i].block);
  }
  mi_limit_hook(NULL, NULL);
  mi_limit_set(hard, 0);
  rng_t  rng = rng_make(seed);
  size_t live = fill(&rng, &size_mixed, &n);
  check_bounds("mixed sizes after threads", live, 0.70); // theaps of threads that have ended hold little
  free_all(&n);
}

// ---- limits and hooks of several threads ----------------------------------------------------------------------------------

// Either both of a call hold, or both of another one.
static void* set_in_thread(void* arg) {
  size_t i = (size_t)arg, hard, soft;
  pthread_barrier_wait(&barrier);
  for (size_t n = 0; n < 200000; n++) {
    if (i % 2 == 0) CHECK_EQ(mi_limit_set(0, 0), 0);
    else CHECK_EQ(mi_limit_set(1024 * MiB, 768 * MiB), 0);
    mi_limit_get(&hard, &soft);
    CHECK_FOR(hard == 0 ? soft == 0 : soft == 768 * MiB, "hard %zu, soft %zu", hard, soft);
  }
  return NULL;
}

static void check_setting(void) {
  size_t hard, soft;
  mi_limit_get(&hard, &soft);
  run_threads(&set_in_thread);
  CHECK_EQ(mi_limit_set(hard, soft), 0);
}

enum { n_rounds = 100 };

static size_t n_told[2]; // of what is exceeded, and of what is refused; atomically

static void count_event(mi_limit_event_t event, mi_heap_t* heap, size_t used, void* arg) {
  (void)heap, (void)used, (void)arg;
  __atomic_fetch_add(&n_told[event == mi_limit_soft ? 0 : 1], 1, __ATOMIC_RELAXED);
}

// All cross the soft limit at the same time, of which the hook is told once; then the hard one.
static void* cross_in_thread(void* arg) {
  void* mine[2];
  (void)arg;
  pthread_barrier_wait(&barrier);
  for (size_t i = 0; i < 2; i++) mine[i] = mi_malloc(MiB);
  pthread_barrier_wait(&barrier);
  CHECK(mi_malloc(64 * MiB) == NULL);
  for (size_t i = 0; i < 2; i++) mi_free(mine[i]);
  return NULL;
}

static void check_told_once(void) {
  size_t hard, soft, n_twice[2] = {0, 0};
  mi_limit_get(&hard, &soft);
  mi_limit_hook(&count_event, NULL);
  for (size_t round = 0; round < n_rounds; round++) {
    mi_collect(true);
    size_t used = mi_limit_used();
    CHECK_EQ(mi_limit_set(used + 48 * MiB, used + 8 * MiB), 0);
    n_told[0] = n_told[1] = 0;
    double start = now_seconds();
    run_threads(&cross_in_thread);
    if (now_seconds() - start > 0.09) continue; // it may be told again
    for (size_t i = 0; i < 2; i++) n_twice[i] += (n_told[i] > 1);
  }
  CHECK_FOR(n_twice[0] + n_twice[1] == 0, "%zu and %zu times in %d", n_twice[0], n_twice[1], (int)n_rounds);
  mi_limit_hook(NULL, NULL);
  CHECK_EQ(mi_limit_set(hard, soft), 0);
}

// ---- the rest -----------------------------------------------------------------------------------------------------------

// ---- a cache that shrinks when it is told ---------------------------------------------------------------------------------

static size_t cache_first, cache_n, n_cache_told;

static void shrink_cache(mi_limit_event_t event, mi_heap_t* heap, size_t used, void* arg) {
  (void)used, (void)arg;
  if (heap != NULL || event != mi_limit_soft) return;
  n_cache_told++;
  for (size_t n = cache_n / 4; n > 0; n--, cache_n--, cache_first++) mi_free(blocks[cache_first % n_max]);
}

// It is told each time, whatever is free and waits then, and so never meets the hard limit.
static void check_cache(void) {
  size_t n_refused = 0;
  mi_limit_hook(&shrink_cache, NULL);
  CHECK_EQ(mi_limit_set(mi_limit_used() + 48 * MiB, mi_limit_used() + 32 * MiB), 0);
  for (size_t i = 0; i < 300000; i++) {
    void* p = mi_malloc(500 + i % 1000);
    if (p == NULL) n_refused++;
    else blocks[(cache_first + cache_n++) % n_max] = memset(p, 1, 500 + i % 1000);
  }
  CHECK_FOR(n_refused == 0, "%zu refused, told %zu times", n_refused, n_cache_told);
  CHECK_FOR(n_cache_told > 5, "%zu", n_cache_told);
  for (; cache_n > 0; cache_n--, cache_first++) mi_free(blocks[cache_first % n_max]);
  mi_limit_hook(NULL, NULL);
  mi_limit_set(0, 0);
}

static void part_fork(void) {
  rng_t  rng = rng_make(3);
  size_t n = 0, live = fill(&rng, &size_mixed, &n), hard;
  mi_limit_get(&hard, NULL);
  CHECK(hard != 0 && mi_limit_used() <= hard);
  CHECK(live >= LIMIT / 2 || !SHARES_COUNT);
  free_all(&n);
  CHECK(mi_malloc(LIMIT + 8 * MiB) == NULL);
  CHECK_EQ(mi_limit_set(0, 0), 0);
  void* p = mi_malloc(LIMIT + 8 * MiB);
  CHECK(p != NULL);
  mi_free(p);
}

int main(int argc, char** argv) {
  uint64_t seed = test_seed(argc, argv);
  watchdog(200);
  mi_option_set(mi_option_show_errors, 0);
  memset(blocks, 0, sizeof(blocks)); // they are resident from here on
  memset(sizes, 0, sizeof(sizes));
  mi_free(mi_malloc(1));
  base_rss = rss_now();
  base_used = mi_limit_used();
  CHECK_EQ(mi_limit_set(base_used + LIMIT, 0), 0);
  check_replaced(seed); // before others have huge pages
  check_pattern("48 bytes", seed, &size_48, 0.90);
  check_pattern("30 KiB", seed, &size_30k, 0.90);
  check_pattern("mixed up to 32 KiB", seed, &size_mixed, 0.70);
  check_pattern("large blocks", seed, &size_large, 0.85);
  check_pattern("1000 bytes", seed, &size_1000, 0.90);
  check_guarded(seed);
  check_guarded_heap();
  check_holes("30 KiB in holes of 48 bytes", seed, &size_48, &size_30k, MiB, 0.85);
  check_holes("large in holes of 1000 bytes", seed, &size_1000, &size_large, 16 * MiB, 0.85);
  check_holes("mixed in holes of large blocks", seed, &size_large, &size_mixed, 4 * MiB, 0.70);
  check_holes("1000 bytes in holes of mixed", seed, &size_mixed, &size_1000, 16 * MiB, 0.60);
  if (!TEST_SANITIZED) CHECK_EQ(task_count(), 1);
  in_child("a child", &part_fork, 60);
  in_child("a cache", &check_cache, 60);
  run_threads(&fill_in_thread);
  check_setting();
  check_told_once();
  check_stress(seed);
  in_child("a child of a process that had threads", &part_fork, 60);
  return check_result();
}
