// WebAssembly with Emscripten: memory, time, chance, the environment, output.  Layer: prim.
//
// What Emscripten's JavaScript keeps of memory must know of its growth, so that is done by sbrk.  errno is saved around calls
// that may change it.
#include "prim.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <wasi/api.h>

#include "../base/bits.h"

#define PRIM_PAGE ((size_t)65536) // of the machine

size_t _mi_prim_os_page_size(void) {
  return PRIM_PAGE;
}

// What memory there was before may have been another's, who gave it back with sbrk: that part is cleared.
size_t _mi_prim_memory(size_t size, void** start) {
  if (size > (size_t)INT_MAX - PRIM_PAGE) return 0;
  size = mi_align_up(size, PRIM_PAGE);
  int   saved = errno;
  char* there = (char*)(__builtin_wasm_memory_size(0) * PRIM_PAGE);
  char* p = (char*)sbrk((intptr_t)size);
  errno = saved;
  if ((intptr_t)p == -1) return 0;
  if (p < there) memset(p, 0, mi_min(size, (size_t)(there - p)));
  *start = p;
  return size;
}

// ---- time, chance, environment, output --------------------------------------------------------------------------------

int64_t _mi_prim_clock_ns(void) {
  struct timespec t = {0, 0};
  int             saved = errno;
  clock_gettime(CLOCK_MONOTONIC, &t);
  errno = saved;
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

uint64_t _mi_prim_random(void) {
  uint64_t x = 0;
  int      saved = errno;
  if (getentropy(&x, sizeof(x)) != 0) x = (uint64_t)_mi_prim_clock_ns();
  errno = saved;
  return x;
}

// A copy of our own, once for ever: while libc allocates for its own, `environ` is a table that nobody has filled.
static char** prim_read_environment(void) {
  static char*  none[1];
  __wasi_size_t n, size;
  void*         start;
  if (__wasi_environ_sizes_get(&n, &size) != 0 || n == 0) return none;
  size_t table = (n + 1) * sizeof(char*);
  if (_mi_prim_reserve(table + size, sizeof(char*), &start) != 0) return none;
  char** entries = (char**)start;
  return __wasi_environ_get((uint8_t**)entries, (uint8_t*)start + table) == 0 ? entries : none;
}

const char* _mi_prim_environment_entry(size_t i) {
  static mi_atomic(char**) own;
  char**                   entries = mi_load_acquire(&own);
  if (entries == NULL) mi_store_release(&own, entries = prim_read_environment());
  return entries[i];
}

void _mi_prim_write_stderr(const char* text, size_t length) {
  while (length > 0) {
    __wasi_ciovec_t part = {(const uint8_t*)text, length};
    __wasi_size_t   n = 0;
    if (__wasi_fd_write(2, &part, 1, &n) != 0 || n == 0) break;
    text += n;
    length -= n;
  }
}

void _mi_prim_abort(void) {
  abort();
}

char* _mi_prim_real_path(const char* path, char* resolved) {
  return realpath(path, resolved);
}
