// Proves: mi_heap_check of a heap finds nothing wrong while another thread, which has used that heap before, uses others.
#include <sched.h>

#include "storm.h"

enum { n_heaps = 64 };

static mi_heap_t* heaps[n_heaps];
static atomic_int turn; // odd: the first heap is checked
static rng_t      rng;

static void use(size_t i) {
  mi_free(mi_heap_malloc(heaps[i], 8));
}

static void* use_all(void* arg) {
  (void)arg;
  while (!atomic_load(&storm_must_stop)) {
    for (size_t i = n_heaps; i > 0; i--) use(i - 1);
    atomic_fetch_add(&turn, 1);
    while (atomic_load(&turn) % 2 != 0) {
      for (size_t i = 1; i < n_heaps; i++) {
        for (volatile size_t wait = rng_below(&rng, 300); wait > 0; wait--) {
        }
        use(i);
      }
    }
  }
  return NULL;
}

int main(int argc, char** argv) {
  pthread_t thread;
  size_t    n_wrong = 0;
  rng = rng_make(test_seed(argc, argv));
  watchdog(200);
  for (size_t i = 0; i < n_heaps; i++) heaps[i] = mi_heap_new();
  CHECK_EQ(pthread_create(&thread, NULL, &use_all, NULL), 0);
  for (size_t n = 0; n < (TEST_SANITIZED ? 500 : 10000 * test_scale()) && n_wrong == 0; n++) {
    while (atomic_load(&turn) % 2 == 0) sched_yield();
    if (!mi_heap_check(heaps[0])) n_wrong++;
    atomic_fetch_add(&turn, 1);
  }
  while (atomic_load(&turn) % 2 == 0) sched_yield();
  atomic_store(&storm_must_stop, true);
  atomic_fetch_add(&turn, 1);
  pthread_join(thread, NULL);
  CHECK_EQ(n_wrong, 0);
  for (size_t i = 0; i < n_heaps; i++) mi_heap_destroy(heaps[i]);
  return check_result();
}
