// By the clock: what goes back at the end of an interval.  Layer: arena.
//
// CL1  At the end of an interval as much memory goes back as was free and backed during the whole interval, and all free memory if nobody
//      allocates or frees.
// CL2  During a hold (hold.h) less goes back: what the hold lets go where the library has a thread, and otherwise nothing, unless nobody
//      allocates or frees.
// CL3  Of several threads that find an interval over one ends it.  So without the library's thread frees end intervals, too.
#pragma once

#include "region.h"

// If an interval is over, or if `is_idle` (nobody allocates or frees): gives back what the head of this file says.  Takes locks.
void _mi_purge_by_clock(bool is_idle);
