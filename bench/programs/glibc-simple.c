// glibc-simple: bursts of blocks of one size, one thread.
//
// Pattern   Allocates N blocks of one size, then frees them in the same order; again and again. N is 25, 100, 400 and
//           1600, the size 16 to 1024 bytes.
// Idea      The simple malloc benchmark of the GNU C library: few blocks fit what an allocator keeps at hand for a
//           thread, many do not, so its second path shows too. First in, first out: a block is not used again while it
//           is still in the cache's first lines.
// Check     The first 8 bytes and the last byte of each block, when it is freed.
// Usage     glibc-simple [ROUNDS = 800]
//           ROUNDS: 1600 blocks for each size and each N
#include <string.h>
#include "bench.h"

#define BURST_MAX 1600

static const size_t sizes[] = {16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024};
static const size_t bursts[] = {25, 100, 400, 1600};

// Gives the sum of the tags of the blocks.
static uint64_t burst_run(size_t n, size_t size, uint64_t first_tag) {
  static unsigned char* blocks[BURST_MAX];
  uint64_t              sum = 0;
  for (size_t i = 0; i < n; i++) {
    uint64_t tag = first_tag + i;
    blocks[i] = bench_not_null(malloc(size));
    memcpy(blocks[i], &tag, sizeof(tag));
    blocks[i][size - 1] = (unsigned char)tag;
  }
  for (size_t i = 0; i < n; i++) {
    uint64_t tag;
    memcpy(&tag, blocks[i], sizeof(tag));
    if (tag != first_tag + i) bench_fail("the first bytes of a block");
    if (blocks[i][size - 1] != (unsigned char)tag) bench_fail("the last byte of a block");
    sum = sum * 31 + tag;
    free(blocks[i]);
  }
  return sum;
}

int main(int argc, char** argv) {
  size_t   n_rounds = bench_argument(argc, argv, 1, "ROUNDS", 800, UINT32_MAX);
  uint64_t sum = 0, tag = 0;
  for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
    for (size_t b = 0; b < sizeof(bursts) / sizeof(bursts[0]); b++) {
      for (size_t i = 0; i < n_rounds * BURST_MAX; i += bursts[b]) {
        sum = sum * 31 + burst_run(bursts[b], sizes[s], tag);
        tag += bursts[b];
      }
    }
  }
  printf("glibc-simple %zu: %016llx\n", n_rounds, (unsigned long long)sum);
  return 0;
}
