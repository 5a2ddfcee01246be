// churn: short-lived blocks of mixed small sizes, one thread.
//
// Pattern   A window of live blocks; each step frees one and allocates another. Half of the steps free the oldest
//           block, half a random one. Sizes: as many between 8 and 16 as between 512 and 1024 (uniform in the
//           logarithm); 1 of 256 is larger, up to 32 KiB.
// Idea      Measured programs allocate mostly small blocks that die soon, with a long tail in both size and age; see
//           P. Wilson, M. Johnstone, M. Neely, D. Boles, "Dynamic Storage Allocation: A Survey and Critical Review"
//           (1995).
// Check     The first 8 bytes and the last byte of each block, when it is freed.
// Usage     churn [STEPS = 40000000] [WINDOW = 2000]
#include <string.h>
#include "bench.h"

#define SIZES 4096

typedef struct slot_s {
  unsigned char* block;
  uint64_t       tag;
  size_t         size;
} slot_t;

static uint64_t random_state;

// A size with `bits` significant bits, all of them equally likely.
static size_t size_with_bits(unsigned bits) {
  size_t top = (size_t)1 << (bits - 1);
  return top + bench_random(&random_state) % top;
}

static void fill_sizes(uint16_t sizes[SIZES]) {
  for (size_t i = 0; i < SIZES; i++) {
    unsigned bits = i % 256 == 0 ? 11 + (unsigned)(bench_random(&random_state) % 5)
                                 : 4 + (unsigned)(bench_random(&random_state) % 7);
    sizes[i] = (uint16_t)size_with_bits(bits);
  }
}

static void slot_fill(slot_t* slot, size_t size, uint64_t tag) {
  slot->block = bench_not_null(malloc(size));
  slot->tag = tag;
  slot->size = size;
  slot->block[size - 1] = (unsigned char)tag;
  memcpy(slot->block, &tag, sizeof(tag));
}

// Frees the block; gives its tag.
static uint64_t slot_empty(slot_t* slot) {
  uint64_t tag = slot->tag;
  if (memcmp(slot->block, &tag, sizeof(tag)) != 0) bench_fail("the first bytes of a block");
  if (slot->size > sizeof(tag) && slot->block[slot->size - 1] != (unsigned char)tag)
    bench_fail("the last byte of a block");
  free(slot->block);
  return tag;
}

int main(int argc, char** argv) {
  size_t          steps = bench_argument(argc, argv, 1, "STEPS", 40000000, SIZE_MAX);
  size_t          window = bench_argument(argc, argv, 2, "WINDOW", 2000, UINT32_MAX);
  static uint16_t sizes[SIZES];
  random_state = bench_random_seed(0);
  fill_sizes(sizes);
  slot_t* slots = bench_not_null(malloc(window * sizeof(slot_t)));
  for (size_t i = 0; i < window; i++) slot_fill(&slots[i], sizes[i % SIZES], i);

  uint64_t sum = 0;
  size_t   oldest = 0;
  for (size_t i = 0; i < steps; i++) {
    uint64_t r = bench_random(&random_state);
    size_t   at = oldest;
    if (i % 2 == 0) at = (size_t)((r >> 32) * window >> 32);
    else if (++oldest == window) oldest = 0;
    sum += slot_empty(&slots[at]);
    slot_fill(&slots[at], sizes[r % SIZES], r);
  }
  for (size_t i = 0; i < window; i++) sum += slot_empty(&slots[i]);
  free(slots);
  printf("churn %zu %zu: %016llx\n", steps, window, (unsigned long long)sum);
  return 0;
}
