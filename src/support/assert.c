// Assertions that fail.  Layer: support.
#include "assert.h"

#include "../prim/prim.h"
#include "message.h"

void _mi_assert_fail(const char* expr, const char* file, unsigned line, const char* func) {
  _mi_message_raw(NULL, NULL, "mimalloc: assertion failed: at \"%s\":%u, %s\n  assertion: \"%s\"\n", file, line, func,
                  expr);
  _mi_prim_abort();
}
