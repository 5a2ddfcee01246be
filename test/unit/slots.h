// Random blocks in slots, for tests that ask of each step whether the library's own counts hold.
#pragma once

#include "../check.h"
#include "mimalloc.h"

enum { n_slots = 300 };

static void* blocks[n_slots];

static void slot_malloc(size_t i, size_t size) {
  mi_free(blocks[i]);
  blocks[i] = mi_malloc(size);
}

static void slot_malloc_aligned(size_t i, size_t size, size_t alignment) {
  mi_free(blocks[i]);
  blocks[i] = mi_malloc_aligned(size, alignment);
}

static void slot_realloc(size_t i, size_t size) {
  void* p = mi_realloc(blocks[i], size);
  if (p != NULL) blocks[i] = p;
}

static void slot_free(size_t i) {
  mi_free(blocks[i]);
  blocks[i] = NULL;
}

static void free_all(void) {
  for (size_t i = 0; i < n_slots; i++) slot_free(i);
}
