// What FreeBSD, NetBSD, OpenBSD and DragonFly have in common: for the files of these systems.  Layer: prim.
#pragma once

#include "prim.h"

// Times, page faults and the peak of resident memory of the process; the rest of *info is zero.
void _mi_bsd_usage(mi_process_info_t* info);
