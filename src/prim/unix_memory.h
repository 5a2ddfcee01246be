// Memory by mmap, as macOS, the BSDs and Haiku have it.  Layer: prim.
#pragma once

#include "prim.h"

// mmap with these protection and flags beside those of all private memory.  A call that can be made to fail (inject.h).
int  _mi_unix_memory_map(void* hint, size_t size, int protection, int flags, void** start);
// What _mi_prim_find_empty has, on systems whose programs have 47 bits of addresses, or at least 38.
bool _mi_unix_memory_find_empty(size_t i, uintptr_t* start, size_t* size);
