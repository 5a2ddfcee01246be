// Proves: a process may fork while its other threads make heaps, use them, delete and destroy them: the child can use all
// heaps that nobody was ending, finds the blocks in them unchanged, can end them and make others, and all that it has is
// whole.
#include "../check.h"
#include <mimalloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include "forks.h"
#include "support.h"

enum { n_workers = 5, n_heaps = 5, n_inherited = 300 };

static atomic_bool    must_stop;
static mi_heap_t*     heaps[n_heaps]; // that live as long as the parent
static void*          inherited[n_inherited];
static _Atomic(void*) handed[64];

static size_t inherited_size(size_t i) {
  return 10 + i * i;
}

// Of a heap of its own, that it ends; what survives the end of it is freed by whoever gets it.
static void use_own_heap(rng_t* rng) {
  mi_heap_t* heap = mi_heap_new();
  void*      p[60];
  for (size_t i = 0; i < COUNT_OF(p); i++) p[i] = mi_heap_malloc(heap, rng_size(rng, i == 0 ? 1 * MiB : 4000));
  if (rng_below(rng, 2) == 0) {
    for (size_t i = 0; i < 100; i++) (void)!mi_heap_malloc(heap, 20000); // the more pages, the longer it takes
    mi_heap_destroy(heap);
    return;
  }
  for (size_t i = 0; i < COUNT_OF(p); i++) {
    if (i % 3 == 0) mi_free(atomic_exchange(&handed[rng_below(rng, COUNT_OF(handed))], p[i]));
    if (i % 3 == 1) mi_free(p[i]);
  }
  mi_heap_delete(heap);
  for (size_t i = 2; i < COUNT_OF(p); i += 3) mi_free(p[i]);
}

static void* short_thread(void* arg) {
  void* p[40];
  for (size_t i = 0; i < COUNT_OF(p); i++) p[i] = mi_heap_malloc(heaps[(i + (uintptr_t)arg) % n_heaps], 100 * i + 1);
  for (size_t i = 0; i < COUNT_OF(p); i++) mi_free(p[i]);
  return NULL;
}

static void* work(void* arg) {
  rng_t rng = rng_make((uint64_t)(uintptr_t)arg);
  while (!atomic_load(&must_stop)) {
    rest_if_due();
    size_t kind = rng_below(&rng, 1000);
    if (kind < 20) {
      use_own_heap(&rng);
      continue;
    }
    if (kind == 999) mi_collect(rng_below(&rng, 2) == 0);
    if (kind == 500) {
      pthread_t t;
      if (pthread_create(&t, NULL, &short_thread, (void*)(uintptr_t)kind) == 0) pthread_join(t, NULL);
    }
    mi_heap_t* heap = heaps[rng_below(&rng, n_heaps)];
    void*      p = mi_heap_malloc(heap, rng_size(&rng, kind > 990 ? 2 * MiB : 4000));
    if (kind < 100) p = mi_heap_realloc(heap, p, rng_size(&rng, 9000));
    mi_free(atomic_exchange(&handed[rng_below(&rng, COUNT_OF(handed))], p));
  }
  return NULL;
}

// Large blocks come, grow and shrink where they are, and go, most of the time.
static void* work_large(void* arg) {
  rng_t rng = rng_make((uint64_t)(uintptr_t)arg);
  while (!atomic_load(&must_stop)) {
    rest_if_due();
    mi_heap_t* heap = heaps[rng_below(&rng, n_heaps)];
    size_t     size = 1 * MiB + rng_below(&rng, 100 * KiB);
    void*      p = mi_heap_malloc(heap, size);
    for (int i = 0; i < 10; i++) p = mi_heap_realloc(heap, p, size + rng_below(&rng, 100 * KiB));
    mi_free(p);
  }
  return NULL;
}

// ---- the child ------------------------------------------------------------------------------------------------------

