// What WASI and Emscripten share: the environment, output, the end of the process.  Layer: prim.
//
// The system is asked by WASI's calls, which Emscripten has too, not through libc: they do not change errno, and do not allocate.
#include "wasm.h"

#include <stdlib.h>
#include <wasi/api.h>

size_t _mi_prim_os_page_size(void) {
  return MI_WASM_PAGE;
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

// ---- the environment --------------------------------------------------------------------------------------------------

// A copy of our own, once for ever: libc allocates for its own, and then `environ` is a table that nobody has filled.
static char** wasm_read_environment(void) {
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
  if (entries == NULL) mi_store_release(&own, entries = wasm_read_environment());
  return entries[i];
}
