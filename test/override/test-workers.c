// Proves, where memory only grows and there are threads: what a thread had is had by those after it, whether it freed its blocks or
// others did, and whether the thread ended, was detached, or left blocks to the destructors of its keys; and no thread is
// forgotten.
#include "../check.h"
#include <mimalloc-stats.h>
#include <mimalloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include "../modes/support.h"

enum { n_at_once = 4, n_blocks = 400, n_first = 8, n_rounds = 40 };

static pthread_key_t keys[2];
static atomic_size_t n_ended, n_wrong;

// All that the program has, its own data too.
static size_t memory_size(void) {
  return __builtin_wasm_memory_size(0) * 64 * KiB;
}

typedef struct work_s {
  size_t number;
  void*  left[n_blocks / 2]; // for the thread that joins
} work_t;

static void destroy(void* blocks) {
  void** all = (void**)blocks;
  void*  late = malloc(5000); // in the last pass too
  for (size_t i = 0; i < 100; i++) free(all[i]);
  free(all);
  free(late);
}

static void* keep_blocks(size_t size) {
  void** all = (void**)malloc(100 * sizeof(void*));
  for (size_t i = 0; i < 100; i++) all[i] = memset(malloc(size), 1, size);
  return all;
}

// About 3 MiB of sizes from 16 bytes to 64 KiB: half of the blocks are freed here.
static void* work(void* arg) {
  work_t* w = (work_t*)arg;
  void*   mine[n_blocks];
  for (size_t i = 0; i < COUNT_OF(mine); i++) {
    size_t size = ((size_t)16 << (i % 13)) + w->number % 7;
    mine[i] = malloc(size);
    if (mine[i] == NULL) atomic_fetch_add(&n_wrong, 1);
    else memset(mine[i], 0xAB, size);
  }
  for (size_t i = 0; i < COUNT_OF(mine); i += 2) free(mine[i]);
  for (size_t i = 0; i < COUNT_OF(w->left); i++) w->left[i] = mine[2 * i + 1];
  for (size_t i = 0; i < COUNT_OF(keys); i++) pthread_setspecific(keys[i], keep_blocks(100 + 1000 * i));
  atomic_fetch_add(&n_ended, 1);
  return NULL;
}

static void run_joined(void) {
  static work_t works[n_at_once];
  pthread_t     threads[n_at_once];
  for (size_t i = 0; i < COUNT_OF(threads); i++) {
    works[i].number = i;
    CHECK_EQ(pthread_create(&threads[i], NULL, &work, &works[i]), 0);
  }
  for (size_t i = 0; i < COUNT_OF(threads); i++) {
    pthread_join(threads[i], NULL);
    for (size_t k = 0; k < COUNT_OF(works[i].left); k++) free(works[i].left[k]);
  }
}

static void* work_alone(void* arg) {
  work_t* w = (work_t*)malloc(sizeof(work_t));
  w->number = (size_t)(uintptr_t)arg;
  work(w);
  for (size_t k = 0; k < COUNT_OF(w->left); k++) free(w->left[k]);
  free(w);
  return NULL;
}

static void run_detached(void) {
  pthread_t thread;
  size_t    before = atomic_load(&n_ended);
  CHECK_EQ(pthread_create(&thread, NULL, &work_alone, NULL), 0);
  pthread_detach(thread);
  while (atomic_load(&n_ended) == before) sleep_ms(1);
}

static int64_t live_threads(void) {
  mi_stats_t_decl(stats);
  return mi_stats_get(&stats) ? stats.threads.current : -1;
}

// A thread that is detached may not have ended yet.
static int64_t live_threads_soon(int64_t expected) {
  for (int i = 0; i < 5000 && live_threads() != expected; i++) sleep_ms(1);
  return live_threads();
}

static void run(size_t n) {
  for (size_t i = 0; i < n; i++) {
    run_joined();
    run_detached();
  }
}

int main(int argc, char** argv) {
  test_seed(argc, argv);
  for (size_t i = 0; i < COUNT_OF(keys); i++) pthread_key_create(&keys[i], &destroy);
  int64_t live = live_threads();
  CHECK(live > 0);
  run(n_first);
  CHECK_EQ(live_threads_soon(live), live);
  size_t early = memory_size();
  run(n_rounds);
  CHECK_EQ(live_threads_soon(live), live);
  size_t end = memory_size();
  printf("%zu KiB after %d rounds of threads, %zu after %d more\n", early / KiB, n_first, end / KiB, n_rounds);
  CHECK_FOR(end - early <= early / 4, "%zu KiB more", (end - early) / KiB); // it grows by a fifth at a time
  CHECK_EQ(atomic_load(&n_wrong), 0);
  return check_result();
}