static bool use_heaps(void) {
  for (size_t i = 0; i < n_heaps; i++) {
    for (size_t size = 1; size < 1 * MiB; size = size * 2 + 1) {
      uint8_t* p = (uint8_t*)mi_heap_calloc(heaps[i], 1, size);
      if (p == NULL || !is_zero(p, 0, size) || mi_heap_of(p) != heaps[i]) return false;
      memset(p, 1, size);
      p = (uint8_t*)mi_heap_realloc(heaps[i], p, 2 * size);
      if (p == NULL || mi_heap_of(p) != heaps[i] || p[size - 1] != 1) return false;
      mi_free(p);
    }
  }
  return true;
}

static bool on_area(const mi_heap_t* heap, const mi_heap_area_t* area, void* block, size_t block_size, void* arg) {
  (void)heap;
  (void)area;
  (void)block_size;
  *(size_t*)arg += (block != NULL);
  return true;
}

static int run_child(size_t number) {
  size_t n_live = 0;
  if (number % 3 == 0 && !mi_heap_check(NULL)) return 1;
  for (size_t i = 0; i < n_inherited; i++) {
    if (pattern_check(inherited[i], inherited_size(i), i) != inherited_size(i)) return 2;
    if (mi_heap_of(inherited[i]) != heaps[i % n_heaps]) return 3;
    if ((number + i) % 3 == 0) mi_free(inherited[i]);
  }
  if (!use_heaps()) return 4;
  if (!mi_heap_visit_blocks(heaps[0], true, &on_area, &n_live) || n_live < n_inherited / n_heaps / 2) return 5;
  if (!TEST_SANITIZED && number % 4 == 0) {
    pthread_t t;
    if (pthread_create(&t, NULL, &short_thread, NULL) != 0) return 6;
    pthread_join(t, NULL);
  }
  rng_t rng = rng_make(number);
  for (int i = 0; i < 5; i++) use_own_heap(&rng);
  mi_heap_destroy(heaps[number % n_heaps]);
  mi_heap_delete(heaps[(number + 1) % n_heaps]);
  for (size_t i = 0; i < n_inherited; i++) {
    if (i % n_heaps != (number + 1) % n_heaps || (number + i) % 3 == 0) continue;
    if (mi_heap_of(inherited[i]) != mi_heap_main()) return 7;
    if (pattern_check(inherited[i], inherited_size(i), i) != inherited_size(i)) return 8;
    mi_free(inherited[i]);
  }
  if (number % 5 == 0) mi_collect(true);
  return mi_heap_check(NULL) ? 0 : 9;
}

int main(int argc, char** argv) {
  uint64_t seed = test_seed(argc, argv);
  watchdog(250);
  mi_option_set(mi_option_show_errors, 1);
  pthread_t workers[n_workers];
  for (size_t i = 0; i < n_heaps; i++) heaps[i] = mi_heap_new();
  for (size_t i = 0; i < n_inherited; i++) {
    inherited[i] = mi_heap_malloc(heaps[i % n_heaps], inherited_size(i));
    pattern_fill(inherited[i], 0, inherited_size(i), i);
  }
  for (size_t i = 0; i < n_workers; i++) {
    void* (*body)(void*) = (i == 0 ? &work_large : &work);
    CHECK_EQ(pthread_create(&workers[i], NULL, body, (void*)(uintptr_t)(seed + i)), 0);
  }
  fork_often(300, &run_child);
  atomic_store(&must_stop, true);
  for (size_t i = 0; i < n_workers; i++) pthread_join(workers[i], NULL);
  for (size_t i = 0; i < n_inherited; i++) {
    CHECK_EQ(pattern_check(inherited[i], inherited_size(i), i), inherited_size(i));
    mi_free(inherited[i]);
  }
  for (size_t i = 0; i < COUNT_OF(handed); i++) mi_free(atomic_exchange(&handed[i], NULL));
  CHECK(mi_heap_check(NULL));
  for (size_t i = 0; i < n_heaps; i++) mi_heap_destroy(heaps[i]);
  CHECK(mi_heap_check(NULL));
  return check_result();
}
