// Proves: what a thread has of a heap can be had and used by itself, at level 2 (where it is the heap) as at level 3.
#include "../check.h"
#include "entries.h"
#include <pthread.h>

static mi_heap_t* heap;

static void check_default(void) {
  mi_theap_t* first = mi_theap_get_default();
  mi_theap_t* theap = mi_heap_theap(heap);
  CHECK(first != NULL && theap != NULL && theap != first);
  CHECK(theap == mi_heap_theap(heap) && first == mi_theap_get_default());
  CHECK(mi_theap_set_default(theap) == first && mi_theap_get_default() == theap);
  void* p = mi_malloc(100);
  CHECK(mi_heap_of(p) == heap);
  mi_free(p);
  CHECK(mi_theap_set_default((mi_theap_t*)hidden_pointer(NULL)) == NULL && mi_theap_get_default() == theap);
  CHECK(mi_theap_set_default(first) == theap && mi_theap_get_default() == first);
  p = mi_malloc(100);
  CHECK(mi_heap_of(p) == mi_heap_main());
  mi_free(p);
}

static void check_allocation(void) {
  mi_theap_t* theap = mi_heap_theap(heap);
  for (size_t size = 0; size <= 4 * MiB; size = size * 3 + 1) {
    uint8_t* blocks[] = {
        (uint8_t*)mi_theap_malloc(theap, size),
        (uint8_t*)mi_theap_zalloc(theap, size),
        (uint8_t*)mi_theap_calloc(theap, size, 1),
        (uint8_t*)mi_theap_realloc(theap, NULL, size),
        (uint8_t*)mi_theap_malloc_aligned(theap, size, 1024),
        size <= MI_SMALL_SIZE_MAX ? (uint8_t*)mi_theap_malloc_small(theap, size) : NULL,
        size <= MI_SMALL_SIZE_MAX ? (uint8_t*)mi_theap_zalloc_small(theap, size) : NULL,
    };
    CHECK_FOR(is_zero(blocks[1], 0, size) && is_zero(blocks[2], 0, size), "size %zu", size);
    CHECK_FOR(is_aligned(blocks[4], 1024), "size %zu", size);
    if (blocks[6] != NULL) CHECK_FOR(is_zero(blocks[6], 0, size), "size %zu", size);
    for (size_t i = 0; i < COUNT_OF(blocks); i++) {
      if (blocks[i] == NULL && i >= 5 && size > MI_SMALL_SIZE_MAX) continue;
      CHECK_FOR(blocks[i] != NULL && mi_heap_of(blocks[i]) == heap, "size %zu, block %zu", size, i);
      pattern_fill(blocks[i], 0, size, i);
    }
    for (size_t i = 0; i < COUNT_OF(blocks); i++) {
      if (blocks[i] == NULL) continue;
      blocks[i] = (uint8_t*)mi_theap_realloc(theap, blocks[i], size * 2 + 1);
      CHECK_FOR(pattern_check(blocks[i], size, i) == size && mi_heap_of(blocks[i]) == heap, "size %zu, block %zu", size,
                i);
      mi_free(blocks[i]);
    }
  }
  void* p = mi_theap_realloc(theap, mi_malloc(100), 200); // from the main heap
  CHECK(mi_heap_of(p) == heap);
  mi_free(p);
  errno = 0;
  CHECK(mi_theap_malloc_aligned(theap, 100, hidden(48)) == NULL && errno == EINVAL);
}

static void check_collect(void) {
  enum { n = 20000 };
  static void* blocks[n];
  mi_theap_t*  theap = mi_heap_theap(heap);
  for (size_t i = 0; i < n; i++) memset(blocks[i] = mi_theap_malloc(theap, 2000), 0xAB, 2000);
  size_t with = rss_now();
  for (size_t i = 0; i < n; i++) mi_free(blocks[i]);
  mi_theap_collect(theap, false);
  mi_theap_collect(theap, true);
  CHECK(rss_within("resident after collecting", rss_now(), with - 20 * MiB));
}

static bool count(const mi_heap_t* of, const mi_heap_area_t* area, void* block, size_t block_size, void* arg) {
  (void)of;
  CHECK_EQ(block_size, area->block_size);
  *(size_t*)arg += block != NULL;
  return true;
}

static void* fill(void* arg) {
  void** blocks = (void**)arg;
  for (size_t i = 0; i < 100; i++) blocks[i] = mi_heap_malloc(heap, 100);
  return NULL;
}

// A theap is of one thread: another has another, with other blocks.
static void check_visit(void) {
  void*       blocks[100];
  void*       of_another[100];
  size_t      n_all = 0, n_mine = 0;
  pthread_t   thread;
  mi_theap_t* theap = mi_heap_theap(heap);
  fill(blocks);
  CHECK_EQ(pthread_create(&thread, NULL, &fill, of_another), 0);
  pthread_join(thread, NULL);
  CHECK(mi_heap_visit_blocks(heap, true, &count, &n_all));
  CHECK_EQ(n_all, 200);
  CHECK(mi_theap_visit_blocks(theap, true, &count, &n_mine));
  CHECK_EQ(n_mine, MI_API_LEVEL < 3 ? 200 : 100);
  CHECK(!mi_theap_visit_blocks(theap, true, NULL, NULL));
  for (size_t i = 0; i < 100; i++) {
    mi_free(blocks[i]);
    mi_free(of_another[i]);
  }
}

// Any of them may guard blocks or not; what is served must be good either way.
static void check_guarded(void) {
  mi_theap_t* theap = mi_heap_theap(heap);
  mi_theap_guarded_set_sample_rate(theap, 1, 0);
  mi_theap_guarded_set_size_bound(theap, 0, 4096);
  for (size_t size = 0; size < 5000; size += 99) {
    uint8_t* p = (uint8_t*)mi_theap_malloc(theap, size);
    CHECK(p != NULL && mi_usable_size(p) >= size);
    memset(p, 0xAB, size);
    mi_free(p);
  }
  mi_theap_guarded_set_sample_rate(theap, 0, 1);
}

int main(int argc, char** argv) {
  test_seed(argc, argv);
  heap = mi_heap_new();
  check_default();
  check_allocation();
  check_collect();
  CHECK(mi_heap_theap(NULL) == (MI_API_LEVEL < 3 ? (mi_theap_t*)NULL : mi_theap_get_default()));
  check_guarded();
  check_visit();
  mi_heap_destroy(heap);
  return check_result();
}
