// Systems that cannot be told how memory is going to be used, and where it should be.  Layer: prim.
#include <errno.h>

#include "prim.h"

int _mi_prim_populate(void* start, size_t size) {
  (void)start, (void)size;
  return EINVAL;
}

int _mi_prim_populate_read(void* start, size_t size) {
  (void)start, (void)size;
  return EINVAL;
}

bool _mi_prim_is_written(const void* word) {
  (void)word;
  return false;
}

// Their purge ends locks, or is not refused.
bool _mi_prim_unlock(void* start, size_t size) {
  (void)start, (void)size;
  return false;
}

// Those that have huge pages for all use them by themselves.
int _mi_prim_advise_huge(void* start, size_t size, bool enable) {
  (void)start, (void)size, (void)enable;
  return ENOTSUP;
}

// Where there are nodes, one could be chosen when address space is reserved, but not afterwards.
int _mi_prim_numa_bind(void* start, size_t size, size_t node, bool only) {
  (void)start, (void)size, (void)node, (void)only;
  return ENOTSUP;
}

void _mi_prim_hide(void* start, size_t size) {
  (void)start, (void)size;
}
