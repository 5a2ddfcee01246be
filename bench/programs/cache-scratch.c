// cache-scratch: does the allocator hand a cache line that threads came to share out again?  (passive false sharing)
//
// Pattern   The main thread allocates one small block for each thread, side by side. Each thread frees its block, then
//           repeats as cache-thrash does: allocates one of that size, increments each byte many times, frees it.
// Idea      The first blocks share lines because the program passed them around, and no allocator can help that. But an
//           allocator that gives a thread the block back that it freed lets the threads share those lines for good;
//           one that returns it to where it came from does not. E. Berger, K. McKinley, R. Blumofe, P. Wilson,
//           "Hoard: A Scalable Memory Allocator for Multithreaded Applications" (ASPLOS 2000).
// Check     The value of every byte before a block is freed.
// Usage     cache-scratch [THREADS = 2] [BLOCKS = 1000] [WRITES = 200000] [SIZE = 8]
//           BLOCKS: that each thread allocates, one after the other; WRITES: to each byte of each block
#include "bench.h"

#define LINE_SIZE    64
#define SPARE_BLOCKS 4

static size_t            n_threads, n_blocks, n_writes, block_size;
static unsigned char*    passed[BENCH_THREADS_MAX]; // by the main thread
static pthread_barrier_t start;
static uint64_t          sums[BENCH_THREADS_MAX]; // each written once, at the end of its thread

static void block_fill(volatile unsigned char* block, unsigned char first) {
  for (size_t at = 0; at < block_size; at++) block[at] = (unsigned char)(first + at);
}

// Verifies a block that was filled and then incremented n times.
static uint64_t block_sum(const volatile unsigned char* block, unsigned char first, size_t n) {
  uint64_t sum = 0;
  for (size_t at = 0; at < block_size; at++) {
    if (block[at] != (unsigned char)(first + at + n)) bench_fail("byte %zu of a block", at);
    sum = sum * 31 + block[at];
  }
  return sum;
}

// volatile: each write must reach the cache.
static void block_increment(volatile unsigned char* block) {
  for (size_t i = 0; i < n_writes; i++) {
    for (size_t at = 0; at < block_size; at++) block[at]++;
  }
}

static void thread_run(size_t index) {
  pthread_barrier_wait(&start); // else the first one could be done before the last one begins
  uint64_t sum = block_sum(passed[index], (unsigned char)index, 0);
  free(passed[index]);
  for (size_t i = 0; i < n_blocks; i++) {
    unsigned char* block = bench_not_null(malloc(block_size));
    unsigned char  first = (unsigned char)(index + i);
    block_fill(block, first);
    block_increment(block);
    sum += block_sum(block, first, n_writes);
    free(block);
  }
  sums[index] = sum;
}

// Allocates the blocks to pass and a few more, so that the first two can be neighbours in one line where the allocator
// makes such neighbours at all; else it would be luck for blocks of half a line.
static void blocks_new(unsigned char* spare[SPARE_BLOCKS]) {
  static unsigned char* all[BENCH_THREADS_MAX + SPARE_BLOCKS];
  size_t                first = 0;
  for (size_t i = 0; i < n_threads + SPARE_BLOCKS; i++) all[i] = bench_not_null(malloc(block_size));
  while (first < SPARE_BLOCKS && (uintptr_t)all[first] / LINE_SIZE != (uintptr_t)all[first + 1] / LINE_SIZE) first++;
  for (size_t i = 0; i < n_threads; i++) {
    passed[i] = all[first + i];
    block_fill(passed[i], (unsigned char)i);
  }
  for (size_t i = 0; i < SPARE_BLOCKS; i++) spare[i] = all[i < first ? i : i + n_threads];
}

int main(int argc, char** argv) {
  n_threads = bench_argument(argc, argv, 1, "THREADS", 2, BENCH_THREADS_MAX);
  n_blocks = bench_argument(argc, argv, 2, "BLOCKS", 1000, SIZE_MAX);
  n_writes = bench_argument(argc, argv, 3, "WRITES", 200000, SIZE_MAX);
  block_size = bench_argument(argc, argv, 4, "SIZE", 8, 4096);
  unsigned char* spare[SPARE_BLOCKS];
  blocks_new(spare);
  pthread_barrier_init(&start, NULL, (unsigned)n_threads);
  bench_threads_run(n_threads, &thread_run);
  uint64_t sum = 0;
  for (size_t i = 0; i < n_threads; i++) sum += sums[i];
  for (size_t i = 0; i < SPARE_BLOCKS; i++) free(spare[i]);
  printf("cache-scratch %zu %zu %zu %zu: %016llx\n", n_threads, n_blocks, n_writes, block_size,
         (unsigned long long)sum);
  return 0;
}
