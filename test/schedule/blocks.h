// The blocks that the virtual threads of a run share: each is somebody's to free, and says at both ends which one it is.
#pragma once

#include "mimalloc.h"
#include "schedule.h"

enum { BLOCKS_MAX = 1024, NO_HEAP = -1 };

typedef struct block_s {
  char*    p;
  size_t   size;
  uint64_t key;
  int      heap; // NO_HEAP, or the number of the heap that it goes with
  size_t   task; // that allocated it
} block_t;

extern block_t blocks[BLOCKS_MAX];
extern size_t  n_blocks;

// A block that was just allocated: it is as large and as aligned as it should be.  NULL, if there is no memory, is a failure.
void*   blocks_new(void* p, size_t size);
// Others may free it from now on.
void    blocks_add(void* p, size_t size, int heap);
// Takes one out, which is as it was filled; it is the caller's to free.
block_t blocks_take(size_t i);
// All are as they were filled.
void    blocks_check(void);
// Those of a heap are gone with it, or (false) are no longer of any heap.
void    blocks_end_heap(int heap, bool are_gone);
