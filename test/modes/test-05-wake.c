// Proves: threads that sleep a little and go on, just when what idle threads hold is taken back, lose nothing: no block
// changes while it is in use, none is had twice, and at the end all is whole and the memory has gone back.
#include "../check.h"
#include <mimalloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include "support.h"

enum { n_workers = 12, n_slots = 400, n_kept = 60, n_naps = 500, ops_per_nap = 40 };

static _Atomic(uint32_t*) slots[n_slots];
static atomic_size_t      n_wrong, n_awake = n_workers;

// The first word is the number of words, all others come from it and from the address.
static uint32_t* block_get(rng_t* rng) {
  size_t    n = 4 + rng_size(rng, 600);
  uint32_t* p = (uint32_t*)mi_malloc(n * sizeof(*p));
  if (p == NULL) return NULL;
  p[0] = (uint32_t)n;
  for (size_t i = 1; i < n; i++) p[i] = (uint32_t)((uintptr_t)p + i * n);
  return p;
}

static void block_put(uint32_t* p) {
  if (p == NULL) return;
  size_t n = p[0], i = 1;
  while (i < n && i < 1000 && p[i] == (uint32_t)((uintptr_t)p + i * n)) i++;
  if (i != n && atomic_fetch_add(&n_wrong, 1) < 10) printf("word %zu of the %zu of %p is wrong\n", i, n, (void*)p);
  memset(p, 0xEE, n < 1000 ? n * sizeof(*p) : sizeof(*p)); // whoever else has it will notice
  mi_free(p);
}

static void sleep_us(size_t us) {
  struct timespec t = {0, (long)us * 1000};
  nanosleep(&t, NULL);
}

static void* work(void* arg) {
  rng_t     rng = rng_make((uint64_t)(uintptr_t)arg);
  uint32_t* kept[n_kept] = {NULL};
  size_t    n = (TEST_SANITIZED ? n_naps / 4 : n_naps) * test_scale();
  for (size_t nap = 0; nap < n; nap++) {
    for (size_t i = rng_below(&rng, ops_per_nap); i > 0; i--) {
      uint32_t** place = &kept[rng_below(&rng, n_kept)];
      if (rng_below(&rng, 4) == 0) *place = atomic_exchange(&slots[rng_below(&rng, n_slots)], *place);
      block_put(*place);
      *place = (rng_below(&rng, 2) == 0 ? block_get(&rng) : NULL);
    }
    sleep_us(rng_below(&rng, 10000));
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
