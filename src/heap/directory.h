// A thread's theaps by the ids of their heaps: a hash table with open addressing that grows.  Layer: heap.
//
//   entries     | id, theap |  empty  | id, theap | id, theap |  empty  | ...        2^shift of them, at most half in use
//                 place of an id: the upper bits of its product with a constant, or the next that is free
//
// DI1  It is read and changed by its own thread only.
// DI2  Between the place of an id and its entry no entry is empty.
// DI3  Ids are never used again (heap.h, Q5): an entry whose heap has ended is found by nobody.
//
// Finding, adding and removing take constant time; the memory is 32 to 64 bytes for each of the most theaps of other heaps
// that the thread had at a time.
#pragma once

#include "../page/page.h"

typedef struct mi_directory_entry_s {
  uint64_t    id; // 0: empty
  mi_theap_t* theap;
} mi_directory_entry_t;

typedef struct mi_directory_s {
  mi_directory_entry_t* entries; // NULL: it has none yet
  unsigned              shift;
  size_t                n;
} mi_directory_t;

static inline size_t _mi_directory_place(const mi_directory_t* directory, uint64_t id) {
  return (size_t)(id * 0x9E3779B97F4A7C15u >>
                  (64 - directory->shift)); // 2^64 over the golden ratio: neighbours lie far apart
}

// NULL: it has none of that id.
static inline mi_theap_t* _mi_directory_find(const mi_directory_t* directory, uint64_t id) {
  if (directory->entries == NULL || id == 0) return NULL;
  size_t mask = ((size_t)1 << directory->shift) - 1;
  for (size_t i = _mi_directory_place(directory, id);; i = (i + 1) & mask) {
    const mi_directory_entry_t* entry = &directory->entries[i];
    if (entry->id == id) return entry->theap;
    if (entry->id == 0) return NULL;
  }
}

// Makes room for one more; false when out of memory.  Caller holds the registry lock.
bool _mi_directory_reserve(mi_directory_t* directory);

// It has none of that id yet, but room.
void _mi_directory_add(mi_directory_t* directory, uint64_t id, mi_theap_t* theap);

void _mi_directory_remove(mi_directory_t* directory, uint64_t id);

// It has nothing from then on, and no memory.  Caller holds the registry lock.
void _mi_directory_clear(mi_directory_t* directory);
