// cache-thrash: does the allocator put blocks of different threads into one cache line?  (active false sharing)
//
// Pattern   Each thread repeats: allocates one small block, increments each of its bytes many times, frees it.
// Idea      When two threads get blocks in the same line, each write takes the line away from the other core, and the
//           loop runs at the speed of the interconnect. An allocator that carves lines up per thread runs at the speed
//           of one thread. E. Berger, K. McKinley, R. Blumofe, P. Wilson, "Hoard: A Scalable Memory Allocator for
//           Multithreaded Applications" (ASPLOS 2000).
// Check     The value of every byte before the block is freed.
// Usage     cache-thrash [THREADS = 2] [BLOCKS = 1000] [WRITES = 200000] [SIZE = 8]
//           BLOCKS: that each thread allocates, one after the other; WRITES: to each byte of each block
#include "cache-blocks.h"

static void thread_run(size_t index) {
  pthread_barrier_wait(&start); // else the first one could be done before the last one begins
  sums[index] = blocks_use(index);
}

int main(int argc, char** argv) {
  cache_arguments(argc, argv);
  uint64_t sum = cache_run(&thread_run);
  printf("cache-thrash %zu %zu %zu %zu: %016llx\n", n_threads, n_blocks, n_writes, block_size, (unsigned long long)sum);
  return 0;
}
