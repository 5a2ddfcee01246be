// Unmapping regions and parts of them that hold nothing.  Layer: arena.
#pragma once

#include "region.h"

// Regions that have nothing in use go back to the system, and so do the free chunks at the ends of bands (subregion.h); true if
// there were any.  For when address space is short: it is what a limit on it counts.  Caller holds the arena lock.
bool _mi_shrink_regions(void);

// The same for the free chunks at the end of one band.
bool _mi_shrink_band(mi_region_t* region);

// Is nothing of the region in use?  Then its slices are no longer counted, and it must be removed.  Caller holds the
// arena lock.
mi_cold bool _mi_shrink_forget(mi_region_t* region);

// Free chunks at the ends of bands go back altogether if they are many and read as zero: they no longer count towards the
// limits of the process.
void _mi_shrink_clean(void);
