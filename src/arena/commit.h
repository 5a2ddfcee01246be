// Memory that a function of the program commits and decommits (mi_manage_memory).  Layer: arena.
//
// C1  A slice of such a region is committed unless its bit in `uncommitted` says otherwise.  It is committed when it is handed
//     out, and decommitted when it is purged, each by whoever has the slice then.
// C2  The function is called without the arena lock: it is the program's, and may take long.
#pragma once

#include "region.h"

// Commits the slices of the run that are not committed, and says in run->is_zero whether all of it reads as zero.
// False if the function refuses; what was committed by then stays so.
mi_cold bool _mi_commit_run(mi_run_t* run);

// Decommits those of n slices that are committed, as far as the function agrees.
mi_cold void _mi_commit_undo(mi_region_t* region, size_t slice, size_t n);
