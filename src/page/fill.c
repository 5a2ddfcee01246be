// Filling larger blocks.  Layer: page.
#include "fill.h"

mi_noinline void _mi_fill_freed_any(void* p, size_t size) {
  memset(p, MI_FILL_FREED, size);
}
