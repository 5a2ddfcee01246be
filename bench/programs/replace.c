// replace: random replacement in a large table, one thread.
//
// Pattern   A table of blocks of 16 to 256 bytes is filled; then each step frees the block of a random slot and puts
//           one of another random size there. The live heap is far larger than the caches, and its neighbours in memory
//           soon have nothing to do with each other in age or size: the state of a cache server or an object database.
// Idea      The replacement loop of P. Larson and M. Krishnan, "Memory Allocation for Long-Running Server Applications"
//           (1998), in its form for one thread.
// Check     The first 16 bytes of each block, when it is freed. (The last ones are left alone: they would be one more
//           cache miss of the program's own in each step.)
// Usage     replace [STEPS = 4000000] [SLOTS = 1000000]
#include "bench.h"

typedef struct block_s {
  uint64_t tag;
  uint64_t slot;
} block_t;

// The tag of a block is this, changed by a random number: the sum of these must come back in the end.
static uint64_t key_of(uint64_t slot) {
  return (slot + 1) * 0xD6E8FEB86659FD93u;
}

static block_t* block_new(uint64_t random, uint64_t slot) {
  block_t* block = bench_not_null(malloc(sizeof(block_t) + (random & 0xFF) * 241 / 256));
  block->tag = key_of(slot) ^ random;
  block->slot = slot;
  return block;
}

// Gives the random number that the block was made with.
static uint64_t block_free(block_t* block, uint64_t slot) {
  uint64_t random = block->tag ^ key_of(slot);
  if (block->slot != slot) bench_fail("the slot in a block");
  free(block);
  return random;
}

int main(int argc, char** argv) {
  size_t    steps = bench_argument(argc, argv, 1, "STEPS", 4000000, SIZE_MAX);
  size_t    slots = bench_argument(argc, argv, 2, "SLOTS", 1000000, UINT32_MAX);
  block_t** table = bench_not_null(malloc(slots * sizeof(block_t*)));
  uint64_t  random_state = bench_random_seed(0);
  uint64_t  expected = 0, sum = 0;
  for (size_t i = 0; i < slots; i++) {
    uint64_t r = bench_random(&random_state);
    table[i] = block_new(r, i);
    expected += r;
  }
  for (size_t i = 0; i < steps; i++) {
    uint64_t r = bench_random(&random_state);
    size_t   at = (size_t)((r >> 32) * slots >> 32);
    sum += block_free(table[at], at);
    table[at] = block_new(r, at);
    expected += r;
  }
  for (size_t i = 0; i < slots; i++) sum += block_free(table[i], i);
  free(table);
  if (sum != expected) bench_fail("the tags in the blocks");
  printf("replace %zu %zu: %016llx\n", steps, slots, (unsigned long long)sum);
  return 0;
}
