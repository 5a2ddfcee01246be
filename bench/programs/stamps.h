// What grow, grow-many and arrays share: buffers with stamps, which show at the end that none of it was lost.
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

typedef struct buffer_s {
  unsigned char* bytes;
  size_t         size;
  uint64_t       key; // of its stamps
} buffer_t;

static inline void buffer_make(buffer_t* b, size_t size, uint64_t key) {
  b->bytes = bench_not_null(malloc(size));
  b->size = size;
  b->key = key;
  stamps_write(b->bytes, 0, size, key);
}

// Grows as containers of C++ do it: a new block, a copy, a free.
static inline void buffer_copy(buffer_t* b, size_t size) {
  unsigned char* bytes = bench_not_null(malloc(size));
  memcpy(bytes, b->bytes, b->size);
  free(b->bytes);
  stamps_write(bytes, b->size, size, b->key);
  b->bytes = bytes;
  b->size = size;
}

// By realloc; it may shrink.
static inline void buffer_resize(buffer_t* b, size_t size) {
  b->bytes = bench_not_null(realloc(b->bytes, size));
  if (size > b->size) stamps_write(b->bytes, b->size, size, b->key);
  b->size = size;
}

// Verifies and frees it; gives a sum of its content.
static inline uint64_t buffer_end(buffer_t* b) {
  uint64_t sum = stamps_sum(b->bytes, b->size, b->key);
  free(b->bytes);
  return sum;
}
