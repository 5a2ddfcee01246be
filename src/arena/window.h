// Memory of our own where it only grows: there are no addresses without memory (prim/grown.c).  Layer: arena.
//
// A region is a window then: a range of addresses of which pieces become slices when the system gives memory there.  What
// describes it is there for all of it from the start.
//
//   base                                                                      base + n_slices
//   +---------------+----------------------------+--------------+- - - - - - - - - - +
//   |    slices     |      somebody else's       |    slices    |   not there yet    |
//   +---------------+----------------------------+--------------+- - - - - - - - - - +
//
// WI1  A slice that is not there is taken, in the bits of its chunk, and its descriptor reads as zero.  So nobody is handed it,
//      and what others have within the window is not ours.
// WI2  Chunks up to the last that has a slice which is there are used; they are open, and usable.
// WI3  Nothing goes back, so a window is pinned.  A slice that was never handed out reads as zero, no other does.
// WI4  There is one kind of chunks: with a chunk for each, a program with few pages would have 8 MiB.
// WI5  Blocks get more memory only while somebody has opened the way to it: a request fails first, and then what the thread holds
//      without need comes before more memory, which would be there for ever (api/alloc.c).  Our own data gets it always.
// WI6  Memory counts towards the limits of the process when it comes, and for ever (limit.h).  A limit that refuses a request is asked
//      first, so that nothing comes for the request; nothing comes ahead that crosses a limit, a soft one either.
#pragma once

#include "chunk.h"

// Adds memory, so that n > 0 slices more are free side by side.  False when there is none.  Caller holds the arena lock.
mi_cold bool _mi_window_grow(size_t n);

// WI5.  Several threads may have opened it.
void _mi_window_open(void);
void _mi_window_close(void);
bool _mi_window_is_open(void);
