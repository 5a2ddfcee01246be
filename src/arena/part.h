// The last chunk of a band, where the system gives only a part of it.  Layer: arena.
//
// A process may be left with less memory than a chunk: RLIMIT_AS, or RLIMIT_MEMLOCK after mlockall.  Its last chunk is then opened
// slice by slice, each time as many as a request needs.
//
// PA1  The slices that are missing are the last ones of the last open chunk, and are never free.
// PA2  While some are missing no other chunk of the region is opened, and all that are open were handed out: they come first.
//
// Not in huge-page regions.  All of this under the arena lock.
#pragma once

#include "region.h"

// A run of n slices is wanted.  The system gives what it lacks, or all that are missing if that is less; false if it does not.
mi_cold bool _mi_part_open(mi_region_t* region, size_t n);

// Some slices are missing: unmaps that chunk if nothing of it is in use.
mi_cold bool _mi_part_close(mi_region_t* region);
