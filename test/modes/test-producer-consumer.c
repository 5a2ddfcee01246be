// Proves: with a fixed live set, memory does not grow while blocks are allocated by some threads and freed by others:
// also when the freeing thread never allocates, and when the producers are new threads all the time, many at once or one
// after the other.
//
// The live set is LIVE bytes as requested.  The sizes drift, so that pages of one class empty while others fill; what
// has become free may wait for a moment before it goes back, so resident memory is bounded by 1.3 times LIVE once a
// phase has settled, and by 2.5 times at any time, plus a constant for stacks and the like.
#include "../check.h"
#include <mimalloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include "support.h"

enum { ring_size = 1 << 21, max_blocks = 1 << 20, n_phases = 8 };
#define LIVE  (128 * MiB)
#define SLACK (6 * MiB)

typedef struct ring_s {
  _Atomic(void*) slots[ring_size];
  atomic_size_t  head, tail;
} ring_t;

static ring_t        ring;
static atomic_size_t live_bytes, n_moved, n_wrong;
static atomic_bool   must_stop;

static void ring_push(void* p) {
  size_t head = atomic_load_explicit(&ring.head, memory_order_relaxed);
  while (head - atomic_load_explicit(&ring.tail, memory_order_acquire) == ring_size) sched_yield();
  atomic_store_explicit(&ring.slots[head % ring_size], p, memory_order_relaxed);
  atomic_store_explicit(&ring.head, head + 1, memory_order_release);
}

static void* ring_pop(void) {
  size_t tail = atomic_load_explicit(&ring.tail, memory_order_relaxed);
  if (tail == atomic_load_explicit(&ring.head, memory_order_acquire)) return NULL;
  void* p = atomic_load_explicit(&ring.slots[tail % ring_size], memory_order_relaxed);
  atomic_store_explicit(&ring.tail, tail + 1, memory_order_release);
  return p;
}

static size_t next_size(rng_t* rng, size_t phase) {
  static const size_t kinds[n_phases] = {200, 400, 1500, 6000, 24000, 300, 3000, 800};
  size_t              kind = phase % n_phases;
  if (rng_below(rng, 4) == 0) kind = rng_below(rng, n_phases);
  return 16 + rng_below(rng, kinds[kind]);
}

static void* new_block(rng_t* rng, size_t phase) {
  size_t size = next_size(rng, phase);
  void*  p = mi_malloc(size);
  if (p == NULL) {
    atomic_fetch_add(&n_wrong, 1);
    return NULL;
  }
  memset(p, 0xAB, size);
  memcpy(p, &size, sizeof(size));
  atomic_fetch_add(&live_bytes, size);
  return p;
}

static void free_block(void* p) {
  size_t size;
  memcpy(&size, p, sizeof(size));
  atomic_fetch_sub(&live_bytes, size);
  mi_free(p);
  atomic_fetch_add(&n_moved, 1);
}

// Frees the oldest as soon as more than LIVE is alive; never allocates.
static void* consume(void* arg) {
  (void)arg;
  while (!atomic_load(&must_stop)) {
    void* p = atomic_load(&live_bytes) > LIVE ? ring_pop() : NULL;
    if (p == NULL) sched_yield();
    else free_block(p);
  }
  return NULL;
}

typedef struct measure_s {
  size_t before, peak, settled;
} measure_t;

static void measure(measure_t* m, bool is_settled) {
  size_t extra = minus(rss_now(), m->before);
  if (extra > m->peak) m->peak = extra;
  if (is_settled && extra > m->settled) m->settled = extra;
}

static void check_measure(const measure_t* m, const char* what) {
  printf("%s: ", what);
  CHECK(rss_within("settled", m->settled, LIVE / 10 * 13 + SLACK));
  printf("%s: ", what);
  CHECK(rss_within("at any time", m->peak, LIVE / 10 * 25 + SLACK));
}

static void drain(void) {
  void* p;
  while ((p = ring_pop()) != NULL) free_block(p);
  mi_collect(true);
}

// One producer, one thread that only frees.
static void check_pipeline(uint64_t seed, double phase_seconds) {
  rng_t     rng = rng_make(seed);
  measure_t m = {rss_now(), 0, 0};
  pthread_t consumer;
  atomic_store(&must_stop, false);
  atomic_store(&n_moved, 0);
  CHECK_EQ(pthread_create(&consumer, NULL, &consume, NULL), 0);
  for (size_t phase = 0; phase < n_phases; phase++) {
    double end = now_seconds() + phase_seconds;
    size_t n = 0;
    do {
      while (atomic_load(&live_bytes) > LIVE + MiB) sched_yield();
      void* p = new_block(&rng, phase);
      if (p != NULL) ring_push(p);
      if (++n % 40000 == 0) measure(&m, false);
    } while (n % 100 != 0 || now_seconds() < end);
    sleep_ms(300);
    measure(&m, true);
  }
  atomic_store(&must_stop, true);
  pthread_join(consumer, NULL);
  printf("pipeline: %zu blocks\n", atomic_load(&n_moved));
  check_measure(&m, "pipeline");
  drain();
}

