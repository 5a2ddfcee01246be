// drift: a cache of fixed capacity whose values change their size over time, one thread.
//
// Pattern   Values of a mean size, each 50 % larger or smaller at most. Whatever exceeds the capacity in bytes is dropped
//           and new values take its place until the cache was filled TURNS times; then the mean size is that of the next
//           phase. Values are dropped at random, or the oldest first, or the oldest of which half get a second chance.
// Idea      Values of a cache grow and shrink with what the program serves: S. Rumble and others, "Log-structured Memory
//           for DRAM-based Storage" (2014), workloads W1 to W8. What is left of the old sizes keeps pages of an allocator
//           with size classes, while those of the new sizes are added.
// Check     The size and both ends of each value, when it is dropped; the sum of the bytes.  On stderr, where the system tells:
//           for each phase what was resident, at most and at its end, as a multiple of what is live.
// Usage     drift [MIB = 100] [ORDER = 1] [DROPPED = 1] [TURNS = 3] [THREADS = 1] [PAUSE = 0]
//           ORDER: 1 growing, 2 shrinking, 3 back and forth; DROPPED: 1 at random, 2 oldest, 3 second chance;
//           TURNS: how often the cache is filled in each phase; each thread has a cache of its own;
//           PAUSE: so many ms after each 1/16 of a turn, beside a thread that has allocated and only sleeps
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <sys/mman.h>
#include <unistd.h>
#include "bench.h"

#define SIZE_LEAST 20
#define MARK       0x5Au
#define THREADS    64

typedef enum dropped_e { DROPPED_RANDOM = 1, DROPPED_OLDEST, DROPPED_CLOCK } dropped_t;

// A value; its last byte is the low byte of its size.
typedef struct value_s {
  uint32_t size;
  uint32_t mark; // the size, and so on
} value_t;

// The values are those from `first` to `end`, in a ring: the oldest first.
typedef struct cache_s {
  value_t** ring;
  size_t    mask, first, end;
  size_t    n_bytes;
  uint64_t  random, sum;
} cache_t;

static const size_t means[3][6] = {
    {44, 100, 210, 480, 1100, 2500}, {2500, 1100, 480, 210, 100, 44}, {100, 1100, 100, 1100, 100, 1100}};

static size_t            capacity, order, turns, n_threads, pause_ms;
static dropped_t         dropped;
static cache_t           caches[THREADS];
static pthread_barrier_t barrier;

// ---- what is resident, without the tables

static size_t resident_before, resident_most;

