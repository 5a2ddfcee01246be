// Proves: a process that has freed its memory and then sleeps gives it back without making another call: 256 MiB
// (1 GiB in a soak) that two threads allocated and two others freed, and what eight pool threads keep that free blocks
// in random order and then sleep without exiting.  A few blocks in each page, which sleeping threads have, keep little of it.
#include "../check.h"
#include <mimalloc.h>
#include <pthread.h>
#include "base/compiler.h"
#include "base/mode.h"
#include "support.h"

// Does the build have gap pages (heap/gaps.h)?
#define HAS_GAPS (!MI_PADDING && !MI_TRACK && !MI_TAGS)

enum { max_blocks = 1 << 21, idle_ms = 2000, n_pool = 8 };

static void*  blocks[max_blocks];
static size_t n_total; // blocks in use
static size_t total_bytes;

typedef struct part_s {
  size_t   first, count, bytes, n_used;
  uint64_t seed;
} part_t;

static size_t next_size(rng_t* rng) {
  size_t kind = rng_below(rng, 1000);
  if (kind < 900) return 16 + rng_below(rng, 1000);
  if (kind < 995) return 1024 + rng_below(rng, 15000);
  if (kind < 999) return 20000 + rng_below(rng, 300000);
  return 600000 + rng_below(rng, 2000000);
}

static void* fill(void* arg) {
  part_t* part = (part_t*)arg;
  rng_t   rng = rng_make(part->seed);
  size_t  bytes = 0;
  part->n_used = 0;
  while (bytes < part->bytes && part->n_used < part->count) {
    size_t size = next_size(&rng);
    void*  p = mi_malloc(size);
    if (p == NULL) break;
    memset(p, 0xAB, size);
    blocks[part->first + part->n_used++] = p;
    bytes += size;
  }
  return NULL;
}

static void* free_all(void* arg) {
  part_t* part = (part_t*)arg;
  for (size_t i = 0; i < part->n_used; i++) mi_free(blocks[part->first + i]);
  return NULL;
}

static void run_two(void* (*job)(void*), part_t* parts) {
  pthread_t threads[2];
  for (size_t i = 0; i < 2; i++) CHECK_EQ(pthread_create(&threads[i], NULL, job, &parts[i]), 0);
  for (size_t i = 0; i < 2; i++) pthread_join(threads[i], NULL);
}

static void check_handed_over(uint64_t seed) {
  size_t before = rss_now();
  part_t parts[2];
  for (size_t i = 0; i < 2; i++)
    parts[i] = (part_t){i * (max_blocks / 2), max_blocks / 2, total_bytes / 2, 0, seed + i};
  run_two(&fill, parts);
  size_t full = minus(rss_now(), before);
  CHECK(full > total_bytes / 10 * 9 || !rss_is_meaningful());
  run_two(&free_all, parts);
  size_t freed = minus(rss_now(), before);
  sleep_ms(idle_ms);
  size_t after = minus(rss_now(), before);
  printf("handed over: %.1f MiB full, %.1f when freed\n", (double)full / (double)MiB, (double)freed / (double)MiB);
  CHECK(rss_within("resident after two idle seconds", after, full / 50));
}

// With a delay of 0 no more than a MiB waits, and no thread keeps a large block.
static void check_at_once(void) {
  enum { n = 200, size = 20000 };
  static void* p[n];
  long         delay = mi_option_get(mi_option_purge_delay);
  mi_option_set(mi_option_purge_delay, 0);
  mi_collect(true);
  size_t before = rss_now();
  for (size_t i = 0; i < n; i++) p[i] = memset(mi_malloc(size), 1, size);
  void*  big = memset(mi_malloc(3 * MiB), 1, 3 * MiB);
  size_t full = minus(rss_now(), before);
  mi_free(big);
  for (size_t i = 0; i < n; i++) mi_free(p[i]);
  CHECK(full >= n * size + 3 * MiB || !rss_is_meaningful());
  CHECK(rss_within("resident when 7 MiB were freed, without a delay", minus(rss_now(), before), 2 * MiB));
  mi_option_set(mi_option_purge_delay, delay);
}

// ---- a pool ---------------------------------------------------------------------------------------------------------

static pthread_barrier_t barrier; // stages: allocated, shuffled, freed, measured
static part_t            pool_parts[n_pool];

static void* pool_thread(void* arg) {
  size_t index = (size_t)(uintptr_t)arg;
  fill(&pool_parts[index]);
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  size_t share = n_total / n_pool;
  size_t last = index == n_pool - 1 ? n_total : (index + 1) * share;
  for (size_t i = index * share; i < last; i++) mi_free(blocks[i]);
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier); // asleep, not ended
  return NULL;
}

// The pool takes again what the part before has given back, so it may be held for so long (RC4, arena/recall.h).  Whether it is
// depends on how busy the processors are.
enum { hold_ms = 4000 };

