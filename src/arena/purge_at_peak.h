// At a peak: free memory that goes back before the process becomes larger than it ever was.  Layer: arena.
//
// trade.h has the rules (TD1 to TD3).  Nothing is traded where memory goes back at once or never, or while the system takes nothing back.
#pragma once

#include "region.h"

// To be called without locks after slices were taken that were not backed, before they are written.  True if the process is becoming larger
// than it ever was.
bool _mi_purge_at_peak(void);
