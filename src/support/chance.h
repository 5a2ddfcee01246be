// Chance, and the numbers that follow from it.  Layer: support.  Without the system's library of mathematics.
#pragma once

#include "../base/atomic.h"
#include "../base/bits.h"

// Other numbers in each process, also in the child of a fork.
uint64_t _mi_chance_seed(void);

// Any number below n is equally likely; `random` is 64 random bits.
static inline size_t _mi_chance_below(uint64_t random, size_t n) {
  return (size_t)((random >> 32) * n >> 32);
}

// The distance to the next point of a Poisson process on bytes: exponentially distributed, at least 1.
int64_t _mi_chance_distance(uint64_t random, size_t mean);

// The probability that a block of so many bytes has one of its points: 1 - exp(-size / mean).
double _mi_chance_of_size(size_t size, size_t mean);
