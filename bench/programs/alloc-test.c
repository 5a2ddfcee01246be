// alloc-test: sizes and lifetimes with long tails, the blocks written and read; each thread has a table of its own.
//
// Pattern   Each step picks a slot of a large table. An empty slot gets a block, which is filled; a full one is read
//           from end to end and freed. Half of the picks go to one hundredth of the slots (a Pareto distribution), so
//           most blocks die young and some stay almost for ever. Sizes from 1 byte to 1 KiB, as many between n and 2n
//           for each n.
// Idea      Uniform random sizes and slots do what real programs never do, which is to defeat all caches; and a test
//           that does not touch its blocks cannot see the locality that an allocator gives. S. Ivanov and others,
//           "Testing Memory Allocators: ptmalloc2 vs tcmalloc vs hoard vs jemalloc While Trying to Simulate Real-World
//           Loads" (ACCU Overload, 2018).
// Check     All bytes of each block, when it is freed: they are read anyway.
// Usage     alloc-test [THREADS = 2] [STEPS = 10000000] [SLOTS = 262144]      STEPS and SLOTS: of each thread
#include <string.h>
#include "bench.h"

#define SIZE_BITS_MAX 10

typedef struct slot_s {
  unsigned char* block; // or NULL
  uint32_t       size;
  unsigned char  fill;
} slot_t;

static size_t   n_threads, n_steps, n_slots;
static uint64_t sums[BENCH_THREADS_MAX]; // each written once, at the end of its thread

// Pareto with shape 1: P(slot > x) = a / (a + x), where a is a hundredth of the slots. The last 1 % of the probability
// lies beyond the table and is spread over all of it.
static size_t slot_pick(uint64_t* random) {
  double u = ((double)(bench_random(random) >> 32) + 1) * 0x1p-32;
  double a = (double)n_slots / 100;
  double x = a / u - a;
  return x < (double)n_slots ? (size_t)x : bench_random_below(random, n_slots);
}

static void slot_fill(slot_t* slot, uint64_t r) {
  uint32_t top = (uint32_t)1 << (r >> 32) % SIZE_BITS_MAX;
  slot->size = top + ((uint32_t)r & (top - 1));
  slot->fill = (unsigned char)(r >> 56);
  slot->block = bench_not_null(malloc(slot->size));
  memset(slot->block, slot->fill, slot->size);
}

static uint64_t slot_empty(slot_t* slot) {
  // A block equals itself moved by one byte when all its bytes are equal.
  if (slot->block[0] != slot->fill || memcmp(slot->block, slot->block + 1, slot->size - 1) != 0)
    bench_fail("a block of %u bytes", slot->size);
  free(slot->block);
  slot->block = NULL;
  return (uint64_t)slot->size * (slot->fill + 1);
}

static void thread_run(size_t index) {
  uint64_t random = bench_random_seed(index);
  uint64_t sum = 0;
  slot_t*  slots = bench_not_null(calloc(n_slots, sizeof(slot_t)));
  for (size_t i = 0; i < n_steps; i++) {
    slot_t* slot = &slots[slot_pick(&random)];
    if (slot->block == NULL) slot_fill(slot, bench_random(&random));
    else sum = sum * 31 + slot_empty(slot);
  }
  for (size_t i = 0; i < n_slots; i++) {
    if (slots[i].block != NULL) sum = sum * 31 + slot_empty(&slots[i]);
  }
  free(slots);
  sums[index] = sum;
}

int main(int argc, char** argv) {
  n_threads = bench_argument(argc, argv, 1, "THREADS", 2, BENCH_THREADS_MAX);
  n_steps = bench_argument(argc, argv, 2, "STEPS", 10000000, SIZE_MAX);
  n_slots = bench_argument(argc, argv, 3, "SLOTS", 262144, UINT32_MAX);
  bench_threads_run(n_threads, &thread_run);
  uint64_t sum = 0;
  for (size_t i = 0; i < n_threads; i++) sum += sums[i];
  printf("alloc-test %zu %zu %zu: %016llx\n", n_threads, n_steps, n_slots, (unsigned long long)sum);
  return 0;
}
