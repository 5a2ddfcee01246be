// Proves: tens of thousands of threads come and go, that end in every way (return, pthread_exit, cancelled while they wait,
// detached), with blocks that others free and blocks of others that they free: memory, mappings and live threads stay what they
// were.
//
// 2000 threads; 10^5 with MI_TEST_SCALE=50 (make storms).
#include <limits.h>

#include <mimalloc-stats.h>

#include "../modes/tasks.h"
#include "base/mode.h"
#include "storm.h"

enum { n_at_once = 16, n_steps = 20 };

typedef enum end_e { by_return, by_exit, by_detach, by_cancel, n_ends_all } end_t;

// The sanitizers keep something of each cancelled thread, and its stack stays poisoned for the next one.
enum { n_ends = TEST_SANITIZED ? by_cancel : n_ends_all };

static atomic_size_t  n_detached; // that are not done yet
static pthread_attr_t small_stack;

static void* live(void* arg) {
  size_t number = (size_t)(uintptr_t)arg;
  rng_t  rng = rng_make(number);
  for (size_t i = 0; i < n_steps; i++) storm_step(&rng);
  switch (number % n_ends) {
    case by_exit: pthread_exit(NULL);
    case by_cancel:
      for (;;) sleep_ms(1000); // until it is cancelled
    case by_detach: atomic_fetch_sub(&n_detached, 1); return NULL;
    default: return NULL;
  }
}

static void wave(size_t first) {
  pthread_t threads[n_at_once];
  for (size_t i = 0; i < n_at_once; i++) {
    if ((first + i) % n_ends == by_detach) atomic_fetch_add(&n_detached, 1);
    CHECK_EQ(pthread_create(&threads[i], &small_stack, &live, (void*)(uintptr_t)(first + i)), 0);
  }
  for (size_t i = 0; i < n_at_once; i++) {
    if ((first + i) % n_ends == by_detach) {
      pthread_detach(threads[i]);
      continue;
    }
    if ((first + i) % n_ends == by_cancel) pthread_cancel(threads[i]);
    pthread_join(threads[i], NULL);
  }
  while (atomic_load(&n_detached) > 0) sched_yield();
}

static int64_t live_threads(void) {
  mi_stats_t_decl(stats);
  return mi_stats_get(&stats) ? stats.threads.current : -1;
}

// Waits until detached threads are gone, which are on their way out for a moment: until the library counts `n` threads, and the system
// has at most the main one, the library's and a sanitizer's.
static void await_threads(int64_t n) {
  size_t n_most = 2 + TEST_SANITIZED;
  for (int i = 0; i < 3000 && (task_count() > n_most || live_threads() != n); i++) sleep_ms(10);
  CHECK(task_count() <= n_most);
  CHECK_EQ(live_threads(), n);
}

static void run(size_t n_threads, storm_memory_t* memory) {
  for (size_t n = 0; n < n_threads; n += n_at_once) {
    wave(n);
    if (n / n_at_once % 16 == 0) storm_look(memory);
  }
  printf("%zu threads\n", n_threads);
}

int main(int argc, char** argv) {
  test_seed(argc, argv);
  watchdog(200);
  pthread_attr_init(&small_stack);
  pthread_attr_setstacksize(&small_stack, PTHREAD_STACK_MIN + 128 * KiB);
  mi_free(mi_malloc(1));
  int64_t        n_live = live_threads();
  storm_memory_t first = storm_memory();
  run(400, &first); // stacks that the C library keeps, and the library's own thread
  storm_clear();
  mi_collect(true);
  await_threads(n_live);
  storm_memory_t memory = storm_memory();
  run(TEST_SANITIZED ? 400 : 2000 * test_scale(), &memory);
  storm_clear();
  CHECK_EQ(atomic_load(&storm_n_wrong), 0);
  CHECK_EQ(atomic_load(&storm_n_refused), 0);
  await_threads(n_live);
  storm_check(&memory, 48 * MiB, 6 * MiB, 60 + (MI_HARDENED ? 4000 : 0));
  return check_result();
}
