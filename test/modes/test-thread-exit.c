// Proves: a thread may allocate and free until its very end, in the destructors of pthread keys that were made before
// and after the allocator's own, in all rounds of them; and 10^5 threads (a soak; fewer by default) leave nothing
// behind: resident memory stays flat and the number of live threads comes back to what it was.
#define _GNU_SOURCE
#include "../check.h"
#include <limits.h>
#include <mimalloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include "base/mode.h"
#include "support.h"
#if defined(__has_include)
  #if __has_include(<mimalloc-stats.h>)
    #include <mimalloc-stats.h>
    #define HAS_STATS 1
  #endif
#endif
#if !defined(HAS_STATS)
  #define HAS_STATS 0
#endif
#if defined(__EMSCRIPTEN_PTHREADS__)
  #include <emscripten/threading.h>
#endif

// ThreadSanitizer takes a thread down in the last round, and then must not be called any more.
enum { n_keys = 4, n_at_once = 8, n_blocks = 50, rounds = TEST_TSAN ? 2 : PTHREAD_DESTRUCTOR_ITERATIONS };

static pthread_key_t          keys[n_keys];
static atomic_size_t          n_destructions, n_wrong;
static _Thread_local unsigned round_of[n_keys];

static void note(bool cond) {
  if (!cond) atomic_fetch_add(&n_wrong, 1);
}

// Frees what the thread left, leaves something new, and asks to be called once more.
static void destroy(size_t index, void* value) {
  atomic_fetch_add(&n_destructions, 1);
  note(mi_usable_size(value) >= 100);
  mi_free(value);
  void* blocks[20];
  for (size_t i = 0; i < COUNT_OF(blocks); i++) {
    blocks[i] = i % 5 == 0 ? mi_calloc(1, 3000 * (i + 1)) : mi_malloc(16 << (i % 8));
    note(blocks[i] != NULL);
    if (blocks[i] != NULL) memset(blocks[i], 0xAB, 16);
  }
  for (size_t i = 0; i < COUNT_OF(blocks); i++) mi_free(blocks[i]);
  if (++round_of[index] < rounds) {
    void* again = mi_malloc(100);
    note(again != NULL);
    pthread_setspecific(keys[index], again);
  }
}

static void destroy_0(void* value) {
  destroy(0, value);
}
static void destroy_1(void* value) {
  destroy(1, value);
}
static void destroy_2(void* value) {
  destroy(2, value);
}
static void destroy_3(void* value) {
  destroy(3, value);
}

// Two keys before the allocator can have made its own.
__attribute__((constructor(101))) static void make_early_keys(void) {
  pthread_key_create(&keys[0], &destroy_0);
  pthread_key_create(&keys[1], &destroy_1);
}

static void* short_life(void* arg) {
  size_t number = (size_t)(uintptr_t)arg;
  for (size_t i = 0; i < n_keys; i++) pthread_setspecific(keys[i], mi_malloc(100 + i));
  void* blocks[n_blocks];
  for (size_t i = 0; i < COUNT_OF(blocks); i++) {
    blocks[i] = mi_malloc((number * 31 + i * 57) % 4000 + 1);
    note(blocks[i] != NULL);
  }
  for (size_t i = 0; i < COUNT_OF(blocks); i++) mi_free(blocks[i]);
  if (number % 16 == 0) mi_thread_done(); // a program may end its part by hand
  return NULL;
}

static void run_threads(size_t n) {
  pthread_t threads[n_at_once];
  for (size_t i = 0; i < n; i += n_at_once) {
    for (size_t k = 0; k < n_at_once; k++)
      note(pthread_create(&threads[k], NULL, &short_life, (void*)(uintptr_t)(i + k)) == 0);
    for (size_t k = 0; k < n_at_once; k++) pthread_join(threads[k], NULL);
  }
}

static int64_t live_threads(void) {
#if HAS_STATS
  mi_stats_t_decl(stats);
  if (mi_stats_get(&stats)) return stats.threads.current;
#endif
  return 1;
}

// This one; and where Emscripten runs main in a worker, the thread that ran the constructors, which stays to the end.
static int64_t first_threads(void) {
#if defined(__EMSCRIPTEN_PTHREADS__)
  if (!emscripten_is_main_runtime_thread()) return 2;
#endif
  return 1;
}

int main(int argc, char** argv) {
  test_seed(argc, argv);
  watchdog(200);
  mi_free(mi_malloc(10));
  pthread_key_create(&keys[2], &destroy_2);
  pthread_key_create(&keys[3], &destroy_3);
  size_t  n_threads = TEST_SANITIZED ? 400 : 2000 * test_scale() > 100000 ? 100000 : 2000 * test_scale();
  int64_t n_first = first_threads();
  CHECK_EQ(live_threads(), n_first);
  run_threads(200);
  int64_t live_before = live_threads();
  size_t  rss_before = rss_now(), mappings_before = mapping_count();
  atomic_store(&n_destructions, 0);
  run_threads(n_threads);
  printf("%zu threads, %zu destructor calls\n", n_threads, atomic_load(&n_destructions));
  CHECK(atomic_load(&n_wrong) == 0);
  CHECK(atomic_load(&n_destructions) == n_threads * n_keys * rounds);
  // Whatever their number; beside busy processes more of them live at a time, and leave more for the next.
  CHECK(rss_within("growth of resident memory", minus(rss_now(), rss_before), 6 * MiB));
  // The kernel does not join again what gaps between pages had parted, for as many pages as there were at once.
  size_t growth = minus(mapping_count(), mappings_before), growth_max = 20 + (MI_HARDENED ? n_at_once * n_blocks : 0);
  CHECK_FOR(growth <= growth_max, "%zu more mappings, at most %zu", growth, growth_max);
  CHECK_EQ(live_threads(), live_before);
  CHECK_EQ(live_threads(), n_first);
  return check_result();
}
