// Holes in huge-page chunks: parts of them that went back to the system.  Layer: arena.
//
// A chunk with holes does not ask for a huge OS page.  Otherwise an idle system would fill its holes again, without our noticing:
// khugepaged makes a huge page of any chunk that asks for one, if a single OS page of it is in use (docs/decisions/003).  The chunk asks
// again when all of it went back, or when a round of the purge finds that all of it is in use.
#pragma once

#include "region.h"

// Before a part of chunk i goes back.  Caller holds the purge lock.
void _mi_hole_open(mi_region_t* region, size_t i);

// Before all of the chunks [i, i + n) goes back.  Caller holds the purge lock.
void _mi_hole_close(mi_region_t* region, size_t i, size_t n);

// Closes the holes of those of the next n chunks that are wholly in use, or wholly unbacked, by now.  Takes the purge lock.
void _mi_hole_close_filled(size_t n);

// Gives OS pages of one slice back that is in use: nobody needs what they hold.  Until no slice of its chunk is in use that does not
// count as filled.  False: not in this region, or the system refuses.  Takes the purge lock.
bool _mi_hole_give(mi_region_t* region, size_t slice, void* start, size_t size);
