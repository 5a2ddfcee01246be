// Memory of macOS, the BSDs and Haiku, beside what Linux has as well (posix_memory.c).  Layer: prim.
//
// UM1  Memory is given back by a new mapping in its place: madvise may leave the contents there on all of these systems, and
//      purged memory must read as zero.
// UM2  None of them moves mappings without copying, in a way that all versions have.  So they stay where they are (no_remap.c).
#include <errno.h>

#include "inject.h"
#include "posix_memory.h"

// ---- to map ---------------------------------------------------------------------------------------------------------

int _mi_prim_map_at(void* start, size_t size, bool grows) {
  (void)grows;
  return _mi_prim_must_fail() ? ENOMEM : _mi_posix_memory_map_at(start, size, MI_POSIX_USABLE);
}

// Where it is, or not at all (UM2).
int _mi_prim_resize(void** start, size_t size, size_t new_size) {
  char* p = (char*)*start;
  if (new_size <= size) return new_size < size ? _mi_prim_release(p + new_size, size - new_size) : 0;
  int err = _mi_prim_map_at(p + size, new_size - size, false);
  return err == EEXIST ? ENOMEM : err;
}

// ---- to use and to give back ----------------------------------------------------------------------------------------

int _mi_prim_purge(void* start, size_t size) {
  void* p;
  mi_fetch_add_relaxed(&_mi_prim_calls.purge, 1);
  int err = _mi_posix_memory_map(start, size, MI_POSIX_USABLE, MAP_NORESERVE | MAP_FIXED, &p);
  if (err == 0) mi_fetch_add_relaxed(&_mi_prim_calls.n_purged, (int64_t)size);
  return err;
}
