// Fault injection, the same for every system.  Layer: prim.
#include "inject.h"

#if MI_FAULT_INJECTION
static mi_atomic(size_t) prim_fail_at; // 0: off
static mi_atomic(size_t) prim_fail_calls;
static mi_atomic(bool)   prim_fail_repeat;

size_t _mi_prim_fail_nth(size_t n, bool repeat) {
  size_t calls = mi_load_relaxed(&prim_fail_calls);
  mi_store_relaxed(&prim_fail_at, 0);
  mi_store_relaxed(&prim_fail_calls, 0);
  mi_store_relaxed(&prim_fail_repeat, repeat);
  mi_store_relaxed(&prim_fail_at, n);
  return calls;
}

bool _mi_prim_must_fail(void) {
  size_t call = mi_fetch_add_relaxed(&prim_fail_calls, 1) + 1;
  size_t at = mi_load_relaxed(&prim_fail_at);
  return at != 0 && (call == at || (call > at && mi_load_relaxed(&prim_fail_repeat)));
}
#endif