static void check_pool(uint64_t seed) {
  rng_t     rng = rng_make(seed);
  size_t    before = rss_now();
  pthread_t threads[n_pool];
  pthread_barrier_init(&barrier, NULL, n_pool + 1);
  for (size_t i = 0; i < n_pool; i++) {
    pool_parts[i] = (part_t){i * (max_blocks / n_pool), max_blocks / n_pool, total_bytes / n_pool, 0, seed + 100 + i};
    CHECK_EQ(pthread_create(&threads[i], NULL, &pool_thread, (void*)(uintptr_t)i), 0);
  }
  pthread_barrier_wait(&barrier);
  size_t full = minus(rss_now(), before);
  n_total = 0;
  for (size_t i = 0; i < n_pool; i++) {
    for (size_t k = 0; k < pool_parts[i].n_used; k++) blocks[n_total++] = blocks[pool_parts[i].first + k];
  }
  for (size_t i = n_total; i > 1; i--) {
    size_t k = rng_below(&rng, i);
    void*  p = blocks[k];
    blocks[k] = blocks[i - 1];
    blocks[i - 1] = p;
  }
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  size_t freed = minus(rss_now(), before);
  sleep_ms(idle_ms + hold_ms);
  size_t after = minus(rss_now(), before);
  printf("pool: %zu blocks, %.1f MiB full, %.1f when freed\n", n_total, (double)full / (double)MiB,
         (double)freed / (double)MiB);
  CHECK(rss_within("resident while the pool sleeps", after, full / 20));
  pthread_barrier_wait(&barrier);
  for (size_t i = 0; i < n_pool; i++) pthread_join(threads[i], NULL);
}

// ---- large blocks -----------------------------------------------------------------------------------------------------

static void* free_large(void* arg) {
  pthread_barrier_wait(&barrier);
  mi_free(memset(mi_malloc(3 * MiB), 1, 3 * MiB)); // the thread keeps it for its next request
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier); // asleep
  return arg;
}

// When nothing was to be done for a while, a round has to be asked for.
static void check_kept(void) {
  pthread_t threads[n_pool];
  pthread_barrier_init(&barrier, NULL, n_pool + 1);
  for (size_t i = 0; i < n_pool; i++) CHECK_EQ(pthread_create(&threads[i], NULL, &free_large, NULL), 0);
  mi_collect(true);
  sleep_ms(idle_ms);
  size_t before = rss_now();
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  sleep_ms(idle_ms);
  CHECK(rss_within("resident when threads have freed a large block", minus(rss_now(), before), 4 * MiB));
  pthread_barrier_wait(&barrier);
  for (size_t i = 0; i < n_pool; i++) pthread_join(threads[i], NULL);
}

// ---- a few blocks ---------------------------------------------------------------------------------------------------

enum { few_each = 8192, few_every = 64, few_size = 1000, few_wait_s = 40 };

static void* keep_few(void* arg) {
  void** mine = &blocks[(size_t)(uintptr_t)arg * few_each];
  for (size_t i = 0; i < few_each; i++) mine[i] = memset(mi_malloc(few_size), 1, few_size);
  for (size_t i = 0; i < few_each; i++) {
    if (i % few_every != 0) mi_free(mine[i]);
  }
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier); // asleep
  for (size_t i = 0; i < few_each; i += few_every) {
    CHECK(((char*)mine[i])[few_size - 1] == 1);
    mi_free(mine[i]);
  }
  return arg;
}

// Pages stay for their blocks, and nobody asks for any: after a while (heap/hollow.h) what lies between the blocks goes back.
static void check_few(void) {
  pthread_t threads[n_pool];
  mi_collect(true);
  sleep_ms(idle_ms);
  size_t before = rss_now();
  pthread_barrier_init(&barrier, NULL, n_pool + 1);
  for (size_t i = 0; i < n_pool; i++) CHECK_EQ(pthread_create(&threads[i], NULL, &keep_few, (void*)(uintptr_t)i), 0);
  pthread_barrier_wait(&barrier);
  size_t freed = minus(rss_now(), before), after = freed, most = freed / 4;
  for (int s = 0; after > most && s < few_wait_s && HAS_GAPS; s++) {
    sleep_ms(1000);
    after = minus(rss_now(), before);
  }
  printf("a few blocks: %.1f MiB when the others are freed\n", (double)freed / (double)MiB);
  CHECK(rss_within("resident while they sleep", after, most) || !HAS_GAPS);
  pthread_barrier_wait(&barrier);
  for (size_t i = 0; i < n_pool; i++) pthread_join(threads[i], NULL);
}

int main(int argc, char** argv) {
  uint64_t seed = test_seed(argc, argv);
  watchdog(120);
  if (!TEST_HAS_BACKGROUND) {
    test_skip("memory of threads that sleep", "the library has no thread of its own on this system");
    return skip_code;
  }
  if (MI_API_LEVEL >= 3) mi_option_set(mi_option_purge_delay, 10); // at level 3 it is a second
  memset(blocks, 0, sizeof(blocks));                               // its OS pages are not part of the account
  total_bytes = TEST_SANITIZED ? 32 * MiB : test_scale() > 1 ? GiB : 256 * MiB;
  check_at_once();
  check_handed_over(seed);
  check_pool(seed);
  check_kept();
  check_few();
  return check_result();
}
