// What storms share: threads that keep every part of the allocator busy, and bounds on memory and mappings.
//
// A storm runs for seconds in the suite, and at its full size with MI_TEST_SCALE (make storms).
#pragma once

#include <mimalloc.h>
#include <pthread.h>
#include <stdatomic.h>

#include "../check.h"
#include "../modes/support.h"

// ---- load -----------------------------------------------------------------------------------------------------------

enum { storm_n_slots = 128, storm_n_workers_max = 8 };

// A block says how large it is, and where it was written: whoever frees it can tell whether it is whole.
typedef struct storm_block_s {
  uint64_t size, key;
} storm_block_t;

static _Atomic(void*) storm_slots[storm_n_slots];
static atomic_bool    storm_must_stop;
static atomic_size_t  storm_n_wrong, storm_n_refused, storm_n_steps;

static inline void storm_write(rng_t* rng, void* p, size_t size) {
  storm_block_t* b = (storm_block_t*)p;
  b->size = size;
  b->key = rng_next(rng);
  pattern_fill(b + 1, 0, size - sizeof(*b), b->key);
}

static inline void* storm_get(rng_t* rng, size_t size) {
  if (size < sizeof(storm_block_t)) size = sizeof(storm_block_t);
  void* p = mi_malloc(size);
  if (p == NULL) atomic_fetch_add(&storm_n_refused, 1);
  else storm_write(rng, p, size);
  return p;
}

static inline bool storm_is_whole(const void* p) {
  const storm_block_t* b = (const storm_block_t*)p;
  return pattern_check(b + 1, (size_t)b->size - sizeof(*b), b->key) == b->size - sizeof(*b);
}

static inline void storm_put(void* p) {
  if (p == NULL) return;
  if (!storm_is_whole(p)) atomic_fetch_add(&storm_n_wrong, 1);
  mi_free(p);
}

// Mostly small, now and then large; up to 2 MiB.
static inline size_t storm_size(rng_t* rng) {
  size_t kind = rng_below(rng, 1000);
  return kind < 930 ? rng_size(rng, 2000) : kind < 995 ? rng_size(rng, 100 * KiB) : rng_size(rng, 2 * MiB);
}

static inline void storm_step(rng_t* rng) {
  size_t kind = rng_below(rng, 1000);
  void*  p = storm_get(rng, storm_size(rng));
  if (kind < 60 && p != NULL) {
    size_t size = sizeof(storm_block_t) + rng_size(rng, 8 * KiB);
    if (size < ((storm_block_t*)p)->size) size = (size_t)((storm_block_t*)p)->size;
    void* q = mi_realloc(p, size); // what was written is still there
    if (q != NULL) p = q;
  }
  storm_put(atomic_exchange(&storm_slots[rng_below(rng, storm_n_slots)], p));
  if (kind == 999) mi_collect(false);
  atomic_fetch_add_explicit(&storm_n_steps, 1, memory_order_relaxed);
}

static inline void* storm_work(void* arg) {
  rng_t rng = rng_make((uint64_t)(uintptr_t)arg);
  while (!atomic_load_explicit(&storm_must_stop, memory_order_relaxed)) storm_step(&rng);
  return NULL;
}

typedef struct storm_load_s {
  pthread_t threads[storm_n_workers_max];
  size_t    n;
} storm_load_t;

static inline void storm_begin(storm_load_t* load, size_t n, uint64_t seed) {
  atomic_store(&storm_must_stop, false);
  load->n = n;
  for (size_t i = 0; i < n; i++) {
    CHECK_EQ(pthread_create(&load->threads[i], NULL, &storm_work, (void*)(uintptr_t)(seed + i)), 0);
  }
}

static inline void storm_clear(void) {
  for (size_t i = 0; i < storm_n_slots; i++) storm_put(atomic_exchange(&storm_slots[i], NULL));
}

static inline void storm_end(storm_load_t* load) {
  atomic_store(&storm_must_stop, true);
  for (size_t i = 0; i < load->n; i++) pthread_join(load->threads[i], NULL);
  storm_clear();
  CHECK_EQ(atomic_load(&storm_n_wrong), 0);
  CHECK_EQ(atomic_load(&storm_n_refused), 0);
  printf("%zu steps of the load\n", atomic_load(&storm_n_steps));
}

// ---- bounds ---------------------------------------------------------------------------------------------------------

typedef struct storm_memory_s {
  size_t rss, mappings, peak; // the highest of both that was looked at
  size_t mappings_peak;
} storm_memory_t;

static inline storm_memory_t storm_memory(void) {
  storm_memory_t m = {rss_now(), mapping_count(), 0, 0};
  m.peak = m.rss;
  m.mappings_peak = m.mappings;
  return m;
}

static inline void storm_look(storm_memory_t* m) {
  size_t rss = rss_now(), mappings = mapping_count();
  if (rss > m->peak) m->peak = rss;
  if (mappings > m->mappings_peak) m->mappings_peak = mappings;
}

// What may have been added since `m` was made: at the highest, and now.
static inline void storm_check(storm_memory_t* m, size_t peak, size_t end, size_t mappings) {
  mi_collect(true);
  size_t rss = rss_now(), n = mapping_count();
  CHECK(rss_within("the most that was resident", minus(m->peak, m->rss), peak));
  CHECK(rss_within("resident at the end", minus(rss, m->rss), end));
  printf("mappings: %zu, at most %zu, now %zu\n", m->mappings, m->mappings_peak, n);
  CHECK(TEST_SANITIZED || m->mappings_peak <= m->mappings + mappings);
  CHECK(TEST_SANITIZED || n <= m->mappings + mappings);
}
