// WebAssembly under WASI: memory, time, chance, the environment, output.  Layer: prim.
//
// The system is asked by its own calls, not through libc: they do not change errno, and do not allocate.
#include "prim.h"

#include <stdlib.h>
#include <string.h>
#include <wasi/api.h>

#define PRIM_PAGE ((size_t)65536) // of the machine

size_t _mi_prim_os_page_size(void) {
  return PRIM_PAGE;
}

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
  size_t n = size / PRIM_PAGE + (size % PRIM_PAGE != 0);
  size_t before = __builtin_wasm_memory_grow(0, n);
  if (before == SIZE_MAX) return 0;
  *start = (void*)(before * PRIM_PAGE);
  return n * PRIM_PAGE;
}

// ---- time, chance, output ---------------------------------------------------------------------------------------------

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

void _mi_prim_write_stderr(const char* text, size_t length) {
  while (length > 0) {
    __wasi_ciovec_t part = {(const uint8_t*)text, length};
    size_t          n = 0;
    if (__wasi_fd_write(2, &part, 1, &n) != 0 || n == 0) break;
    text += n;
    length -= n;
  }
}

void _mi_prim_abort(void) {
  abort();
}

// ---- the environment --------------------------------------------------------------------------------------------------

// libc's copy, if the program uses it and libc has made it; making one allocates, and so may not be started here.
extern char** __wasilibc_environ __attribute__((weak));

#define PRIM_NOT_YET ((char**)UINTPTR_MAX)

// A copy of our own, once for ever.
static char** prim_read_environment(void) {
  static char* none[1];
  size_t       n, size;
  void*        start;
  if (__wasi_environ_sizes_get(&n, &size) != 0 || n == 0) return none;
  size_t table = (n + 1) * sizeof(char*);
  if (_mi_prim_reserve(table + size, sizeof(char*), &start) != 0) return none;
  char** entries = (char**)start;
  return __wasi_environ_get((uint8_t**)entries, (uint8_t*)start + table) == 0 ? entries : none;
}

const char* _mi_prim_environment_entry(size_t i) {
  static char** own;
  if (&__wasilibc_environ != NULL && __wasilibc_environ != NULL && __wasilibc_environ != PRIM_NOT_YET)
    return __wasilibc_environ[i];
  if (own == NULL) own = prim_read_environment();
  return own[i];
}
