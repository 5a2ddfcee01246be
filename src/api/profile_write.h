// The heap profile in the format of pprof.  Layer: api.
#pragma once

#include "../base/public.h"

// 0 or an errno value.  Only one thread at a time.
int _mi_profile_write(mi_profile_write_fun* write, void* arg, int64_t duration_ms);
