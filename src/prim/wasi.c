// WebAssembly under WASI: memory, time, chance.  Layer: prim.
//
// The system is asked by its own calls, not through libc: they do not change errno, and do not allocate.
#include "wasm.h"

#include <wasi/api.h>

// ---- memory ---------------------------------------------------------------------------------------------------------

// Between what the program has of the memory that it starts with, and its end, as the linker says.  It is there for malloc,
// which we are.
extern char __heap_base __attribute__((weak)), __heap_end __attribute__((weak));

// Where malloc is that of libc, it has that memory.
#if defined(MI_MALLOC_OVERRIDE)
  #define PRIM_HAS_REST 1
#else
  #define PRIM_HAS_REST 0
#endif

static size_t prim_rest(void** start) {
  static mi_atomic(bool) is_taken;
  uintptr_t              from = (uintptr_t)&__heap_base, end = (uintptr_t)&__heap_end;
  if (!PRIM_HAS_REST || mi_exchange_acq_rel(&is_taken, true) || from >= end) return 0;
  *start = (void*)from;
  return end - from;
}

// New memory is zero.  The rest is given first, even if it does not suffice: what is asked for next lies behind it.
size_t _mi_prim_memory(size_t size, void** start) {
  size_t rest = prim_rest(start);
  if (rest > 0) return rest;
  size_t n = size / MI_WASM_PAGE + (size % MI_WASM_PAGE != 0);
  size_t before = __builtin_wasm_memory_grow(0, n);
  if (before == SIZE_MAX) return 0;
  *start = (void*)(before * MI_WASM_PAGE);
  return n * MI_WASM_PAGE;
}

// ---- time, chance -----------------------------------------------------------------------------------------------------

static int64_t prim_clock(__wasi_clockid_t clock) {
  __wasi_timestamp_t t = 0;
  return __wasi_clock_time_get(clock, 1, &t) == 0 ? (int64_t)t : 0;
}

int64_t _mi_prim_clock_ns(void) {
  return prim_clock(__WASI_CLOCKID_MONOTONIC);
}

uint64_t _mi_prim_random(void) {
  uint64_t x = 0;
  if (__wasi_random_get((uint8_t*)&x, sizeof(x)) != 0) x = (uint64_t)_mi_prim_clock_ns();
  return x;
}
