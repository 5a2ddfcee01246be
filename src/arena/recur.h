// Blocks over 32 MiB that come again soon: for a while such blocks take slices.  Layer: arena.
//
// A block with a mapping of its own goes back to the system when it is freed, so a program that frees such blocks and requests others at
// once would pay for all of their OS pages each time.  Free slices that wait for such requests serve blocks of all sizes, under the purge
// policy of all slices (purge.h): resident memory has the same bound as in a program whose blocks are smaller.
//
// CA1  A request *recurs* if it comes within 200 ms after blocks of as many bytes were freed that had been written all over (dense.h).
//      Each MiB of such requests lengthens a hold by 10 ms, up to four seconds from now (RC2, RC4).
// CA2  During the hold blocks over 32 MiB take slices if they are at most twice as large as the largest of those that were freed.  (A
//      table that is larger than all before may stay for long, and grows best with a mapping of its own.)  A block in slices that grows
//      past 32 MiB stays in slices if as much memory waits as it grows by, or if it is as large then as the largest of those.
// CA3  A block in slices that was not written all over goes back when it is freed, as if it had a mapping, and the program may have left
//      parts of it without access.
// CA4  No such block takes slices in secure builds, in which freed memory is gone at once; nor if no memory may wait, nor under a limit of
//      address space.
//
// Times are milliseconds on the caller's clock, sizes are bytes.  Two threads at the same time may lose what one of them counts.
#pragma once

#include "../base/atomic.h"

typedef struct mi_recur_s {
  mi_atomic(int64_t) until;      // the end of the hold
  mi_atomic(int64_t) last_freed; // when such a block was last freed
  mi_atomic(size_t)  freed;      // bytes of such blocks that were not requested again since
  mi_atomic(size_t)  largest;    // the size of the largest of them
} mi_recur_t;

// A block that was written all over is freed.
void _mi_recur_note(mi_recur_t* recur, size_t size, int64_t now);

// A block is requested.  Is there a hold for it?
bool _mi_recur_holds(mi_recur_t* recur, size_t size, int64_t now);

// The same for the blocks of the process.  CA4: may any take slices?  CA2: the largest that was freed.
bool   _mi_recur_may(void);
void   _mi_recur_freed(size_t size);
bool   _mi_recur_takes_slices(size_t size);
size_t _mi_recur_largest(void);

// Before the first block.
void _mi_recur_init(void);
