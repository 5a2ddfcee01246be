// Proves: heaps come and go as the header says: blocks outlive mi_heap_delete and not mi_heap_destroy, memory stays bounded
// whatever is made and ended, threads may share heaps, and each thread has a default heap of its own.
#include "../check.h"
#include "entries.h"
#include <pthread.h>

// ---- messages -------------------------------------------------------------------------------------------------------

static size_t n_warnings;

static void count_warnings(const char* text, void* arg) {
  (void)arg;
  if (strstr(text, "mimalloc: warning: ") != NULL) n_warnings++;
}

static void expect_warnings(bool expected) {
  n_warnings = 0;
  mi_register_output(expected ? &count_warnings : NULL, NULL);
  mi_option_set_enabled(mi_option_show_errors, expected);
}

// ---- blocks of a heap -----------------------------------------------------------------------------------------------

enum { max_held = 20000 };

typedef struct held_s {
  void*  p;
  size_t size;
} held_t;

static held_t held[max_held];

// So many blocks of all sizes, now and then a large one; a pattern in each.
static void fill_heap(mi_heap_t* heap, size_t n, uint64_t seed) {
  rng_t rng = rng_make(seed);
  CHECK(n <= max_held);
  for (size_t i = 0; i < n; i++) {
    held[i].size = (i % 1000 == 999 ? 2 * MiB + i : rng_size(&rng, 8 * KiB));
    held[i].p = (i % 7 == 0 ? mi_heap_malloc_aligned(heap, held[i].size, 256) : mi_heap_malloc(heap, held[i].size));
    CHECK(held[i].p != NULL);
    pattern_fill(held[i].p, 0, held[i].size, i);
  }
}

static void check_held(mi_heap_t* heap, size_t n) {
  for (size_t i = 0; i < n; i++) {
    CHECK_FOR(pattern_check(held[i].p, held[i].size, i) == held[i].size, "block %zu of %zu bytes", i, held[i].size);
    CHECK_FOR(mi_heap_of(held[i].p) == heap, "block %zu of %zu bytes", i, held[i].size);
  }
}

static void free_held(size_t n) {
  for (size_t i = 0; i < n; i++) mi_free(held[i].p);
}

// ---- the end of a heap ----------------------------------------------------------------------------------------------

static void check_delete(uint64_t seed) {
  for (size_t round = 0; round < 3; round++) {
    mi_heap_t* heap = mi_heap_new();
    CHECK(heap != NULL && heap != mi_heap_main());
    fill_heap(heap, 10000, seed + round);
    check_held(heap, 10000);
    for (size_t i = 0; i < 10000; i += 2) {
      mi_free(held[i].p);
      held[i].p = mi_heap_malloc(heap, held[i].size);
      pattern_fill(held[i].p, 0, held[i].size, i);
    }
    mi_heap_delete(heap);
    check_held(mi_heap_main(), 10000);
    for (size_t i = 0; i < 10000; i += 3) { // they are ordinary blocks now
      held[i].p = mi_realloc(held[i].p, held[i].size * 3 + 1);
      CHECK(pattern_check(held[i].p, held[i].size, i) == held[i].size);
    }
    free_held(10000);
  }
}

static void check_destroy(uint64_t seed) {
  size_t peak = 0;
  for (size_t round = 0; round < 20; round++) {
    mi_heap_t* heap = mi_heap_new();
    fill_heap(heap, 10000, seed + round);
    check_held(heap, 10000);
    for (size_t i = 0; i < 10000; i += 3) mi_free(held[i].p);
    mi_heap_destroy(heap);
    if (round < 10 && rss_now() > peak) peak = rss_now(); // how much waits to be given back differs
  }
  CHECK(rss_within("growth over heaps that were destroyed", minus(rss_now(), peak), 16 * MiB));
  mi_heap_delete(NULL);
  mi_heap_destroy(NULL);
}

