// Small blocks that stay for a while, 8 MiB.  The library makes its rounds while more than 4 MiB of pages are committed, so a test
// that waits for what rounds do holds on to that much: its other memory may go back at any time.
#pragma once

#include <mimalloc.h>
#include <string.h>
#include "../check.h"

enum { ballast_count = 2048, ballast_size = 4096 };

static void* ballast_blocks[ballast_count];

static inline void ballast_take(void) {
  for (size_t i = 0; i < ballast_count; i++) {
    ballast_blocks[i] = mi_malloc(ballast_size);
    CHECK(ballast_blocks[i] != NULL);
    memset(ballast_blocks[i], 1, ballast_size);
  }
}

static inline void ballast_drop(void) {
  for (size_t i = 0; i < ballast_count; i++) mi_free(ballast_blocks[i]);
}
