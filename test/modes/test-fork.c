// Proves: a process may fork at any moment while its other threads are inside the allocator: the child can use every
// part of it, sees its inherited blocks unchanged, can start threads, and ends; what its statistics count as it happens is what a
// walk over its pages finds.
#include "../check.h"
#include <mimalloc-stats.h>
#include <mimalloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include "forks.h"
#include "support.h"

enum { n_workers = 4, n_inherited = 200 };

static atomic_bool    must_stop;
static void*          inherited[n_inherited];
static _Atomic(void*) handed[64];

// Keeps every lock of the allocator busy: all sizes, blocks of other threads, short threads, collects.
static void* short_thread(void* arg) {
  (void)arg;
  void* p[20];
  for (size_t i = 0; i < COUNT_OF(p); i++) p[i] = mi_malloc(100 * i + 1);
  for (size_t i = 0; i < COUNT_OF(p); i++) mi_free(p[i]);
  return NULL;
}

static void* work(void* arg) {
  rng_t rng = rng_make((uint64_t)(uintptr_t)arg);
  for (size_t n = 0; !atomic_load(&must_stop); n++) {
    rest_if_due();
    size_t kind = rng_below(&rng, 1000);
    size_t size = kind < 900 ? rng_size(&rng, 4000) : kind < 990 ? rng_size(&rng, 400 * KiB) : rng_size(&rng, 40 * MiB);
    void*  p = mi_malloc(size);
    if (kind < 100) p = mi_realloc(p, size + size / 2 + 1);
    if (kind >= 990) p = mi_realloc(p, 40 * MiB + 2 * size); // a mapping, which moves
    mi_free(atomic_exchange(&handed[rng_below(&rng, COUNT_OF(handed))], p));
    if (kind == 999) mi_collect(n % 2 == 0);
    if (kind == 500 && rng_below(&rng, 10) == 0) {
      pthread_t t;
      if (pthread_create(&t, NULL, &short_thread, NULL) == 0) pthread_join(t, NULL);
    }
  }
  return NULL;
}

// There is one heap, and no other thread yet.
static bool numbers_add_up(void) {
  mi_stats_t counted, found;
  mi_stats_init(&counted);
  mi_stats_init(&found);
  if (!mi_stats_get(&counted) || !mi_heap_stats_get(mi_heap_main(), &found)) return false;
  bool ok = (counted.pages.current == found.pages.current && counted.malloc_huge.current == found.malloc_huge.current &&
             counted.page_committed.current == found.page_committed.current);
  if (!ok) {
    fprintf(stderr, "pages %lld, found %lld; bytes of large blocks %lld, found %lld\n",
            (long long)counted.pages.current, (long long)found.pages.current, (long long)counted.malloc_huge.current,
            (long long)found.malloc_huge.current);
  }
  return ok;
}

static int run_child(size_t number) {
  if (!numbers_add_up()) return 6;
  for (size_t i = 0; i < n_inherited; i++) {
    size_t size = 10 + i * i;
    if (pattern_check(inherited[i], size, i) != size) return 1;
    if ((number + i) % 3 == 0) mi_free(inherited[i]);
  }
  for (size_t size = 1; size < 3 * MiB; size = size * 2 + 1) {
    uint8_t* p = (uint8_t*)mi_calloc(1, size);
    if (p == NULL || !is_zero(p, 0, size)) return 2;
    p = (uint8_t*)mi_realloc(p, 2 * size);
    if (p == NULL) return 3;
    mi_free(p);
  }
  if (!TEST_SANITIZED && number % 4 == 0) {
    pthread_t t;
    if (pthread_create(&t, NULL, &short_thread, NULL) != 0) return 4;
    pthread_join(t, NULL);
  }
  if (number % 5 == 0) mi_collect(true);
  if (number % 50 == 0) { // a grandchild
    pid_t pid = fork();
    if (pid == 0) {
      alarm(child_seconds);
      void* p = mi_malloc(5000);
      mi_free(p);
      _exit(p == NULL);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    if (status != 0) return 5;
  }
  return 0;
}

// ---- the first fork -------------------------------------------------------------------------------------------------

// A process whose threads make their first allocations just when it forks.
static int fork_at_start(void) {
  pthread_t threads[n_workers];
  for (size_t i = 0; i < n_workers; i++) {
    if (pthread_create(&threads[i], NULL, &short_thread, NULL) != 0) return 1;
  }
  pid_t pid = fork();
  if (pid == 0) {
    alarm(child_seconds);
    short_thread(NULL);
    _exit(0);
  }
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) != pid) status = -1;
  for (size_t i = 0; i < n_workers; i++) pthread_join(threads[i], NULL);
  return status != 0;
}

// 1 of some hundred of these hung when fork was only prepared for by the second thread.
static void check_first_forks(const char* program) {
  if (TEST_TSAN) return; // it takes the threads that the child has not for a leak
  size_t n = TEST_SANITIZED ? 20 : 100 * test_scale(), n_bad = 0;
  for (size_t i = 0; i < n && n_bad == 0; i++) {
    pid_t pid = fork();
    if (pid == 0) {
      setenv("MI_TEST_FORK_AT_START", "1", 1);
      execl("/proc/self/exe", program, (char*)NULL);
      _exit(99);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    n_bad += (status != 0);
    CHECK_FOR(status == 0, "first fork %zu: status %x", i, (unsigned)status);
  }
}

int main(int argc, char** argv) {
  if (test_env("MI_TEST_FORK_AT_START", 0) != 0) return fork_at_start();
  uint64_t seed = test_seed(argc, argv);
  watchdog(250);
  check_first_forks(argv[0]);
  pthread_t workers[n_workers];
  for (size_t i = 0; i < n_inherited; i++) {
    inherited[i] = mi_malloc(10 + i * i);
    pattern_fill(inherited[i], 0, 10 + i * i, i);
  }
  for (size_t i = 0; i < n_workers; i++) {
    CHECK_EQ(pthread_create(&workers[i], NULL, &work, (void*)(uintptr_t)(seed + i)), 0);
  }
  fork_often(1000, &run_child);
  atomic_store(&must_stop, true);
  for (size_t i = 0; i < n_workers; i++) pthread_join(workers[i], NULL);
  for (size_t i = 0; i < n_inherited; i++) {
    CHECK(pattern_check(inherited[i], 10 + i * i, i) == 10 + i * i);
    mi_free(inherited[i]);
  }
  for (size_t i = 0; i < COUNT_OF(handed); i++) mi_free(atomic_exchange(&handed[i], NULL));
  return check_result();
}