// The main heap goes on whatever one asks for.
static void check_main_heap(void) {
  mi_heap_t* heap = mi_heap_main();
  void*      p = mi_heap_malloc(heap, 100);
  CHECK(heap != NULL && heap == mi_heap_get_backing() && mi_heap_of(p) == heap);
  expect_warnings(true);
  mi_heap_delete(heap);
  CHECK_EQ(n_warnings, 1);
  mi_heap_destroy(heap);
  CHECK_EQ(n_warnings, 2);
  expect_warnings(false);
  CHECK(mi_heap_main() == heap && mi_heap_of(p) == heap);
  CHECK(mi_heap_contains(NULL, p));
  mi_free(p);
}

// Heaps in great numbers, all at once and one after another.
static void check_many_heaps(void) {
  enum { n_heaps = 500 };
  static mi_heap_t* heaps[n_heaps];
  size_t            before = rss_now();
  for (size_t i = 0; i < n_heaps; i++) {
    heaps[i] = mi_heap_new();
    CHECK(heaps[i] != NULL);
    void* p = mi_heap_malloc(heaps[i], 1 + i);
    memset(p, 0xAB, 1 + i);
    CHECK(mi_heap_of(p) == heaps[i]);
  }
  CHECK(rss_within("for 500 heaps with a block each", minus(rss_now(), before), 64 * MiB));
  for (size_t i = 0; i < n_heaps; i++) mi_heap_destroy(heaps[i]);
  mi_collect(true);
  before = rss_now();
  for (size_t i = 0; i < 20000; i++) {
    mi_heap_t* heap = mi_heap_new();
    void*      p = mi_heap_malloc(heap, 100);
    memset(p, 0xAB, 100);
    if (i % 2 == 0) mi_heap_destroy(heap);
    else {
      mi_heap_delete(heap);
      mi_free(p);
    }
  }
  CHECK(rss_within("after 20000 heaps", minus(rss_now(), before), 16 * MiB));
}

// ---- heaps with attributes ------------------------------------------------------------------------------------------

static bool keep_tag(const mi_heap_t* heap, const mi_heap_area_t* area, void* block, size_t block_size, void* arg) {
  (void)heap;
  (void)block;
  (void)block_size;
#if MI_API_LEVEL < 3
  *(int*)arg = area->heap_tag;
#else
  (void)area;
  *(int*)arg = 5; // areas of level 3 have no tag
#endif
  return true;
}

static void check_new_ex(void) {
  int        tag = 0;
  mi_heap_t* heap = mi_heap_new_ex(5, true, 0);
  CHECK(heap != NULL);
  void* p = mi_heap_malloc(heap, 100);
  CHECK(mi_heap_contains(heap, p) && mi_heap_visit_blocks(heap, false, &keep_tag, &tag) && tag == 5);
  mi_heap_destroy(heap);

  heap = mi_heap_new_ex(7, false, 0); // not to be destroyed
  p = mi_heap_malloc(heap, 100);
  memset(p, 0xAB, 100);
  mi_heap_destroy(heap);
  CHECK(((uint8_t*)p)[99] == 0xAB && mi_heap_of(p) == mi_heap_main());
  for (size_t i = 0; i < 1000; i++) mi_free(mi_malloc(100)); // nobody else gets its place
  CHECK(((uint8_t*)p)[0] == 0xAB);
  mi_free(p);
}

static void check_numa_affinity(void) {
  static const int nodes[] = {0, 1, 1000, -1, INT32_MAX, INT32_MIN};
  mi_heap_t*       heap = mi_heap_new();
  for (size_t i = 0; i < COUNT_OF(nodes); i++) {
    mi_heap_set_numa_affinity(heap, nodes[i]);
    uint8_t* p = (uint8_t*)mi_heap_malloc(heap, 3 * MiB);
    CHECK_FOR(p != NULL && mi_heap_contains(heap, p), "node %d", nodes[i]);
    memset(p, 0xAB, 3 * MiB);
    mi_free(p);
  }
  mi_heap_set_numa_affinity(NULL, 0);
  mi_heap_set_numa_affinity(NULL, -1);
  mi_heap_destroy(heap);
}

