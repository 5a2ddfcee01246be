// Places for the copies of the section of thread-local variables.  Layer: prim.
//
// LK1  A copy of the section is a place in a chunk of memory of our own: bits of a word say which places are taken.
#pragma once

#include "prim.h"

#if MI_LOCAL_COPIED

// A new copy, as the variables are at first; how far it is from the section.
uintptr_t _mi_local_place_take(void);
void      _mi_local_place_give_back(uintptr_t distance);

// In the child of a fork all places are free but these two; 0: none.
void _mi_local_place_keep(uintptr_t distance, uintptr_t other);

// Without memory for a thread's variables nothing can go on.
void _mi_local_place_fail(const char* text);

#endif
