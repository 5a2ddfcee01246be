// Bit and size arithmetic.  Layer: base.
#pragma once

#include "compiler.h"

// Index of the lowest and of the highest set bit; x must not be 0.
static inline size_t mi_ctz32(uint32_t x) {
  return (size_t)__builtin_ctz(x);
}
static inline size_t mi_ctz64(uint64_t x) {
  return (size_t)__builtin_ctzll(x);
}
static inline size_t mi_msb64(uint64_t x) {
  return 63u - (size_t)__builtin_clzll(x);
}
// Where the processor may have no instruction for it, the builtin is a call of the compiler's library.
static inline size_t mi_popcount32(uint32_t x) {
#if defined(__POPCNT__) || defined(__ARM_NEON)
  return (size_t)__builtin_popcount(x);
#else
  x -= (x >> 1) & 0x55555555u; // in fields of 2 bits, then of 4, then of 8
  x = (x & 0x33333333u) + ((x >> 2) & 0x33333333u);
  x = (x + (x >> 4)) & 0x0F0F0F0Fu;
  return (x * 0x01010101u) >> 24;
#endif
}

static inline bool mi_is_pow2(size_t x) {
  return x != 0 && (x & (x - 1)) == 0;
}

// Rounding to a power of two; the sum must not overflow.
static inline size_t mi_align_up(size_t x, size_t align) {
  return (x + align - 1) & ~(align - 1);
}
static inline size_t mi_align_down(size_t x, size_t align) {
  return x & ~(align - 1);
}
static inline size_t mi_div_up(size_t x, size_t d) {
  return (x + d - 1) / d;
}

// A bijection whose every bit depends on all of x: the finalizer of splitmix64 (S. Vigna).
static inline uint64_t mi_mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

static inline int64_t mi_min_signed(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static inline size_t mi_min(size_t a, size_t b) {
  return a < b ? a : b;
}
static inline size_t mi_max(size_t a, size_t b) {
  return a > b ? a : b;
}
static inline size_t mi_clamp(size_t x, size_t lo, size_t hi) {
  return x < lo ? lo : (x > hi ? hi : x);
}

static inline bool mi_is_aligned(const void* p, size_t align) {
  return ((uintptr_t)p & (align - 1)) == 0;
}

// *product = a * b; returns true when it does not fit.
static inline bool mi_mul_overflows(size_t a, size_t b, size_t* product) {
  return __builtin_mul_overflow(a, b, product);
}

// The low n bits set, 0 <= n <= 32.
static inline uint32_t mi_mask32(size_t n) {
  return n >= 32 ? UINT32_MAX : (((uint32_t)1 << n) - 1);
}

// Bit i of the result is set when bits i .. i+n-1 of x are all set (1 <= n <= 64).  Doubling: six steps at most.
static inline uint64_t mi_runs64(uint64_t x, size_t n) {
  size_t have = 1;
  while (have < n && x != 0) {
    size_t step = mi_min(have, n - have);
    x &= x >> step;
    have += step;
  }
  return x;
}

static inline uint32_t mi_runs32(uint32_t x, size_t n) {
  return (uint32_t)mi_runs64(x, n);
}

// How many bits are set from the lowest on, and from the highest on down.
static inline size_t mi_low_ones64(uint64_t x) {
  return x == UINT64_MAX ? 64 : mi_ctz64(~x);
}
static inline size_t mi_high_ones64(uint64_t x) {
  return x == UINT64_MAX ? 64 : 63 - mi_msb64(~x);
}
static inline size_t mi_high_ones32(uint32_t x) {
  return mi_high_ones64((uint64_t)x << 32);
}

// Are the bits that are set one run?
static inline bool mi_is_run32(uint32_t x) {
  return ((x + (x & (0u - x))) & x) == 0;
}

// Length of the longest run of set bits.
static inline size_t mi_longest_run32(uint32_t x) {
  if (mi_is_run32(x)) return x == 0 ? 0 : mi_msb64(x) - mi_ctz32(x) + 1;
  const uint32_t two = x & (x >> 1), four = two & (two >> 2), eight = four & (four >> 4),
                 sixteen = eight & (eight >> 8);
  uint32_t at = (sixteen != 0 ? sixteen : UINT32_MAX); // bit i: n bits are set from i on
  size_t   n = (sixteen != 0 ? 16 : 0);
  if ((at & (sixteen >> n)) != 0 && n != 0) return 32;
  if ((at & (eight >> n)) != 0) {
    at &= eight >> n;
    n += 8;
  }
  if ((at & (four >> n)) != 0) {
    at &= four >> n;
    n += 4;
  }
  if ((at & (two >> n)) != 0) {
    at &= two >> n;
    n += 2;
  }
  return n + ((at & (x >> n)) != 0);
}
