// Arena ids as the interface has them.  Layer: api.
#pragma once

#include "../base/public.h"

// The index of an arena for _mi_slices_alloc; 0 (MI_ARENA_ANY) if there is no such arena.
size_t _mi_arena_of_id(mi_arena_id_t id);
