// Slices that are committed when they are handed out, and decommitted when they are purged.  Layer: arena.
//
// A function of the program does both (mi_manage_memory), or the system where it charges for all that is committed: memory that
// is purged there is had by others, and may be refused when it is wanted again.
//
// C1  A slice of such a region is committed unless its bit in `uncommitted` says otherwise.  It is committed when it is handed
//     out, and decommitted when it is purged, each by whoever has the slice then.
// C2  Neither is done under the arena lock: the function is the program's, and may take long.
#pragma once

#include "region.h"

// Commits the slices of the run that are not committed, and says in run->is_zero whether all of it reads as zero.
// False if that is refused; what was committed by then stays so, and is dirty.
mi_cold bool _mi_commit_run(mi_run_t* run);

// Decommits those of n slices that are committed; false if that was refused for some.
mi_cold bool _mi_commit_undo(mi_region_t* region, size_t slice, size_t n);