static size_t resident(void) {
  static char text[128];
  FILE*       file = fopen("/proc/self/statm", "r");
  size_t      n_pages = 0;
  if (file == NULL) return 0;
  setvbuf(file, text, _IOFBF, sizeof(text));
  if (fscanf(file, "%*s %zu", &n_pages) != 1) n_pages = 0;
  fclose(file);
  return n_pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void resident_look(void) {
  size_t now = resident();
  if (now > resident_most) resident_most = now;
}

static void resident_print(size_t mean) {
  double live = (double)capacity * (double)n_threads;
  resident_look();
  fprintf(stderr, "%5zu bytes: at most %.2f, at the end %.2f of what is live\n", mean,
          (double)(resident_most - resident_before) / live, (double)(resident() - resident_before) / live);
  resident_most = 0;
}

// ---- the cache

static value_t** cache_at(cache_t* cache, size_t i) {
  return &cache->ring[i & cache->mask];
}

static void cache_drop(cache_t* cache) {
  value_t** oldest = cache_at(cache, cache->first);
  if (dropped == DROPPED_RANDOM) {
    value_t** chosen = cache_at(cache, cache->first + bench_random_below(&cache->random, cache->end - cache->first));
    value_t*  value = *chosen;
    *chosen = *oldest;
    *oldest = value;
  }
  while (dropped == DROPPED_CLOCK && bench_random(&cache->random) >> 63 != 0) {
    *cache_at(cache, cache->end++) = *oldest;
    oldest = cache_at(cache, ++cache->first);
  }
  value_t* value = *oldest;
  cache->first++;
  if (value->mark != value->size * MARK || ((unsigned char*)value)[value->size - 1] != (unsigned char)value->size)
    bench_fail("a value of %zu bytes", (size_t)value->size);
  cache->n_bytes -= value->size;
  cache->sum = cache->sum * 31 + value->size;
  free(value);
}

static void cache_add(cache_t* cache, size_t mean) {
  size_t   size = mean / 2 + bench_random_below(&cache->random, mean + 1);
  value_t* value = bench_not_null(malloc(size < SIZE_LEAST ? size = SIZE_LEAST : size));
  memset(value, 0, size);
  value->size = (uint32_t)size;
  value->mark = value->size * MARK;
  ((unsigned char*)value)[size - 1] = (unsigned char)size;
  *cache_at(cache, cache->end++) = value;
  cache->n_bytes += size;
}

// Adds as many bytes.
static void cache_turn(cache_t* cache, size_t mean, size_t n_bytes) {
  for (size_t n = 0; n < n_bytes;) {
    size_t before = cache->n_bytes;
    cache_add(cache, mean);
    n += cache->n_bytes - before;
    while (cache->n_bytes > capacity) cache_drop(cache);
  }
}

static void sleep_ms(size_t ms) {
  struct timespec t = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
  if (ms > 0) nanosleep(&t, NULL);
}

static void cache_run(size_t index) {
  cache_t* cache = &caches[index];
  for (size_t phase = 0; phase < 6; phase++) {
    size_t mean = means[order - 1][phase];
    for (size_t i = 0; i < turns * 16; i++) {
      cache_turn(cache, mean, capacity / 16);
      if (index == 0) resident_look();
      sleep_ms(pause_ms);
    }
    pthread_barrier_wait(&barrier);
    if (index == 0) resident_print(mean);
    pthread_barrier_wait(&barrier);
  }
  while (cache->first != cache->end) cache_drop(cache);
}

static void cache_make(cache_t* cache, size_t index) {
  size_t n = 1;
  while (n < capacity / 30) n *= 2;
  void* ring = mmap(NULL, n * sizeof(value_t*), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (ring == MAP_FAILED) bench_fail("no memory for a table");
  memset(ring, 1, n * sizeof(value_t*));
  cache->ring = (value_t**)ring;
  cache->mask = n - 1;
  cache->random = bench_random_seed(index);
}

// Ends with the program.
static void* sleep_only(void* arg) {
  free(bench_not_null(malloc(100)));
  for (;;) sleep_ms(1000);
  return arg;
}

int main(int argc, char** argv) {
  capacity = bench_argument(argc, argv, 1, "MIB", 100, 4096) << 20;
  order = bench_argument(argc, argv, 2, "ORDER", 1, 3);
  dropped = (dropped_t)bench_argument(argc, argv, 3, "DROPPED", 1, 3);
  turns = bench_argument(argc, argv, 4, "TURNS", 3, 100);
  n_threads = bench_argument(argc, argv, 5, "THREADS", 1, THREADS);
  pause_ms = bench_argument(argc, argv, 6, "PAUSE", 0, 10000);
  capacity /= n_threads;
  for (size_t i = 0; i < n_threads; i++) cache_make(&caches[i], i);
  pthread_barrier_init(&barrier, NULL, (unsigned)n_threads);
  resident_before = resident();
  pthread_t sleeper;
  if (pause_ms > 0 && pthread_create(&sleeper, NULL, &sleep_only, NULL) != 0) bench_fail("no thread");
  if (n_threads == 1) cache_run(0);
  else bench_threads_run(n_threads, &cache_run);
  uint64_t sum = 0;
  for (size_t i = 0; i < n_threads; i++) sum += caches[i].sum;
  fprintf(stderr, "all is freed: %.2f\n", (double)(resident() - resident_before) / (double)(capacity * n_threads));
  printf("drift %zu MiB: %016llx\n", (capacity * n_threads) >> 20, (unsigned long long)sum);
  return 0;
}
