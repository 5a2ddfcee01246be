// The process.  Layer: api.
#pragma once

#include "../base/atomic.h"

// Does the C library of the process allocate here?  Set by layer override where it has seen to that.
extern mi_atomic(bool) _mi_process_is_redirected;
