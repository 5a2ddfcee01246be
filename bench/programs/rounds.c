// rounds: what is left of blocks of other sizes.
//
// Pattern   In each round blocks of up to MIB MiB in all are made, whose sizes differ by half from a size of the round, which is 32
//           bytes to 64 KiB, at random. Then all blocks that are there are freed in their order, but for one in LEFT on average.
// Idea      A program whose phases use other sizes each, and keep something of their results: what is free between those serves the
//           next phase, if the allocator joins it, and costs memory if not.
// Check     A word at both ends of each block.
// Usage     rounds [MIB = 50] [ROUNDS = 40] [LEFT = 8]
#include <string.h>
#include "bench.h"

typedef struct block_s {
  char*    bytes;
  uint32_t size;
} block_t;

static block_t* blocks;
static size_t   n_blocks, n_room;
static uint64_t sum;

static void block_make(size_t size) {
  uint64_t key = size ^ n_blocks;
  if (n_blocks == n_room) {
    n_room = 2 * n_room + 1024;
    blocks = (block_t*)bench_not_null(realloc(blocks, n_room * sizeof(block_t)));
  }
  char* bytes = (char*)bench_not_null(malloc(size));
  memcpy(bytes, &key, sizeof(key));
  memcpy(bytes + size - sizeof(key), &key, sizeof(key));
  blocks[n_blocks++] = (block_t){bytes, (uint32_t)size};
}

static void block_end(const block_t* block) {
  if (memcmp(block->bytes, block->bytes + block->size - sizeof(uint64_t), sizeof(uint64_t)) != 0)
    bench_fail("the content of a block");
  sum = sum * 31 + block->size;
  free(block->bytes);
}

static void round_make(uint64_t* random_state, size_t size_all) {
  size_t mean = (size_t)32 << bench_random_below(random_state, 12);
  for (size_t all = 0, size; all < size_all; all += size) {
    size = mean / 2 + bench_random_below(random_state, mean);
    block_make(size);
  }
}

static void round_end(uint64_t* random_state, size_t n_left) {
  size_t n = 0;
  for (size_t i = 0; i < n_blocks; i++) {
    if (bench_random_below(random_state, n_left) == 0) blocks[n++] = blocks[i];
    else block_end(&blocks[i]);
  }
  n_blocks = n;
}

int main(int argc, char** argv) {
  size_t   mib = bench_argument(argc, argv, 1, "MIB", 50, 1 << 14);
  size_t   n_rounds = bench_argument(argc, argv, 2, "ROUNDS", 40, SIZE_MAX);
  size_t   n_left = bench_argument(argc, argv, 3, "LEFT", 8, 1 << 20);
  uint64_t random_state = bench_random_seed(mib);
  for (size_t i = 0; i < n_rounds; i++) {
    round_make(&random_state, mib << 20);
    round_end(&random_state, n_left);
  }
  for (size_t i = 0; i < n_blocks; i++) block_end(&blocks[i]);
  free(blocks);
  printf("rounds %zu %zu %zu: %016llx\n", mib, n_rounds, n_left, (unsigned long long)sum);
  return 0;
}
