// How much free memory threads may keep for their next requests.  Layer: arena.
//
// KP1  Threads ask once for the amount that they may keep.  Where the library has no thread that is no more than the allowance
//      (purge_by_amount.h), with all that is free and backed, or 32 MiB during a hold (hold.h); with a thread it is 32 MiB.
// KP2  Spare pages (heap/spare.h) ask for each page that begins to wait.  They also count as freed and used again, as if they had gone to
//      the arena (swing.h).
#pragma once

#include "region.h"

// May a thread keep n slices more?  They are kept from then on (purge.h, PG2).
bool _mi_purge_keep(size_t n);

// The same for n slices that were in use until now, and that wait for their next use.  Under a lock of the caller.
bool _mi_purge_keep_waiting(size_t n);
void _mi_purge_keep_end_wait(size_t n, bool is_used);
