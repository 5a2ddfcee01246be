// Systems without control groups.  Layer: prim.
#include "prim.h"

size_t _mi_prim_container_limit(void) {
  return 0;
}
