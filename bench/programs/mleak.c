// mleak: threads that end at once and leave live blocks behind; does memory come back?
//
// Pattern   One generation of threads after the other. Each thread allocates blocks of 17 to 1024 bytes (uniform in the
//           logarithm) and ends without freeing them; in turn it frees those that another thread left 8 generations
//           before. So the number of live blocks stays the same, but most belong to threads that are no more.
// Idea      The test for leaks at the end of threads that allocators are commonly given ("mleak", README of
//           mimalloc-bench). The peak of memory is the result: it should not depend on the number of generations.
// Check     The first 8 bytes and the last byte of each block, when it is freed; the number of blocks freed.
// Usage     mleak [THREADS = 2] [GENERATIONS = 12000] [BLOCKS = 400]
//           THREADS: of each generation; BLOCKS: that each thread leaves behind
#include <string.h>
#include "bench.h"

#define AGE 8 // generations that a block is there

typedef struct slot_s {
  unsigned char* block;
  uint64_t       tag;
} slot_t;

static size_t   n_threads, n_blocks, generation;
static slot_t*  left[AGE][BENCH_THREADS_MAX]; // by the threads of the last generations
static uint64_t sums[BENCH_THREADS_MAX];      // of the tags of the blocks freed
static size_t   n_freed[BENCH_THREADS_MAX];

static size_t size_of(uint64_t tag) {
  size_t top = (size_t)16 << (tag >> 32) % 6;
  return top + ((tag >> 40) & (top - 1)) + 1;
}

static void slot_fill(slot_t* slot, uint64_t tag) {
  size_t size = size_of(tag);
  slot->block = bench_not_null(malloc(size));
  slot->tag = tag;
  slot->block[size - 1] = (unsigned char)tag;
  memcpy(slot->block, &tag, sizeof(tag));
}

// Frees the block, if there is one; gives its tag.
static uint64_t slot_empty(slot_t* slot) {
  if (slot->block == NULL) return 0;
  if (memcmp(slot->block, &slot->tag, sizeof(slot->tag)) != 0) bench_fail("the first bytes of a block");
  if (slot->block[size_of(slot->tag) - 1] != (unsigned char)slot->tag) bench_fail("the last byte of a block");
  free(slot->block);
  slot->block = NULL;
  return slot->tag;
}

static void thread_run(size_t index) {
  uint64_t random = bench_random_seed(generation * BENCH_THREADS_MAX + index);
  slot_t*  slots = left[generation % AGE][(index + generation / AGE) % n_threads]; // from another one each time
  uint64_t sum = 0;
  size_t   n = 0;
  for (size_t i = 0; i < n_blocks; i++) {
    n += slots[i].block != NULL;
    sum += slot_empty(&slots[i]);
    slot_fill(&slots[i], bench_random(&random));
  }
  sums[index] += sum;
  n_freed[index] += n;
}

// The main thread frees the rest; gives the sum of the tags.
static uint64_t left_free(size_t* n) {
  uint64_t sum = 0;
  for (size_t i = 0; i < AGE * n_threads; i++) {
    slot_t* slots = left[i % AGE][i / AGE];
    for (size_t k = 0; k < n_blocks; k++) {
      *n += slots[k].block != NULL;
      sum += slot_empty(&slots[k]);
    }
    free(slots);
  }
  return sum;
}

int main(int argc, char** argv) {
  n_threads = bench_argument(argc, argv, 1, "THREADS", 2, BENCH_THREADS_MAX);
  size_t n_generations = bench_argument(argc, argv, 2, "GENERATIONS", 12000, UINT32_MAX);
  n_blocks = bench_argument(argc, argv, 3, "BLOCKS", 400, UINT32_MAX);
  for (size_t i = 0; i < AGE * n_threads; i++)
    left[i % AGE][i / AGE] = bench_not_null(calloc(n_blocks, sizeof(slot_t)));
  for (generation = 0; generation < n_generations; generation++) bench_threads_run(n_threads, &thread_run);

  size_t   n = 0;
  uint64_t sum = left_free(&n);
  for (size_t i = 0; i < n_threads; i++) {
    sum += sums[i];
    n += n_freed[i];
  }
  if (n != n_threads * n_generations * n_blocks) bench_fail("%zu blocks freed", n);
  printf("mleak %zu %zu %zu: %016llx\n", n_threads, n_generations, n_blocks, (unsigned long long)sum);
  return 0;
}
