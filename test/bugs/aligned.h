// Aligned blocks.
#pragma once

#include "bug.h"

static inline char* get_aligned(size_t align, size_t size) {
  void* p = NULL;
  if (posix_memalign(&p, align, size) != 0) _exit(3);
  memset(p, 'a', size);
  return (char*)p;
}

static inline blocks_t get_some_aligned(size_t align, size_t size) {
  blocks_t all = {{NULL}, some(size), size};
  for (size_t i = 0; i < all.n; i++) all.p[i] = get_aligned(align, size);
  return all;
}
