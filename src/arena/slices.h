// Handing out slices: runs of 64 KiB from chunks of 2 MiB.  Layer: arena.
//
// A1  A slice is free or belongs to exactly one caller; free_bits of its chunk says whether it is free.
// A2  A wholly free chunk is of kind NONE, in no bucket by free slices, and its bit in free_chunks is set (if it was ever
//     used).
// A3  A slice that is neither dirty nor stale reads as zero.
// A4  n_purgeable is the number of slices that are free and dirty, over all regions that are not pinned.
// A5  Slices of an exclusive arena are handed out only to heaps that name it.  The allocator's own data never lies in an arena.
#pragma once

#include "chunk.h"

// n > 0 slices, aligned to `align` slices (a power of two), from chunks for that request.  `arena`: the region from which they have to come, or
// MI_ARENA_ANY, or MI_ARENA_NEAR.  Arenas come before memory that the allocator takes from the system itself.
mi_run_t _mi_slices_alloc(size_t n, size_t align, mi_request_t request, size_t arena);

// The same for contents that move here from other memory, of which `moved` bytes are given back as soon as the contents are here (limit.h).
mi_run_t _mi_slices_alloc_moved(size_t n, size_t align, mi_request_t request, size_t arena, size_t moved);

// Only from arenas that serve all heaps; the region is NULL if they have no such run.
mi_run_t _mi_slices_alloc_shared(size_t n, size_t align, size_t arena);

// `is_clean`: the memory is known to be unbacked (and so to read as zero).
void _mi_slices_free(mi_region_t* region, size_t slice, size_t n, bool is_clean);

// Takes the n slices from `slice` on if they are all free; *is_zero as above.
bool _mi_slices_extend(mi_region_t* region, size_t slice, size_t n, bool* is_zero);

// How many of the n slices from `slice` on may hold something, up to the first that reads as zero, and in *n_zero how many that read as
// zero follow those.  Only for slices that the caller has.
size_t _mi_slices_skip_dirty(const mi_region_t* region, size_t slice, size_t n, size_t* n_zero);

// How many slices count towards the limits of the process (limit.h): those that are in use, and those that are free and backed.
mi_cold size_t _mi_slices_n_counted(void);

// Puts back slices that were taken for purging.
void _mi_slices_put(mi_region_t* region, size_t slice, size_t n, mi_contents_t contents);