static void check_collect(uint64_t seed) {
  mi_heap_t* heap = mi_heap_new();
  mi_heap_collect(heap, false);
  mi_heap_collect(NULL, true);
  fill_heap(heap, 15000, seed);
  size_t with = rss_now();
  free_held(15000);
  mi_heap_collect(heap, true);
  size_t without = rss_now();
  CHECK(rss_within("resident after collecting an empty heap", without, with - 15 * MiB));
  void* p = mi_heap_malloc(heap, 100);
  CHECK(mi_heap_contains(heap, p));
  mi_collect_reduce(0);
  CHECK(mi_heap_contains(heap, p));
  mi_heap_delete(heap);
  mi_free(p);
}

// ---- the default heap -----------------------------------------------------------------------------------------------

static void* get_default(void* arg) {
  *(void**)arg = mi_malloc(100);
  return mi_heap_get_default();
}

static void check_default(void) {
  mi_heap_t* first = mi_heap_get_default();
  CHECK(first == mi_heap_main());
  mi_heap_t* heap = mi_heap_new();
  CHECK(mi_heap_set_default(heap) == first && mi_heap_get_default() == heap);
  void* blocks[] = {
      mi_malloc(100),     mi_calloc(10, 10), mi_realloc(NULL, 3000), mi_malloc_aligned(100, 512), mi_malloc(3 * MiB),
      mi_strdup("hello"), mi_new(50)};
  for (size_t i = 0; i < COUNT_OF(blocks); i++) CHECK_FOR(mi_heap_of(blocks[i]) == heap, "block %zu", i);
  CHECK(mi_heap_set_default((mi_heap_t*)hidden_pointer(NULL)) == NULL && mi_heap_get_default() == heap);

  pthread_t thread; // it is this thread's alone
  void *    other = NULL, *other_default = NULL;
  CHECK_EQ(pthread_create(&thread, NULL, &get_default, &other), 0);
  pthread_join(thread, &other_default);
  CHECK(other_default == first && mi_heap_of(other) == first);
  mi_free(other);

  for (size_t i = 0; i < COUNT_OF(blocks); i++) mi_free(blocks[i]);
  CHECK(mi_heap_set_default(first) == heap && mi_heap_get_default() == first);
  void* p = mi_malloc(100);
  CHECK(mi_heap_of(p) == first);
  mi_free(p);
  mi_heap_delete(heap); // not destroy: libc may have blocks there too, for instance those of a thread
}

// A thread whose default heap ends has the main heap again.
static void check_default_ends(void) {
  for (size_t i = 0; i < 2; i++) {
    mi_heap_t* heap = mi_heap_new();
    mi_heap_set_default(heap);
    void* p = mi_malloc(100);
    CHECK(mi_heap_of(p) == heap);
    if (i == 0) {
      mi_heap_delete(heap);
      CHECK(mi_heap_of(p) == mi_heap_main());
      mi_free(p);
    }
    else mi_heap_destroy(heap);
    CHECK(mi_heap_get_default() == mi_heap_main());
    p = mi_malloc(100);
    CHECK(mi_heap_of(p) == mi_heap_main());
    mi_free(p);
  }
}

static pthread_barrier_t barrier;

static void* use_default(void* heap) {
  mi_heap_set_default((mi_heap_t*)heap);
  void* p = mi_malloc(100);
  CHECK(mi_heap_of(p) == heap);
  pthread_barrier_wait(&barrier); // now another thread deletes it
  pthread_barrier_wait(&barrier);
  void* q = mi_malloc(100);
  CHECK(mi_heap_of(p) == mi_heap_main() && mi_heap_of(q) == mi_heap_main());
  mi_free(p);
  mi_free(q);
  return NULL;
}

static void check_default_of_another_ends(void) {
  pthread_t  thread;
  mi_heap_t* heap = mi_heap_new();
  pthread_barrier_init(&barrier, NULL, 2);
  CHECK_EQ(pthread_create(&thread, NULL, &use_default, heap), 0);
  pthread_barrier_wait(&barrier);
  mi_heap_delete(heap);
  pthread_barrier_wait(&barrier);
  pthread_join(thread, NULL);
  pthread_barrier_destroy(&barrier);
}

