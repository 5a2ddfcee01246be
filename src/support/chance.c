// Logarithm and exponential function, for sampling.  Layer: support.
#include "chance.h"

#include "../prim/prim.h"

#define CHANCE_LN_2 0.69314718055994530942

// The natural logarithm of n > 0, to 1e-12: that of its leading bit, and a series in y = (m - 1) / (m + 1), 0 <= y <= 1/3, for
// what is left, 1 <= m < 2.
static double chance_ln(uint64_t n) {
  int    bit = (int)mi_msb64(n);
  double m = (double)n / (double)((uint64_t)1 << bit);
  double y = (m - 1) / (m + 1), square = y * y, sum = 0;
  for (int i = 23; i >= 1; i -= 2) sum = sum * square + 1.0 / i;
  return 2 * y * sum + bit * CHANCE_LN_2;
}

// The system is asked once: a process may not be able to later.
uint64_t _mi_chance_seed(void) {
  static mi_atomic(uint64_t) chance;
  uint64_t                   before = mi_load_relaxed(&chance);
  if (before == 0) mi_cas_strong(&chance, &before, _mi_prim_random() | 1, relaxed, relaxed);
  return mi_load_relaxed(&chance) ^ (uint64_t)_mi_prim_clock_ns();
}

// At most 64 ln 2 = 44 means.
int64_t _mi_chance_distance(uint64_t random, size_t mean) {
  double share = 64 * CHANCE_LN_2 - chance_ln(random | 1);
  return (int64_t)(share * (double)mean) + 1;
}

// By the series of the exponential function for a small part of x; (1 - e) * (1 + e) doubles it.
double _mi_chance_of_size(size_t size, size_t mean) {
  double x = (double)size / (double)mean, term, sum = 0;
  int    n_halved = 0;
  if (x > 40) return 1;
  while (x > 0.5) {
    x /= 2;
    n_halved++;
  }
  term = x;
  for (int i = 2; i < 16; i++) {
    sum += term;
    term *= -x / i;
  }
  for (; n_halved > 0; n_halved--) sum *= 2 - sum;
  return sum;
}
