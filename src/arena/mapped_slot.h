// Slots of mapped blocks (mapped.h).  Layer: arena.
//
//   slot      | descriptor, 64 bytes | heap link, 32 bytes | range, 32 bytes |
//
// Slots lie in slices of our own, 511 in each, and are used again.
#pragma once

#include "../base/public.h"
#include "../prim/lock.h"
#include "range.h"
#include "region.h"

typedef struct mi_aligned(MI_DESCRIPTOR_SIZE) mi_mapped_slot_s {
  char       descriptor[MI_DESCRIPTOR_SIZE];
  char       heap_link[MI_HEAP_LINK_SIZE];
  mi_range_t range; // unused, stuck: `right` links the list
} mi_mapped_slot_t;

mi_static_assert(sizeof(mi_mapped_slot_t) == 2 * MI_DESCRIPTOR_SIZE, "a slot is two cache lines");

// Of all slots, and of what else there is about mapped blocks.  A leaf: nothing is taken while it is held.
extern mi_lock_t _mi_mapped_slot_lock;

static inline mi_mapped_slot_t* _mi_mapped_slot_of(const void* descriptor) {
  return (mi_mapped_slot_t*)(uintptr_t)descriptor;
}

static inline mi_mapped_slot_t* _mi_mapped_slot_of_range(mi_range_t* range) {
  return (mi_mapped_slot_t*)(void*)((char*)range - offsetof(mi_mapped_slot_t, range));
}

// An unused slot, which is out from then on; NULL when out of memory.
mi_mapped_slot_t* _mi_mapped_slot_take(void);

void _mi_mapped_slot_put(mi_mapped_slot_t* slot);

// All descriptors, of blocks or unused, one after the other: the one behind, or the first (NULL).  NULL at the end.
void* _mi_mapped_slot_next(const void* descriptor);

mi_cold bool _mi_mapped_slot_is_descriptor(const void* p);
