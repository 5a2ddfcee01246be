// zeros: large blocks of zeros, one thread.
//
// Pattern   Some blocks are written and freed; then blocks of the same size come from calloc, are used in part, and are freed, again
//           and again.
// Idea      Arrays of zeros, hash tables and bit sets that are made large and filled thinly. Memory that is zero already need
//           not be cleared, and memory that is not can be cleared by the system when it is touched.
// Check     One word in each 4 KiB is zero, in what is used.
// Usage     zeros [KIB = 16384] [ROUNDS = 300] [BLOCKS = 8] [PERCENT = 1]
#include <string.h>
#include "bench.h"

#define PAGE_SIZE 4096
#define MOST      1024

static size_t size, used_of_100;

// Pages are used evenly over the block.
static void use(unsigned char* block) {
  size_t n = size / PAGE_SIZE, before = 0;
  for (size_t i = 0; i < n; i++) {
    size_t now = (i + 1) * used_of_100 / 100;
    if (now == before) continue;
    before = now;
    uint64_t word;
    memcpy(&word, block + i * PAGE_SIZE + 64, sizeof(word));
    if (word != 0) bench_fail("a block that is not zero");
    memset(block + i * PAGE_SIZE, 1, PAGE_SIZE);
  }
}

int main(int argc, char** argv) {
  static unsigned char* blocks[MOST];
  size = bench_argument(argc, argv, 1, "KIB", 16384, 1 << 22) << 10;
  size_t rounds = bench_argument(argc, argv, 2, "ROUNDS", 300, SIZE_MAX);
  size_t count = bench_argument(argc, argv, 3, "BLOCKS", 8, MOST);
  used_of_100 = bench_argument(argc, argv, 4, "PERCENT", 1, 100);
  for (size_t i = 0; i < count; i++) memset(blocks[i] = bench_not_null(malloc(size)), 1, size);
  for (size_t i = 0; i < count; i++) free(blocks[i]);
  for (size_t round = 0; round < rounds; round++) {
    for (size_t i = 0; i < count; i++) use(blocks[i] = bench_not_null(calloc(1, size)));
    for (size_t i = 0; i < count; i++) free(blocks[i]);
  }
  printf("zeros %zu %zu %zu %zu\n", size >> 10, rounds, count, used_of_100);
  return 0;
}