// Generations of threads: each thread allocates its share of the live set and exits; while it does it frees, block for
// block, what a thread of the generation before has left, so that the live set keeps its size.
enum { n_makers = 4, blocks_per_maker = max_blocks / n_makers };

static void* kept[2][n_makers][blocks_per_maker];

typedef struct share_s {
  void **  old_blocks, **new_blocks;
  uint64_t seed;
  size_t   phase;
} share_t;

static size_t size_of(const void* p) {
  size_t size;
  memcpy(&size, p, sizeof(size));
  return size;
}

static void* make_share(void* arg) {
  share_t* s = (share_t*)arg;
  rng_t    rng = rng_make(s->seed);
  size_t   old_bytes = 0, new_bytes = 0, n_new = 0, at = 0;
  for (size_t i = 0; i < blocks_per_maker && s->old_blocks[i] != NULL; i++) old_bytes += size_of(s->old_blocks[i]);
  while (n_new + 1 < blocks_per_maker && new_bytes < LIVE / n_makers) {
    void* p = new_block(&rng, s->phase);
    if (p == NULL) break;
    s->new_blocks[n_new++] = p;
    new_bytes += size_of(p);
    while (old_bytes > 0 && old_bytes + new_bytes > LIVE / n_makers) {
      old_bytes -= size_of(s->old_blocks[at]);
      free_block(s->old_blocks[at++]);
    }
  }
  s->new_blocks[n_new] = NULL;
  while (old_bytes > 0) {
    old_bytes -= size_of(s->old_blocks[at]);
    free_block(s->old_blocks[at++]);
  }
  return NULL;
}

static void start_maker(pthread_t* thread, share_t* share, bool one_by_one) {
  CHECK_EQ(pthread_create(thread, NULL, &make_share, share), 0);
  if (one_by_one) pthread_join(*thread, NULL);
}

// `one_by_one`: each thread ends before the next one starts, so that each of them can get all that the former one had.
static void check_generations(uint64_t seed, size_t per_phase, bool one_by_one) {
  const char* what = (one_by_one ? "threads one by one" : "generations of threads");
  measure_t   m = {rss_now(), 0, 0};
  size_t      g = 0;
  for (size_t phase = 0; phase < n_phases; phase++) {
    for (size_t n = 0; n < per_phase; n++, g++) {
      pthread_t threads[n_makers];
      share_t   shares[n_makers];
      for (size_t i = 0; i < n_makers; i++) {
        shares[i] = (share_t){kept[g % 2][(i + 1) % n_makers], kept[(g + 1) % 2][i], seed + g * n_makers + i, phase};
        start_maker(&threads[i], &shares[i], one_by_one);
      }
      for (size_t i = 0; i < n_makers && !one_by_one; i++) pthread_join(threads[i], NULL);
      measure(&m, false);
    }
    sleep_ms(300);
    measure(&m, true);
  }
  check_measure(&m, what);
  for (size_t i = 0; i < n_makers; i++) {
    for (void** p = kept[g % 2][i]; *p != NULL; p++) free_block(*p);
    kept[0][i][0] = kept[1][i][0] = NULL;
  }
  mi_collect(true);
}

int main(int argc, char** argv) {
  uint64_t seed = test_seed(argc, argv);
  watchdog(120);
  if (MI_API_LEVEL >= 3) mi_option_set(mi_option_purge_delay, 10); // at level 3 it is a second
  memset(kept, 0, sizeof(kept));                                   // their OS pages are not part of the account
  for (size_t i = 0; i < ring_size; i++) atomic_store_explicit(&ring.slots[i], NULL, memory_order_relaxed);
  check_pipeline(seed, 0.3 * (double)test_scale());
  check_generations(seed, (TEST_SANITIZED ? 1 : 4) * test_scale(), false);
  check_generations(seed, (TEST_SANITIZED ? 1 : 2) * test_scale(), true);
  CHECK(atomic_load(&n_wrong) == 0);
  CHECK(atomic_load(&live_bytes) == 0);
  return check_result();
}
