// Memory of systems where mappings stay where they are: callers copy.  Layer: prim.
#include <errno.h>

#include "prim.h"

// Others can make a mapping smaller where it is, and larger where nothing lies behind it (unix_memory.c).
#if !MI_SYSTEM_UNIX
int _mi_prim_resize(void** start, size_t size, size_t new_size) {
  (void)start, (void)size, (void)new_size;
  return ENOTSUP;
}
#endif

int _mi_prim_move_out(void* from, size_t size, size_t new_size, void** start) {
  (void)from, (void)size, (void)new_size, (void)start;
  return ENOTSUP;
}

mi_remap_t _mi_prim_remap(void* from, void* to, size_t size) {
  (void)from, (void)to, (void)size;
  return MI_REMAP_REFUSED;
}

mi_remap_t _mi_prim_unremap(void* start, size_t size) {
  (void)start, (void)size;
  return MI_REMAP_REFUSED;
}
