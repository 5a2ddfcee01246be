// Proves: the bit and size arithmetic agrees with versions that go bit by bit, at the edges and for random values.
#include "../check.h"
#include "../modes/support.h"
#include "base/bits.h"

// ---- bit by bit -----------------------------------------------------------------------------------------------------

static size_t naive_lowest(uint64_t x) {
  size_t i = 0;
  while (((x >> i) & 1) == 0) i++;
  return i;
}

static size_t naive_highest(uint64_t x) {
  size_t i = 63;
  while (((x >> i) & 1) == 0) i--;
  return i;
}

static size_t naive_count(uint64_t x) {
  size_t n = 0;
  for (size_t i = 0; i < 64; i++) n += (size_t)((x >> i) & 1);
  return n;
}

static bool naive_run_at(uint32_t x, size_t i, size_t n) {
  for (size_t k = i; k < i + n; k++) {
    if (k >= 32 || ((x >> k) & 1) == 0) return false;
  }
  return true;
}

static uint32_t naive_runs(uint32_t x, size_t n) {
  uint32_t runs = 0;
  for (size_t i = 0; i < 32; i++) {
    if (naive_run_at(x, i, n)) runs |= (uint32_t)1 << i;
  }
  return runs;
}

static size_t naive_longest_run(uint32_t x) {
  size_t longest = 0, now = 0;
  for (size_t i = 0; i < 32; i++) {
    now = ((x >> i) & 1) != 0 ? now + 1 : 0;
    if (now > longest) longest = now;
  }
  return longest;
}

// ---- checks ---------------------------------------------------------------------------------------------------------

static void check_word32(uint32_t x) {
  if (x != 0) CHECK_EQ(mi_ctz32(x), naive_lowest(x));
  CHECK_EQ(mi_popcount32(x), naive_count(x));
  CHECK_EQ(mi_longest_run32(x), naive_longest_run(x));
  for (size_t n = 1; n <= 32; n++) {
    CHECK_FOR(mi_runs32(x, n) == naive_runs(x, n), "x 0x%x n %zu: 0x%x", x, n, mi_runs32(x, n));
  }
}

static void check_word64(uint64_t x) {
  CHECK_FOR(mi_is_pow2((size_t)x) == (naive_count((size_t)x) == 1), "0x%llx", (unsigned long long)x);
  if (x == 0) return;
  CHECK_EQ(mi_ctz64(x), naive_lowest(x));
  CHECK_EQ(mi_msb64(x), naive_highest(x));
}

static void check_rounding(size_t x, size_t align) {
  size_t down = x - x % align;
  CHECK_EQ(mi_align_down(x, align), down);
  CHECK_EQ(mi_is_aligned((const void*)(uintptr_t)x, align), down == x);
  if (x <= SIZE_MAX - align) CHECK_EQ(mi_align_up(x, align), down == x ? x : down + align);
}

static void check_div_up(size_t x, size_t d) {
  if (x <= SIZE_MAX - d) CHECK_EQ(mi_div_up(x, d), x / d + (x % d != 0 ? 1 : 0));
}

static void check_order(size_t a, size_t b, size_t c) {
  size_t lo = a < b ? a : b, hi = a < b ? b : a;
  CHECK_EQ(mi_min(a, b), lo);
  CHECK_EQ(mi_max(a, b), hi);
  CHECK_EQ(mi_clamp(c, lo, hi), c < lo ? lo : (c < hi ? c : hi));
}

static void check_product(size_t a, size_t b) {
  size_t product = 0;
  bool   overflows = (a != 0 && b > SIZE_MAX / a);
  CHECK_FOR(mi_mul_overflows(a, b, &product) == overflows, "%zu * %zu", a, b);
  CHECK_FOR(overflows || product == a * b, "%zu * %zu", a, b);
}

static void check_masks(void) {
  for (size_t n = 0; n <= 32; n++) {
    uint32_t mask = mi_mask32(n);
    CHECK_EQ(naive_count(mask), n);
    CHECK(n == 0 || naive_run_at(mask, 0, n));
  }
}

static void check_edges(void) {
  static const size_t edges[] = {0,       1, 2, 3, 7, 8, 9, 4095, 4096, 4097, UINT32_MAX, SIZE_MAX / 2, SIZE_MAX - 1,
                                 SIZE_MAX};
  for (size_t i = 0; i < 64; i++) {
    uint64_t bit = (uint64_t)1 << i;
    check_word64(bit);
    check_word64(bit - 1);
    check_word64(~bit);
    check_word32((uint32_t)(bit - 1));
    check_word32((uint32_t)(~bit));
    check_word32((uint32_t)(bit >> 32));
    for (size_t k = 0; k < COUNT_OF(edges); k++) {
      if ((size_t)bit != 0) check_rounding(edges[k], (size_t)bit);
      check_product(edges[k], (size_t)bit);
    }
  }
  for (size_t i = 0; i < COUNT_OF(edges); i++) {
    for (size_t k = 0; k < COUNT_OF(edges); k++) {
      check_product(edges[i], edges[k]);
      if (edges[k] != 0) check_div_up(edges[i], edges[k]);
      for (size_t m = 0; m < COUNT_OF(edges); m++) check_order(edges[i], edges[k], edges[m]);
    }
  }
}

static void check_random(rng_t* r) {
  for (size_t i = 0; i < 20000 * test_scale(); i++) {
    uint64_t x = rng_next(r), y = rng_next(r), z = rng_next(r);
    check_word32((uint32_t)x);
    check_word32((uint32_t)(x | y | z)); // long runs
    check_word64(x >> (z % 64));
    check_rounding((size_t)(x >> (y % 64)), (size_t)1 << (z % (8 * sizeof(size_t))));
    check_div_up((size_t)(x >> (y % 64)), (size_t)(z >> (x % 64)) | 1);
    check_order((size_t)(x % 100), (size_t)(y % 100), (size_t)(z % 100));
    check_product((size_t)(x >> (z % 64)), (size_t)(y >> ((z >> 8) % 64)));
  }
}

int main(int argc, char** argv) {
  rng_t r = rng_make(test_seed(argc, argv));
  check_masks();
  check_word32(0);
  check_word64(0);
  check_edges();
  check_random(&r);
  return check_result();
}
