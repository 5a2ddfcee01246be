// Handing out slices: runs of 64 KiB from chunks of 2 MiB.  Layer: arena.
//
// A1  A slice is free or belongs to exactly one caller; free_bits of its chunk says which.
// A2  A wholly free chunk is of kind NONE, in no bucket by free slices, and its bit in free_chunks is set (if it was ever
//     used).
// A3  A slice that is neither dirty nor stale reads as zero.
// A4  n_purgeable is the number of slices that are free and dirty, over all regions that are not pinned.
// A5  What is exclusive is handed out to those who name it only, and our own data never lies in an arena of the program.
#pragma once

#include "chunk.h"

// n > 0 slices, aligned to `align` slices (a power of two), from chunks of that kind.  `arena`: the region that they have to
// come from, or MI_ARENA_ANY, or MI_ARENA_NEAR.  Arenas of the program come before memory that is ours.
mi_run_t _mi_slices_alloc(size_t n, size_t align, mi_chunk_kind_t kind, size_t arena);

// From arenas of the program only that are for all; the region is NULL if they have no such run.
mi_run_t _mi_slices_alloc_shared(size_t n, size_t align, size_t arena);

// `is_clean`: the memory is known to be unbacked (and so to read as zero).
void _mi_slices_free(mi_region_t* region, size_t slice, size_t n, bool is_clean);

// Takes the n slices from `slice` on if they are all free; *is_zero as above.
bool _mi_slices_extend(mi_region_t* region, size_t slice, size_t n, bool* is_zero);

// How many of the n slices from `slice` on may hold something, and how many that read as zero follow those.  Only for
// slices that the caller has.
size_t _mi_slices_skip_dirty(const mi_region_t* region, size_t slice, size_t n, size_t* n_zero);

// Regions that have nothing in use go back to the system, and so do the free chunks at the ends of bands (subregion.h); true if
// there were any.  For when address space is short: it is what a limit on it counts.  Caller holds the arena lock.
bool _mi_slices_release_regions(void);

// Is nothing of the region in use?  Then its slices are no longer counted, and it must be removed.  Caller holds the
// arena lock.
mi_cold bool _mi_slices_forget(mi_region_t* region);

// Free chunks at the ends of bands go back altogether if they are many and read as zero: they no longer count towards the
// limits of the process.
void _mi_slices_shrink(void);

// Puts back slices that were taken for purging.
void _mi_slices_put(mi_region_t* region, size_t slice, size_t n, mi_chunk_hold_t hold);

// How many slices were ever handed out that were not backed, and that were.
size_t _mi_slices_taken_fresh(void);
size_t _mi_slices_reused(void);
