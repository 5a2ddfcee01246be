// Mappings of large blocks that wait for the next one.  Layer: arena.
//
// A program that frees blocks with mappings of their own, and asks for as much again at once, would pay for all of its OS pages each
// time.  So mappings are held for it, as slices are (recall.h).
//
// HM1  What is mapped within 200 ms after as much was unmapped, or taken from what is held, is *recalled*.  Each MiB of it lengthens
//      the hold by 10 ms, up to four seconds from now (RC2, RC4).
// HM2  During the hold a mapping that is freed is held, if it was written all over (dense.h).  Its contents are left to the system:
//      they count as resident, but the system takes them when it is short of memory (_mi_prim_discard).
// HM3  What is held and what is in use, slices too, are together no more than what was in use at one time since the hold began, and an
//      eighth, as not all that a program uses is there at one time.  The caller asks before memory is taken (_mi_held_is_room).
// HM4  A new block takes the smallest mapping that is large enough, and gives the rest back.  If there is none the largest goes: so the
//      new block comes in its place, and not beside it.
// HM5  When the hold is over all goes back, by the next call here or the next round of the purge.
//
// Times are milliseconds on the caller's clock, sizes are bytes.  The caller holds the lock of the mapped blocks.
#pragma once

#include "../base/atomic.h"
#include "range.h"
#include "recall.h"

// A mapping that was written all over is freed, and others of n_used bytes are in use: is it to be held?
bool _mi_held_wants(size_t size, size_t n_used, int64_t now);

// Holds it.  False if there is no place any more: the lock may have been released since it was wanted.
bool _mi_held_push(mi_range_t* range, size_t n_used);

// The mapping that makes room for a block of that size (HM4), NULL if none is held.
mi_range_t* _mi_held_take(size_t size, size_t n_used, int64_t now);

// One that is not to be held any more (INT64_MAX: or that is), NULL if there is none.
mi_range_t* _mi_held_pop(int64_t now);

// How many there are; anybody may read it.
extern mi_atomic(size_t) _mi_held_n;

static inline bool _mi_held_has_any(void) {
  return mi_load_relaxed(&_mi_held_n) > 0;
}

// HM3: may n_used bytes be in use, and what is held stay?
bool _mi_held_is_room(size_t n_used);
