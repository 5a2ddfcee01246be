// What grow, grow-many and arrays share: the stamps in a buffer, which show at its end that no realloc lost any of it.
//
// Stamps lie at the multiples of STAMP_EACH, which the program defines, that have room for one.
#pragma once

#include <string.h>
#include "bench.h"

// Stamps what a buffer has got, from `from` bytes on; `from` is its size before, or 0.
static void stamps_write(unsigned char* bytes, size_t from, size_t to, uint64_t key) {
  size_t first = from < sizeof(uint64_t) ? 0 : (from - sizeof(uint64_t)) / STAMP_EACH * STAMP_EACH + STAMP_EACH;
  for (size_t at = first; at + sizeof(uint64_t) <= to; at += STAMP_EACH) {
    uint64_t stamp = key + at;
    memcpy(bytes + at, &stamp, sizeof(stamp));
  }
}

// Verifies the stamps; gives a sum of them and of the size.
static uint64_t stamps_sum(const unsigned char* bytes, size_t size, uint64_t key) {
  uint64_t sum = size;
  for (size_t at = 0; at + sizeof(uint64_t) <= size; at += STAMP_EACH) {
    uint64_t stamp;
    memcpy(&stamp, bytes + at, sizeof(stamp));
    if (stamp != key + at) bench_fail("the content of a buffer");
    sum = sum * 31 + stamp;
  }
  return sum;
}
