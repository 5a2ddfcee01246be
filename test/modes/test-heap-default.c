// Proves: a heap may be deleted while other threads, whose default it is, allocate: their blocks stay what they are, and a heap
// that is made, used and destroyed just then has no part in them.
#include "../check.h"
#include <mimalloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include "base/mode.h"
#include "support.h"

// Pages with few blocks, and large blocks: most allocations make a page.
enum { n_threads = 2, n_blocks = 48, n_sizes = 6 };
static const size_t sizes[n_sizes] = {200, 30000, 8000, 60000, 600000, 130000};

static _Atomic(mi_heap_t*) current; // NULL: it has just been deleted
static atomic_size_t       n_using; // threads that have it as their default
static atomic_size_t       n_damaged;
static atomic_bool         is_over;

static size_t size_of(size_t round, size_t i) {
  return sizes[(round + i) % n_sizes] - i % 8;
}

static void use_default(size_t me, size_t round) {
  void* p[n_blocks];
  for (size_t i = 0; i < n_blocks; i++) {
    p[i] = mi_malloc(size_of(round, i));
    pattern_fill(p[i], 0, size_of(round, i), me + i);
  }
  for (size_t i = 0; i < n_blocks; i++) {
    if (pattern_check(p[i], size_of(round, i), me + i) != size_of(round, i)) atomic_fetch_add(&n_damaged, 1);
    mi_free(p[i]);
  }
}

static void* allocate(void* arg) {
  size_t me = (size_t)(uintptr_t)arg;
  for (size_t round = 0; !atomic_load(&is_over); round++) {
    mi_heap_t* heap = atomic_load(&current);
    if (heap == NULL) {
      sched_yield();
      continue;
    }
    mi_heap_set_default(heap);
    atomic_fetch_add(&n_using, 1);
    while (atomic_load(&current) == heap) use_default(me, round);
    use_default(me, round);
    mi_heap_set_default(mi_heap_main());
    atomic_fetch_sub(&n_using, 1);
  }
  return NULL;
}

// Likely at the address of the one that was just deleted.
static void use_another(size_t round) {
  mi_heap_t* heap = mi_heap_new();
  for (size_t i = 0; i < n_sizes; i++) memset(mi_heap_malloc(heap, sizes[i] - round % 8), 0xA5, sizes[i] - round % 8);
  mi_heap_destroy(heap);
}

static void delete_one(rng_t* r, size_t round) {
  mi_heap_t* heap = mi_heap_new();
  atomic_store(&current, heap);
  while (atomic_load(&n_using) < n_threads) sched_yield(); // from then on nobody uses a handle to it
  for (volatile size_t n = rng_below(r, 20000); n > 0; n--) {
  }
  mi_heap_delete(heap);
  use_another(round);
  use_another(round);
  atomic_store(&current, NULL);
  while (atomic_load(&n_using) > 0) sched_yield();
}

int main(int argc, char** argv) {
  pthread_t threads[n_threads];
  watchdog(120);
  rng_t  r = rng_make(test_seed(argc, argv));
  size_t n_rounds = (TEST_SANITIZED ? 200 : 2000) * test_scale();
  for (uintptr_t i = 0; i < n_threads; i++) pthread_create(&threads[i], NULL, &allocate, (void*)(i * 1000));
  double start = now_seconds();
  size_t round = 0;
  for (; round < n_rounds && now_seconds() - start < 6.0 * (double)test_scale(); round++) {
    delete_one(&r, round);
    if (round % 50 == 0) CHECK(mi_heap_check(NULL));
  }
  atomic_store(&is_over, true);
  for (size_t i = 0; i < n_threads; i++) pthread_join(threads[i], NULL);
  printf("%zu heaps deleted\n", round);
  CHECK_EQ(atomic_load(&n_damaged), 0);
  CHECK(mi_heap_check(NULL));
  return check_result();
}
