// Memory in five situations, for any allocator that is preloaded or linked; each prints one line.
//
//   scenarios metadata   1 GiB of 64-byte blocks, all written: resident beyond the blocks
//   scenarios idle       two threads fill 1 GiB, two others free it, all end, 2 s without a call: resident
//   scenarios pool       8 threads fill 1 GiB, free it all in random order, and sleep without ending, 2 s: resident
//   scenarios producer   one thread only allocates, another only frees, 250 MB live: peak
//   scenarios remap      realloc from 64 to 128 MiB: milliseconds
//
// Sizes are 16 to 1024 bytes, uniform in the logarithm, where nothing else is said.
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define MiB ((size_t)1 << 20)
#define GiB ((size_t)1 << 30)

static size_t resident(void) {
  size_t size = 0;
  size_t pages = 0;
  FILE*  f = fopen("/proc/self/statm", "r");
  if (f == NULL || fscanf(f, "%zu %zu", &size, &pages) != 2) exit(2);
  fclose(f);
  return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static uint64_t next_random(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

static size_t random_size(uint64_t* state) {
  uint64_t r = next_random(state);
  size_t   low = (size_t)16 << (r % 6);
  return low + (size_t)((r >> 8) % low);
}

// Our own tables do not come from the allocator under test.
static void* table(size_t n) {
  void* p = mmap(NULL, n * sizeof(void*), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) exit(2);
  return p;
}

static void* must_malloc(size_t size) {
  void* p = malloc(size);
  if (p == NULL) exit(3);
  memset(p, 1, size);
  return p;
}

// ---- metadata -------------------------------------------------------------------------------------------------------

static int run_metadata(void) {
  size_t n = GiB / 64;
  void** blocks = (void**)table(n);
  for (size_t i = 0; i < n; i++) blocks[i] = NULL; // the table is resident before we look
  size_t before = resident();
  for (size_t i = 0; i < n; i++) blocks[i] = must_malloc(64);
  double beyond = (double)(resident() - before) - (double)GiB;
  printf("metadata: %.2f MiB beyond 1 GiB of blocks, %.3f %%\n", beyond / (double)MiB, 100 * beyond / (double)GiB);
  return 0;
}

// ---- idle and pool --------------------------------------------------------------------------------------------------

typedef struct part_s {
  void**   blocks;
  size_t   n;
  size_t   bytes;
  uint64_t seed;
} part_t;

static pthread_barrier_t freed;
static pthread_barrier_t filled;

static void* fill(void* arg) {
  part_t* part = (part_t*)arg;
  for (size_t bytes = 0; bytes < part->bytes;) {
    size_t size = random_size(&part->seed);
    part->blocks[part->n++] = must_malloc(size);
    bytes += size;
  }
  return NULL;
}

static void* empty(void* arg) {
  part_t* part = (part_t*)arg;
  for (size_t i = 0; i < part->n; i++) free(part->blocks[i]);
  return NULL;
}

static part_t pool_parts[8];
static void** pool_all;
static size_t pool_n;

static void* pool_member(void* arg) {
  size_t me = (size_t)((part_t*)arg - pool_parts);
  fill(arg);
  if (pthread_barrier_wait(&filled) == PTHREAD_BARRIER_SERIAL_THREAD) {
    uint64_t seed = 99;
    for (size_t i = 0; i < 8; i++) {
      for (size_t k = 0; k < pool_parts[i].n; k++) pool_all[pool_n++] = pool_parts[i].blocks[k];
    }
    for (size_t i = pool_n - 1; i > 0; i--) {
      size_t k = (size_t)(next_random(&seed) % (i + 1));
      void*  p = pool_all[i];
      pool_all[i] = pool_all[k];
      pool_all[k] = p;
    }
  }
  pthread_barrier_wait(&filled);
  for (size_t i = me; i < pool_n; i += 8) free(pool_all[i]);
  pthread_barrier_wait(&freed);
  for (;;) pause();
  return NULL;
}

static void report_rest(const char* name, size_t before) {
  sleep(2);
  double rest = (double)resident() - (double)before;
  printf("%s: %.1f MiB of 1 GiB still resident after 2 s, %.2f %%\n", name, rest / (double)MiB,
         100 * rest / (double)GiB);
}

static int run_idle(void) {
  pthread_t threads[2];
  part_t    parts[2];
  size_t    most = GiB / 2 / 16;
  for (size_t i = 0; i < 2; i++) parts[i] = (part_t){(void**)table(most), 0, GiB / 2, i + 1};
  size_t before = resident();
  for (size_t i = 0; i < 2; i++) pthread_create(&threads[i], NULL, &fill, &parts[i]);
  for (size_t i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  for (size_t i = 0; i < 2; i++) pthread_create(&threads[i], NULL, &empty, &parts[1 - i]);
  for (size_t i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  for (size_t i = 0; i < 2; i++) munmap(parts[i].blocks, most * sizeof(void*));
  report_rest("idle", before);
  return 0;
}

static int run_pool(void) {
  pthread_t thread;
  size_t    most = GiB / 8 / 16;
  pthread_barrier_init(&filled, NULL, 8);
  pthread_barrier_init(&freed, NULL, 9);
  pool_all = (void**)table(8 * most);
  for (size_t i = 0; i < 8; i++) pool_parts[i] = (part_t){(void**)table(most), 0, GiB / 8, i + 1};
  size_t before = resident();
  for (size_t i = 0; i < 8; i++) pthread_create(&thread, NULL, &pool_member, &pool_parts[i]);
  pthread_barrier_wait(&freed);
  for (size_t i = 0; i < 8; i++) munmap(pool_parts[i].blocks, most * sizeof(void*));
  munmap(pool_all, 8 * most * sizeof(void*));
  report_rest("pool", before);
  return 0;
}

// ---- producer -------------------------------------------------------------------------------------------------------

#define LIVE_BYTES ((size_t)250 * 1000 * 1000)
#define RING       (1u << 22)
static _Atomic(void*)* ring; // block with its size in the first word
static atomic_size_t   live;

static void* produce(void* arg) {
  uint64_t seed = 7;
  (void)arg;
  for (size_t i = 0;; i++) {
    if (atomic_load(&ring[i % RING]) != NULL) continue;
    while (atomic_load(&live) > LIVE_BYTES) sched_yield();
    size_t  size = random_size(&seed);
    size_t* p = (size_t*)must_malloc(size);
    *p = size;
    atomic_fetch_add(&live, size);
    atomic_store(&ring[i % RING], (void*)p);
  }
  return NULL;
}

// Frees in an order of its own: each round it takes what lies at a random place, so blocks die out of order.
static void* consume(void* arg) {
  uint64_t seed = 11;
  (void)arg;
  for (size_t n = 0; n < 10u * 1000 * 1000;) {
    if (atomic_load(&live) < LIVE_BYTES / 100 * 99) {
      sched_yield();
      continue;
    }
    size_t* p = (size_t*)atomic_exchange(&ring[next_random(&seed) % RING], NULL);
    if (p == NULL) continue;
    atomic_fetch_sub(&live, *p);
    free(p);
    n++;
  }
  exit(0);
}

static size_t base;

static void report_peak(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  double peak = (double)usage.ru_maxrss * 1024 - (double)base;
  printf("producer: peak %.1f MB for 250 MB live, %.3f x\n", peak / 1e6, peak / (double)LIVE_BYTES);
}

static int run_producer(void) {
  pthread_t a;
  pthread_t b;
  ring = (_Atomic(void*)*)table(RING);
  for (size_t i = 0; i < RING; i++) atomic_store(&ring[i], NULL);
  base = resident();
  atexit(&report_peak);
  pthread_create(&a, NULL, &produce, NULL);
  pthread_create(&b, NULL, &consume, NULL);
  pthread_join(b, NULL);
  return 0;
}

// ---- remap ----------------------------------------------------------------------------------------------------------

static int run_remap(void) {
  char*  p = (char*)must_malloc(64 * MiB);
  void*  behind = must_malloc(MiB);
  double start = now_ms();
  p = (char*)realloc(p, 128 * MiB);
  double end = now_ms();
  if (p == NULL || p[64 * MiB - 1] != 1) return 1;
  printf("remap: realloc from 64 to 128 MiB in %.3f ms\n", end - start);
  free(p);
  free(behind);
  return 0;
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "metadata") == 0) return run_metadata();
  if (strcmp(what, "idle") == 0) return run_idle();
  if (strcmp(what, "pool") == 0) return run_pool();
  if (strcmp(what, "producer") == 0) return run_producer();
  if (strcmp(what, "remap") == 0) return run_remap();
  fprintf(stderr, "usage: scenarios metadata|idle|pool|producer|remap\n");
  return 2;
}
