// large-batches: large blocks are allocated and freed in batches, one thread.
//
// Pattern   A batch of blocks of about one size is allocated, then freed, again and again. The sizes differ by up to an eighth
//           (VARY = 2) or not at all (VARY = 1). One word in each 64 KiB of a block is written.
// Idea      The temporaries of an expression over arrays, the planes of an image, the buffers of a request: memory that is needed
//           again at once. What is measured is what the allocator does with it in between.
// Check     The words, when the block is freed.
// Usage     large-batches [KIB = 1024] [BATCH = 16] [BATCHES = 40000] [VARY = 2]
#include "bench.h"

#define STRIDE 65536
#define MOST   1024

typedef struct block_s {
  unsigned char* bytes;
  size_t         size;
} block_t;

static uint64_t random_state;

static uint64_t* word_at(const block_t* block, size_t at) {
  return (uint64_t*)(void*)(block->bytes + at);
}

static void block_make(block_t* block, size_t size, uint64_t tag) {
  block->size = size;
  block->bytes = bench_not_null(malloc(size));
  for (size_t at = 0; at + sizeof(uint64_t) <= size; at += STRIDE) *word_at(block, at) = tag + at;
}

static void block_end(block_t* block, uint64_t tag) {
  for (size_t at = 0; at + sizeof(uint64_t) <= block->size; at += STRIDE)
    if (*word_at(block, at) != tag + at) bench_fail("the word at %zu in a block of %zu bytes", at, block->size);
  free(block->bytes);
}

int main(int argc, char** argv) {
  static block_t blocks[MOST];
  size_t         size = bench_argument(argc, argv, 1, "KIB", 1024, 1 << 22) << 10;
  size_t         batch = bench_argument(argc, argv, 2, "BATCH", 16, MOST);
  size_t         count = bench_argument(argc, argv, 3, "BATCHES", 40000, SIZE_MAX);
  size_t         vary = bench_argument(argc, argv, 4, "VARY", 2, 2);
  random_state = bench_random_seed(0);
  uint64_t sum = 0;
  for (size_t i = 0; i < count; i++) {
    for (size_t k = 0; k < batch; k++) {
      size_t less = vary == 2 ? bench_random_below(&random_state, size / 8) / 8 * 8 : 0;
      block_make(&blocks[k], size - less, i + k);
      sum = sum * 31 + blocks[k].size;
    }
    for (size_t k = 0; k < batch; k++) block_end(&blocks[k], i + k);
  }
  printf("large-batches %zu %zu %zu: %016llx\n", size >> 10, batch, count, (unsigned long long)sum);
  return 0;
}
