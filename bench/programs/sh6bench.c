// sh6bench: bursts of blocks of one size, freed in several orders; each thread keeps to its own blocks.
//
// Pattern   A thread goes round a cycle of sizes from 1 to 1000 bytes. At each it allocates a burst of blocks, of the
//           small sizes more than of the large ones. Of three bursts one is freed last block first, one first block
//           first; of the third every other block is freed at once, and the rest stays for a while, in part to the end.
// Idea      MicroQuill's benchmark for SmartHeap, by its published description: a stress test where some objects are
//           freed in the usual order, last allocated first, and others in the reverse of it.
// Check     The first and the last byte of each block, when it is freed.
// Usage     sh6bench [THREADS = 4] [CYCLES = 900]      CYCLES: of each thread
#include "bench.h"

#define BURST_MAX 1024
#define KEPT_MAX  32 // bursts that stay

static const uint16_t sizes[] = {1,   8,  12,  16, 20,  24, 32,  16, 40, 8,  48,  64, 24,  72, 100, 16, 32, 128,
                                 150, 24, 200, 48, 256, 12, 300, 64, 36, 16, 400, 96, 500, 40, 700, 24, 16, 1000};
#define N_SIZES (sizeof(sizes) / sizeof(sizes[0]))

typedef struct burst_s {
  size_t         count;
  size_t         size;
  unsigned char* blocks[BURST_MAX];
} burst_t;

static size_t   n_threads, n_cycles;
static uint64_t sums[BENCH_THREADS_MAX]; // each written once, at the end of its thread

// 50 blocks of 1000 bytes, 680 of 8.
static size_t burst_count(size_t size) {
  return 35 + 16000 / (size + 17);
}

static unsigned char block_fill_of(size_t size, size_t i) {
  return (unsigned char)(size * 7 + i);
}

static void burst_fill(burst_t* burst, size_t size) {
  burst->size = size;
  burst->count = burst_count(size);
  for (size_t i = 0; i < burst->count; i++) {
    unsigned char* block = bench_not_null(malloc(size));
    block[size - 1] = block[0] = block_fill_of(size, i);
    burst->blocks[i] = block;
  }
}

static uint64_t block_free(const burst_t* burst, size_t i) {
  unsigned char* block = burst->blocks[i];
  unsigned char  fill = block_fill_of(burst->size, i);
  if (block[0] != fill || block[burst->size - 1] != fill) bench_fail("a block of %zu bytes", burst->size);
  free(block);
  return (uint64_t)burst->size + fill;
}

static uint64_t burst_free_last_first(const burst_t* burst) {
  uint64_t sum = 0;
  for (size_t i = burst->count; i > 0; i--) sum += block_free(burst, i - 1);
  return sum;
}

// Each `step`-th block from `first` on, first block first.
static uint64_t burst_free_first_first(const burst_t* burst, size_t first, size_t step) {
  uint64_t sum = 0;
  for (size_t i = first; i < burst->count; i += step) sum += block_free(burst, i);
  return sum;
}

static void thread_run(size_t index) {
  uint64_t sum = 0;
  size_t   n_kept = 0;                                                        // so far
  burst_t* bursts = bench_not_null(malloc((KEPT_MAX + 1) * sizeof(burst_t))); // the last one for those that do not stay
  for (size_t i = 0; i < n_cycles * N_SIZES; i++) {
    size_t size = sizes[(i + index) % N_SIZES];
    if (i % 3 == 2) {
      burst_t* burst = &bursts[n_kept % KEPT_MAX];
      if (n_kept++ >= KEPT_MAX) sum += burst_free_first_first(burst, 1, 2);
      burst_fill(burst, size);
      sum += burst_free_first_first(burst, 0, 2);
    }
    else {
      burst_t* burst = &bursts[KEPT_MAX];
      burst_fill(burst, size);
      sum += i % 3 == 0 ? burst_free_last_first(burst) : burst_free_first_first(burst, 0, 1);
    }
  }
  for (size_t i = 0; i < KEPT_MAX && i < n_kept; i++) sum += burst_free_first_first(&bursts[i], 1, 2);
  free(bursts);
  sums[index] = sum;
}

int main(int argc, char** argv) {
  n_threads = bench_argument(argc, argv, 1, "THREADS", 4, BENCH_THREADS_MAX);
  n_cycles = bench_argument(argc, argv, 2, "CYCLES", 900, SIZE_MAX / N_SIZES);
  bench_threads_run(n_threads, &thread_run);
  uint64_t sum = 0;
  for (size_t i = 0; i < n_threads; i++) sum += sums[i];
  printf("sh6bench %zu %zu: %016llx\n", n_threads, n_cycles, (unsigned long long)sum);
  return 0;
}