// ---- threads --------------------------------------------------------------------------------------------------------

enum { n_threads = 4, n_each = 3000 };

typedef struct part_s {
  mi_heap_t* heap;
  held_t*    held;
  bool       frees; // the part of the thread before, when it is there
} part_t;

static void* fill_part(void* arg) {
  part_t* part = (part_t*)arg;
  rng_t   rng = rng_make((uint64_t)(uintptr_t)part->held);
  for (size_t i = 0; i < n_each; i++) {
    part->held[i].size = 8 + rng_size(&rng, 4 * KiB);
    part->held[i].p = mi_heap_malloc(part->heap, part->held[i].size);
    CHECK(part->held[i].p != NULL);
    pattern_fill(part->held[i].p, 0, part->held[i].size, i);
  }
  pthread_barrier_wait(&barrier);
  for (size_t i = 0; part->frees && i < n_each; i += 2) {
    mi_free(part->held[i].p); // a thread frees its own, and those of the next one
    mi_free((part->held + n_each)[i + 1].p);
  }
  return NULL;
}

// Threads fill a heap and are gone; their blocks are there until the heap is destroyed, and then they are not.
static void check_threads_and_destroy(void) {
  size_t peak = 0;
  for (size_t round = 0; round < 20; round++) {
    pthread_t  threads[n_threads];
    part_t     parts[n_threads];
    mi_heap_t* heap = mi_heap_new();
    pthread_barrier_init(&barrier, NULL, n_threads);
    for (size_t i = 0; i < n_threads; i++) {
      part_t part = {heap, held + i * n_each, i == 0};
      parts[i] = part;
      CHECK_EQ(pthread_create(&threads[i], NULL, &fill_part, &parts[i]), 0);
    }
    for (size_t i = 0; i < n_threads; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
    for (size_t i = 2 * n_each; i < n_threads * n_each; i++) {
      CHECK(mi_heap_of(held[i].p) == heap);
      CHECK(pattern_check(held[i].p, held[i].size, i % n_each) == held[i].size);
    }
    if (round % 2 == 0) mi_heap_destroy(heap);
    else {
      for (size_t i = 2 * n_each; i < n_threads * n_each; i++) mi_free(held[i].p);
      for (size_t i = 1; i < n_each; i += 2) mi_free(held[i].p); // what fill_part has left of the first two
      for (size_t i = 0; i < n_each; i += 2) mi_free(held[n_each + i].p);
      mi_heap_delete(heap);
    }
    if (round == 3) peak = rss_now();
  }
  CHECK(rss_within("growth over heaps of many threads", minus(rss_now(), peak), 16 * MiB));
}

// A heap that a thread has made and not ended outlives the thread.
static void* make_heap(void* arg) {
  mi_heap_t* heap = mi_heap_new();
  *(void**)arg = mi_heap_strdup(heap, "left behind");
  return heap;
}

static void check_left_behind(void) {
  pthread_t thread;
  void *    heap = NULL, *p = NULL;
  CHECK_EQ(pthread_create(&thread, NULL, &make_heap, &p), 0);
  pthread_join(thread, &heap);
  CHECK(heap != NULL && mi_heap_of(p) == heap && strcmp((char*)p, "left behind") == 0);
  void* q = mi_heap_malloc((mi_heap_t*)heap, 100);
  CHECK(mi_heap_of(q) == heap);
  mi_free(p);
  mi_heap_destroy((mi_heap_t*)heap);
}

int main(int argc, char** argv) {
  uint64_t seed = test_seed(argc, argv);
  check_delete(seed);
  check_destroy(seed);
  check_main_heap();
  check_many_heaps();
  check_collect(seed);
  check_default();
  check_default_ends();
  check_default_of_another_ends();
  check_threads_and_destroy();
  check_left_behind();
  check_numa_affinity();
  check_new_ex();
  return check_result();
}
