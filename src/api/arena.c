// Arenas.  Layer: api.
#include "api.h"

size_t _mi_arena_index(mi_arena_id_t id) {
  return (size_t)(uintptr_t)id;
}
