// Systems where a part of what is reserved cannot become large OS pages.  Layer: prim.
#include <errno.h>

#include "prim.h"

int _mi_prim_map_large(void* start, size_t size, size_t os_page_size, bool* is_lost) {
  (void)start, (void)size, (void)os_page_size;
  *is_lost = false;
  return ENOTSUP;
}
