// glibc-thread: a small working set in each thread, random replacement, mostly tiny blocks.
//
// Pattern   Each thread keeps 1024 blocks and replaces random ones. Sizes of 4 bytes to 32 KiB, the probability of a
//           size inverse to its square: half of the blocks have less than 8 bytes, 1 of 16 has more than 64. Threads
//           share nothing.
// Idea      The threaded malloc benchmark of the GNU C library: the sizes of small programs, and a working set that
//           stays in the cache, so the instructions of malloc and free are what is measured.
// Check     The first bytes (up to 4) and the last byte of each block, when it is freed.
// Usage     glibc-thread [THREADS = 2] [STEPS = 25000000] [BLOCKS = 1024]      STEPS: of each thread
#include <string.h>
#include "bench.h"

#define SIZES    8192
#define SIZE_MIN 4
#define SIZE_TOP 32768

typedef struct slot_s {
  unsigned char* block;
  uint32_t       size;
  uint32_t       tag;
} slot_t;

static size_t   n_steps, n_blocks;
static uint16_t sizes[SIZES];
static uint64_t sums[BENCH_THREADS_MAX]; // each written once, at the end of its thread

// The inverse of the distribution function of 1 / size^2 at points evenly apart: each size as often as it should be.
static void fill_sizes(void) {
  const double range = 1 - (double)SIZE_MIN / SIZE_TOP;
  for (size_t i = 0; i < SIZES; i++) sizes[i] = (uint16_t)(SIZE_MIN / (1 - (double)i / SIZES * range));
}

static void slot_fill(slot_t* slot, uint64_t r) {
  slot->size = sizes[(r >> 32) % SIZES];
  slot->tag = (uint32_t)r;
  slot->block = bench_not_null(malloc(slot->size));
  slot->block[slot->size - 1] = (unsigned char)(slot->tag >> 24); // where a block of 4 bytes has it (little endian)
  memcpy(slot->block, &slot->tag, sizeof(slot->tag));
}

// Frees the block; gives its tag.
static uint64_t slot_empty(slot_t* slot) {
  if (memcmp(slot->block, &slot->tag, sizeof(slot->tag)) != 0) bench_fail("the first bytes of a block");
  if (slot->size > sizeof(slot->tag) && slot->block[slot->size - 1] != (unsigned char)(slot->tag >> 24))
    bench_fail("the last byte of a block");
  free(slot->block);
  return slot->tag;
}

static void thread_run(size_t index) {
  uint64_t random = bench_random_seed(index), sum = 0;
  slot_t*  slots = bench_not_null(malloc(n_blocks * sizeof(slot_t)));
  for (size_t i = 0; i < n_blocks; i++) slot_fill(&slots[i], bench_random(&random));
  for (size_t i = 0; i < n_steps; i++) {
    slot_t* slot = &slots[bench_random_below(&random, n_blocks)];
    sum += slot_empty(slot);
    slot_fill(slot, bench_random(&random));
  }
  for (size_t i = 0; i < n_blocks; i++) sum += slot_empty(&slots[i]);
  free(slots);
  sums[index] = sum;
}

int main(int argc, char** argv) {
  size_t n_threads = bench_argument(argc, argv, 1, "THREADS", 2, BENCH_THREADS_MAX);
  n_steps = bench_argument(argc, argv, 2, "STEPS", 25000000, SIZE_MAX);
  n_blocks = bench_argument(argc, argv, 3, "BLOCKS", 1024, UINT32_MAX);
  fill_sizes();
  bench_threads_run(n_threads, &thread_run);
  uint64_t sum = 0;
  for (size_t i = 0; i < n_threads; i++) sum += sums[i];
  printf("glibc-thread %zu %zu %zu: %016llx\n", n_threads, n_steps, n_blocks, (unsigned long long)sum);
  return 0;
}
