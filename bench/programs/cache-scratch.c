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
#include "cache-blocks.h"

#define LINE_SIZE    64
#define SPARE_BLOCKS 4

static unsigned char* passed[BENCH_THREADS_MAX]; // by the main thread

static void thread_run(size_t index) {
  pthread_barrier_wait(&start); // else the first one could be done before the last one begins
  uint64_t sum = block_sum(passed[index], (unsigned char)index, 0);
  free(passed[index]);
  sums[index] = sum + blocks_use(index);
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
  cache_arguments(argc, argv);
  unsigned char* spare[SPARE_BLOCKS];
  blocks_new(spare);
  uint64_t sum = cache_run(&thread_run);
  for (size_t i = 0; i < SPARE_BLOCKS; i++) free(spare[i]);
  printf("cache-scratch %zu %zu %zu %zu: %016llx\n", n_threads, n_blocks, n_writes, block_size,
         (unsigned long long)sum);
  return 0;
}
