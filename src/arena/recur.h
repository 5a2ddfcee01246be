// Blocks over 32 MiB that come again soon: for a while such blocks take slices.  Layer: arena.
//
// A block with a mapping of its own goes back when it is freed, so a program that frees such blocks and asks for others at once would
// pay for all of their OS pages each time.  What waits for it in slices serves blocks of all sizes, under the law of all slices
// (purge.h): what is resident has the same bound as that of a program whose blocks are smaller.
//
// CA1  What is asked for within 200 ms after blocks of as much were freed that had been written all over (dense.h) *recurs*.  Each
//      MiB of it lengthens a hold by 10 ms, up to four seconds from now (RC2, RC4).
// CA2  During the hold blocks over 32 MiB take slices if they are at most twice as large as the largest of those that were freed: a
//      table that is larger than all before may stay for long, and grows best with a mapping of its own.  One that grows past 32 MiB
//      does if as much waits as it grows by.
// CA3  A block in slices that was not written all over goes back when it is freed, as if it had a mapping, and the program may have left
//      parts of it without access.
// CA4  None do in secure builds, in which what is freed is gone; if nothing may wait; and under a limit of address space.
//
// Times are milliseconds on the caller's clock, sizes are bytes.  Two threads at the same time may lose what one of them counts.
#pragma once

#include "../base/atomic.h"

typedef struct mi_recur_s {
  mi_atomic(int64_t) until;      // the end of the hold
  mi_atomic(int64_t) last_freed; // when a block was
  mi_atomic(size_t)  freed;      // of these blocks, what was not asked for since
  mi_atomic(size_t)  largest;    // of them
} mi_recur_t;

// A block that was written all over is freed.
void _mi_recur_note(mi_recur_t* recur, size_t size, int64_t now);

// A block is asked for.  Is there a hold for it?
bool _mi_recur_holds(mi_recur_t* recur, size_t size, int64_t now);

// The same for those of the process. CA4: are any to take slices?
bool _mi_recur_may(void);
void _mi_recur_freed(size_t size);
bool _mi_recur_takes_slices(size_t size);

// Before the first block.
void _mi_recur_init(void);
