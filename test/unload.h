// The end of an arena, which the interface does not have: tests of regions give them back.
#pragma once

#include "arena/arena.h"
#include "arena/purge.h"
#include "arena/shrink.h"
#include "arena/space.h"

// Forgets an arena in which nothing is in use; false otherwise.  What the program brought is as it was left.
static inline bool arena_unload(size_t arena) {
  bool ok = _mi_arena_exists(arena);
  _mi_lock_acquire(&_mi_region_purge_lock); // nothing of it is out for purging then
  _mi_lock_acquire(&_mi_region_lock);
  ok = ok && _mi_shrink_forget(&_mi_region_all[arena]);
  if (ok) _mi_space_remove(&_mi_region_all[arena]);
  _mi_lock_release(&_mi_region_lock);
  _mi_lock_release(&_mi_region_purge_lock);
  return ok;
}
