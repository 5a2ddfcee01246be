// Fault injection: memory calls that are made to fail (_mi_prim_fail_nth in prim.h).  Layer: prim.
#pragma once

#include "prim.h"

// To be asked once by each memory call that can fail.
#if MI_FAULT_INJECTION
bool _mi_prim_must_fail(void);
#else
static inline bool _mi_prim_must_fail(void) {
  return false;
}
#endif
