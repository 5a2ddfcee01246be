// The patterns of calls of which the landscape has a row each.
#ifndef LANDSCAPE_PATTERNS_H
#define LANDSCAPE_PATTERNS_H

#include <stddef.h>

#define KiB ((size_t)1 << 10)
#define MiB ((size_t)1 << 20)

struct pattern {
  const char* name;
  size_t (*n_blocks)(size_t size);        // of a round, or of the table
  size_t n_pairs;                         // of a round, 0 if as many as blocks
  void (*prepare)(size_t size, size_t n); // before the first round
  void (*round)(size_t size, size_t n);
};

// NULL if there is none of that name.
const struct pattern* pattern_named(const char* name);

// The n-th, NULL after the last.
const struct pattern* pattern_at(size_t n);

#endif
