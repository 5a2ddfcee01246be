// Statistics as a table.  Layer: api.
#pragma once

#include "../base/public.h"

// What mi_stats_print prints except what only the system knows: for the end of the process, which may have shut itself in by
// then.  elapsed_ms < 0: not known.
void _mi_stats_print_last(int64_t elapsed_ms);
