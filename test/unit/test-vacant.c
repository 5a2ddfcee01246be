// Proves: a theap that becomes vacant while a round looks for those that are no home may have a page where the round has been: it
// serves no other heap (VA3).
#include "../check.h"
#include "../modes/support.h"
#include "heap/heap.h"
#include "mimalloc.h"

#include <pthread.h>

enum { n_heaps = 400, n_large = 48, n_blocks = 1300 * MI_SLICE_SIZE / 8000 };

static mi_heap_t* heaps[n_heaps];
static void *     blocks[n_blocks], *large[n_large];

static void* leave_block(void* arg) {
  return mi_heap_malloc((mi_heap_t*)arg, 100);
}

// Each thread makes theaps, by which a round goes on, and leaves one with a page further down than the large blocks.  They are so large
// that a round takes several steps.
int main(void) {
  pthread_t thread;
  void*     block;
  watchdog(120);
  mi_option_set(mi_option_purge_delay, -1); // no thread of ours that takes what threads leave
  for (size_t i = 0; i < n_blocks; i++) blocks[i] = mi_malloc(8000);
  for (size_t i = 0; i < n_large; i++) large[i] = mi_zalloc(31 * MiB); // nothing of it is written
  for (size_t i = 0; i < n_blocks; i++) mi_free(blocks[i]);
  mi_collect(true);
  for (size_t i = 0; i < n_heaps; i++) {
    heaps[i] = mi_heap_new();
    CHECK_EQ(pthread_create(&thread, NULL, &leave_block, heaps[i]), 0);
    pthread_join(thread, &block);
    CHECK(block != NULL && mi_heap_contains_block(heaps[i], block));
  }
  CHECK(mi_heap_check(NULL));
  for (size_t i = 0; i < n_heaps; i++) mi_heap_destroy(heaps[i]);
  for (size_t i = 0; i < n_large; i++) mi_free(large[i]);
  return check_result();
}
