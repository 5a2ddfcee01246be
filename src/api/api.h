// What the files of the api layer share.  Layer: api.
#pragma once

#include "../../include/mimalloc.h"
#include "../heap/theap.h"

// Allocation that did not find a block in a bin: any size, any state of thread and process.  NULL with errno and a
// report when out of memory.
void* _mi_malloc_slow(size_t size, bool zero);

// A block of a class, for those who have chosen it (alignment); NULL without a report.
void* _mi_malloc_class(size_t cls, bool zero);

// Sets errno, reports, and returns NULL.
mi_cold void* _mi_malloc_failed(size_t size);

// The resize of mi_realloc, where new bytes of the result read as zero if `zero`.
void* _mi_realloc(void* p, size_t new_size, bool zero);

// Clears a block of at least `size` bytes; a class's block may be cleared up to a multiple of 16.
static mi_always_inline void _mi_clear_small(void* p, size_t size) {
  typedef struct {
    uint64_t words[2];
  } mi_pair_t;
  mi_pair_t* pairs = (mi_pair_t*)p;
  if (mi_unlikely(size <= 8)) {
    pairs->words[0] = 0;
    return;
  }
  size_t n = (size + 15) / 16;
  do {
    n--;
    pairs[n].words[0] = 0;
    pairs[n].words[1] = 0;
  } while (n > 0);
}

// count * size into *total; false (and errno) when that is too much.
bool _mi_count_size(size_t count, size_t size, size_t* total);
