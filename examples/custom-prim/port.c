// All that a system must supply for the allocator to run: here, one whose memory is a static array, with a counter for a clock.
// docs/design/porting.md says what each function promises.
#include <stdlib.h>
#include <unistd.h>

#include "prim/prim.h"

#define PORT_MEMORY (4 * 1024 * 1024)

static _Alignas(16) char port_memory[PORT_MEMORY];

// All of it, at the first call.  It is in .bss, so it is zero.
size_t _mi_prim_memory(size_t size, void** start) {
  static bool is_given;
  (void)size;
  if (is_given) return 0;
  is_given = true;
  *start = port_memory;
  return PORT_MEMORY;
}

// It may stand still, but must not run backwards.
int64_t _mi_prim_clock_ns(void) {
  static int64_t ticks;
  return ticks += 1000;
}

// A system without chance has at least the address of a variable.
uint64_t _mi_prim_random(void) {
  static uint64_t state;
  state = (state + (uintptr_t)&state) * 0x9E3779B97F4A7C15u + 1;
  return state;
}

void _mi_prim_write_stderr(const char* text, size_t length) {
  if (write(2, text, length) < 0) return;
}

void _mi_prim_abort(void) {
  abort();
}
