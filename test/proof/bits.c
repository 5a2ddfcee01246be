// Proves of base/bits.h, for all values: rounding, counting, and runs of bits.
#include "proof.h"

#include "base/bits.h"

void proof_align(void) {
  size_t x = nondet_size(), align = any_power();
  size_t down = mi_align_down(x, align);
  ENSURE(down <= x && x - down < align && (down & (align - 1)) == 0);
  REQUIRE(x <= SIZE_MAX - (align - 1));
  size_t up = mi_align_up(x, align);
  ENSURE(up >= x && up - x < align && (up & (align - 1)) == 0);
}

void proof_count(void) {
  uint32_t x = nondet_u32();
  size_t   n = 0;
  for (size_t i = 0; i < 32; i++) n += bit_of(x, i);
  ENSURE(mi_popcount32(x) == n);
}

void proof_ends(void) {
  uint64_t x = nondet_u64();
  size_t   i = nondet_size(), low = mi_low_ones64(x), high = mi_high_ones64(x);
  REQUIRE(i < 64);
  ENSURE(low <= 64 && (i >= low || bit_of(x, i)) && (low == 64 || !bit_of(x, low)));
  ENSURE(high <= 64 && (i >= high || bit_of(x, 63 - i)) && (high == 64 || !bit_of(x, 63 - high)));
  REQUIRE(x != 0);
  ENSURE(bit_of(x, mi_msb64(x)) && (i <= mi_msb64(x) || !bit_of(x, i)));
  ENSURE(bit_of(x, mi_ctz64(x)) && (i >= mi_ctz64(x) || !bit_of(x, i)));
}

void proof_mask(void) {
  size_t n = nondet_size(), i = nondet_size();
  REQUIRE(n <= 32 && i < 32);
  ENSURE(bit_of(mi_mask32(n), i) == (i < n));
}

void proof_runs(void) {
  uint64_t x = nondet_u64();
  size_t   n = nondet_size(), i = nondet_size();
  REQUIRE(n >= 1 && n <= 64 && i < 64);
  uint64_t run = (n == 64 ? UINT64_MAX : ((uint64_t)1 << n) - 1);
  ENSURE(bit_of(mi_runs64(x, n), i) == (n <= 64 - i && ((x >> i) & run) == run));
}

void proof_is_run(void) {
  uint32_t x = nondet_u32(), from = nondet_u32(), n = nondet_u32();
  REQUIRE(n <= 32 && from < 32 && from + n <= 32);
  ENSURE(mi_is_run32(mi_mask32(n) << from));
  size_t n_begin = 0; // how many runs begin
  for (size_t i = 0; i < 32; i++) n_begin += (bit_of(x, i) && (i == 0 || !bit_of(x, i - 1)));
  ENSURE(mi_is_run32(x) == (n_begin <= 1));
}

void proof_longest_run(void) {
  uint32_t x = nondet_u32();
  size_t   n = 0, longest = 0;
  for (size_t i = 0; i < 32; i++) {
    n = (bit_of(x, i) ? n + 1 : 0);
    longest = (n > longest ? n : longest);
  }
  ENSURE(mi_longest_run32(x) == longest);
}

void proof_clamp(void) {
  size_t x = nondet_size(), lo = nondet_size(), hi = nondet_size();
  REQUIRE(lo <= hi);
  size_t y = mi_clamp(x, lo, hi);
  ENSURE(y >= lo && y <= hi && (x < lo || x > hi || y == x));
}
