// What proofs are made of.  A proof is a function proof_<name>: its inputs are any values whatever that meet its REQUIREs, and the
// model checker shows that none breaks an ENSURE, leaves an array or an object, shifts too far, or overflows a signed number.
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Functions of these names that have no body return any value.
size_t   nondet_size(void);
uint32_t nondet_u32(void);
uint64_t nondet_u64(void);

#if defined(MI_PROOF_ESBMC)
void __ESBMC_assume(_Bool holds);
void __ESBMC_assert(_Bool holds, const char* what);
  #define REQUIRE(holds) __ESBMC_assume(holds)
  #define ENSURE(holds)  __ESBMC_assert(holds, #holds)

// It does not know these, and takes them for functions that return anything.
static inline int proof_clz(uint64_t x) {
  int n = 0;
  ENSURE(x != 0);
  for (int half = 32; half > 0; half /= 2) {
    if (x >> (64 - half) == 0) {
      x <<= half;
      n += half;
    }
  }
  return n;
}

static inline int proof_ctz(uint64_t x) {
  int n = 0;
  ENSURE(x != 0);
  for (int half = 32; half > 0; half /= 2) {
    if (x << (64 - half) == 0) {
      x >>= half;
      n += half;
    }
  }
  return n;
}
  #define __builtin_clzll(x)     proof_clz(x)
  #define __builtin_ctzll(x)     proof_ctz(x)
  #define __builtin_ctz(x)       proof_ctz(x)
  #define __builtin_expect(x, y) (x)
#else
void __CPROVER_assume(_Bool holds);
void __CPROVER_assert(_Bool holds, const char* what);
  #define REQUIRE(holds) __CPROVER_assume(holds)
  #define ENSURE(holds)  __CPROVER_assert(holds, #holds)
#endif

// Any power of two.
static inline size_t any_power(void) {
  size_t shift = nondet_size();
  REQUIRE(shift < sizeof(size_t) * CHAR_BIT);
  return (size_t)1 << shift;
}

static inline bool bit_of(uint64_t x, size_t i) {
  return ((x >> i) & 1) != 0;
}
