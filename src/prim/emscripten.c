// WebAssembly with Emscripten: memory, time, chance.  Layer: prim.
//
// What Emscripten's JavaScript keeps of memory must know of its growth, so that is done by sbrk.  errno is as it was
// after calls that may change it; it is written only then, for between two threads of a worker it is nobody's.
#include "wasm.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../base/bits.h"

// What memory there was before may have been another's, who gave it back with sbrk: that part is cleared.
size_t _mi_prim_memory(size_t size, void** start) {
  if (size > (size_t)INT_MAX - MI_WASM_PAGE) return 0;
  size = mi_align_up(size, MI_WASM_PAGE);
  int   saved = errno;
  char* there = (char*)(__builtin_wasm_memory_size(0) * MI_WASM_PAGE);
  char* p = (char*)sbrk((intptr_t)size);
  if (errno != saved) errno = saved;
  if ((intptr_t)p == -1) return 0;
  if (p < there) memset(p, 0, mi_min(size, (size_t)(there - p)));
  *start = p;
  return size;
}

// ---- time, chance, paths ----------------------------------------------------------------------------------------------

int64_t _mi_prim_clock_ns(void) {
  struct timespec t = {0, 0};
  int             saved = errno;
  clock_gettime(CLOCK_MONOTONIC, &t);
  if (errno != saved) errno = saved;
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

uint64_t _mi_prim_random(void) {
  uint64_t x = 0;
  int      saved = errno;
  if (getentropy(&x, sizeof(x)) != 0) x = (uint64_t)_mi_prim_clock_ns();
  if (errno != saved) errno = saved;
  return x;
}

char* _mi_prim_real_path(const char* path, char* resolved) {
  int   saved = errno;
  char* real = realpath(path, resolved);
  if (real != NULL) errno = saved; // libc leaves that of readlink
  return real;
}
