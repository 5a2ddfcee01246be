// Adding to a thread's directory of theaps, and removing from it.  Layer: heap.
#include "directory.h"

#include <string.h>

#include "meta.h"

#define DIRECTORY_SHIFT_MIN   4
#define DIRECTORY_META(shift) ((shift) + 4) // an entry has 2^4 bytes

mi_static_assert(sizeof(mi_directory_entry_t) <= 16, "the size of the table is 2^DIRECTORY_META");

static void directory_put(mi_directory_t* directory, uint64_t id, mi_theap_t* theap) {
  size_t mask = ((size_t)1 << directory->shift) - 1;
  size_t i = _mi_directory_place(directory, id);
  while (directory->entries[i].id != 0) i = (i + 1) & mask;
  directory->entries[i].id = id;
  directory->entries[i].theap = theap;
}

bool _mi_directory_reserve(mi_directory_t* directory) {
  mi_directory_t old = *directory;
  if (old.entries != NULL && 2 * (old.n + 1) <= (size_t)1 << old.shift) return true;
  unsigned shift = (old.entries == NULL ? DIRECTORY_SHIFT_MIN : old.shift + 1);
  void*    memory = _mi_meta_alloc(DIRECTORY_META(shift));
  if (memory == NULL) return false;
  directory->entries = (mi_directory_entry_t*)memory;
  directory->shift = shift;
  if (old.entries == NULL) return true;
  for (size_t i = 0; i < (size_t)1 << old.shift; i++) {
    if (old.entries[i].id != 0) directory_put(directory, old.entries[i].id, old.entries[i].theap);
  }
  _mi_meta_free(old.entries, DIRECTORY_META(old.shift));
  return true;
}

void _mi_directory_add(mi_directory_t* directory, uint64_t id, mi_theap_t* theap) {
  directory_put(directory, id, theap);
  directory->n++;
}

// Fills the empty place i from behind, so that DI2 holds without marks for what was removed.
static void directory_close(mi_directory_t* directory, size_t i) {
  mi_directory_entry_t* entries = directory->entries;
  size_t                mask = ((size_t)1 << directory->shift) - 1;
  for (size_t k = (i + 1) & mask; entries[k].id != 0; k = (k + 1) & mask) {
    size_t place = _mi_directory_place(directory, entries[k].id);
    if (((k - place) & mask) < ((k - i) & mask)) continue; // it would come to lie before its place
    entries[i] = entries[k];
    i = k;
  }
  memset(&entries[i], 0, sizeof(entries[i]));
}

void _mi_directory_remove(mi_directory_t* directory, uint64_t id) {
  size_t mask = ((size_t)1 << directory->shift) - 1;
  size_t i = _mi_directory_place(directory, id);
  while (directory->entries[i].id != id) i = (i + 1) & mask;
  directory_close(directory, i);
  directory->n--;
}

void _mi_directory_clear(mi_directory_t* directory) {
  if (directory->entries != NULL) _mi_meta_free(directory->entries, DIRECTORY_META(directory->shift));
  memset(directory, 0, sizeof(*directory));
}
