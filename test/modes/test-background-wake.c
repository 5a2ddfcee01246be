// Proves: threads that sleep a little and go on, just when what idle threads hold is taken back, lose nothing: no block
// changes while it is in use, none is had twice, and at the end all is whole and the memory has gone back.
#include "../check.h"
#include <mimalloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include "support.h"

enum { n_workers = 12, n_slots = 400, n_kept = 60, n_naps = 500, ops_per_nap = 40 };

typedef struct block_s {
  size_t  size; // of the rest, a pattern that comes from the address
  uint8_t data[];
} block_t;

static _Atomic(block_t*) slots[n_slots];
static atomic_size_t     n_wrong, n_awake = n_workers;

static block_t* block_get(rng_t* rng) {
  size_t   size = 8 + rng_size(rng, 2400);
  block_t* b = (block_t*)mi_malloc(sizeof(*b) + size);
  if (b == NULL) return NULL;
  b->size = size;
  pattern_fill(b->data, 0, size, (uintptr_t)b);
  return b;
}

static void block_put(block_t* b) {
  if (b == NULL) return;
  size_t length = pattern_check(b->data, b->size, (uintptr_t)b);
  if (length != b->size && atomic_fetch_add(&n_wrong, 1) < 10) printf("byte %zu of %p is wrong\n", length, (void*)b);
  memset(b->data, 0xEE, 8); // whoever else has it will notice
  mi_free(b);
}

static void* work(void* arg) {
  rng_t    rng = rng_make((uint64_t)(uintptr_t)arg);
  block_t* kept[n_kept] = {NULL};
  size_t   n = (TEST_SANITIZED ? n_naps / 4 : n_naps) * test_scale();
  for (size_t nap = 0; nap < n; nap++) {
    for (size_t i = rng_below(&rng, ops_per_nap); i > 0; i--) {
      block_t** place = &kept[rng_below(&rng, n_kept)];
      if (rng_below(&rng, 4) == 0) *place = atomic_exchange(&slots[rng_below(&rng, n_slots)], *place);
      block_put(*place);
      *place = (rng_below(&rng, 2) == 0 ? block_get(&rng) : NULL);
    }
    sleep_ms((unsigned)rng_below(&rng, 10));
  }
  for (size_t i = 0; i < n_kept; i++) block_put(kept[i]);
  atomic_fetch_sub(&n_awake, 1);
  return NULL;
}

int main(int argc, char** argv) {
  uint64_t  seed = test_seed(argc, argv);
  pthread_t threads[n_workers];
  watchdog(120);
  mi_option_set(mi_option_purge_delay, 1); // the background thread is as busy as it can be
  mi_option_set(mi_option_arena_purge_mult, 1);
  size_t before = rss_now();
  for (size_t i = 0; i < n_workers; i++) {
    CHECK_EQ(pthread_create(&threads[i], NULL, &work, (void*)(uintptr_t)(seed + i)), 0);
  }
  while (atomic_load(&n_awake) > 0) {
    mi_free(mi_malloc(20 * MiB)); // so that there is something to give back, always
    sleep_ms(1);
  }
  for (size_t i = 0; i < n_workers; i++) pthread_join(threads[i], NULL);
  for (size_t i = 0; i < n_slots; i++) block_put(atomic_exchange(&slots[i], NULL));
  CHECK_EQ(atomic_load(&n_wrong), 0);
  CHECK(mi_heap_check(NULL));
  mi_collect(true);
  CHECK(rss_within("resident at the end", minus(rss_now(), before), 4 * MiB));
  return check_result();
}
