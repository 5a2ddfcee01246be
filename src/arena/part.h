// Parts of region 0: region 1, and the arenas that the program reserves.  Layer: arena.
//
// The fast paths know region 0 only.  What lies within it costs nothing to find, so address space that is reserved for
// the program is taken from the end of what region 0 would hand out (R4).  A part is a region of its own: its chunks and
// their descriptors are those of region 0, its buckets and limits are not.
//
// All of this under the arena lock.
#pragma once

#include "region.h"

// Makes `region`, which is zero, the n chunks of region 0 from the i-th on.
void _mi_part_fill(mi_region_t* region, size_t i, size_t n);

// The highest n chunks of region 0 that may become a part and start at a multiple of `align` bytes; SIZE_MAX if there are
// none.
mi_cold size_t _mi_part_find(size_t n, size_t align);

// Region 0 may hand out what is below all parts.  To be called when there is one more or less.
mi_cold void _mi_part_set_limit(void);

// Makes reserved address space of a part in which nothing is in use, and zero of what describes it.  False if the system
// refuses; the part must then stay, unused.
mi_cold bool _mi_part_clear(mi_region_t* part);
