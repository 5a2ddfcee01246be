// Parts of region 0.  Layer: arena.
#include "part.h"

#include <string.h>

// A part has whole words of the bits of region 0, and of its own starts anywhere in the first.
#define PART_CHUNKS 64

void _mi_part_fill(mi_region_t* region, size_t i, size_t n) {
  const mi_region_t* whole = &_mi_regions[0];
  region->base = whole->base + i * MI_CHUNK_SIZE;
  region->n_slices = n * MI_CHUNK_SLICES;
  region->table = whole->table + i * MI_CHUNK_SLICES * MI_DESCRIPTOR_SIZE;
  region->n_chunks = region->n_usable = n;
  region->chunks = whole->chunks + i;
  region->free_chunks = whole->free_chunks + i / 64;
  region->owners = whole->owners + i * MI_CHUNK_SLICES * MI_OWNER_SIZE;
  region->numa_node = -1;
}

// The chunks of region 0 whose words of bits are those of a part: [begin, end).
static size_t part_begin(const mi_region_t* part) {
  return mi_align_down((part->base - _mi_regions[0].base) / MI_CHUNK_SIZE, PART_CHUNKS);
}

static size_t part_end(const mi_region_t* part) {
  return mi_align_up((part->base - _mi_regions[0].base) / MI_CHUNK_SIZE + part->n_chunks, PART_CHUNKS);
}

// The first part of region 0 at entry *i or behind, NULL if there is none.  Region 1 is not among them: region 0 ends there.
static const mi_region_t* part_next(size_t* i) {
  const mi_region_t* whole = &_mi_regions[0];
  for (*i = mi_max(*i, MI_REGION_DENSE + 1); *i < _mi_region_count(); (*i)++) {
    if (_mi_regions[*i].base - whole->base < whole->n_chunks * MI_CHUNK_SIZE) return &_mi_regions[*i];
  }
  return NULL;
}

// Where the lowest part that has any of the chunks [begin, end) begins, `end` if none has.
static size_t part_in_the_way(size_t begin, size_t end) {
  size_t lowest = end;
  for (size_t i = 0; part_next(&i) != NULL; i++) {
    const mi_region_t* part = &_mi_regions[i];
    if (part_begin(part) < end && part_end(part) > begin) lowest = mi_min(lowest, part_begin(part));
  }
  return lowest;
}

size_t _mi_part_find(size_t n, size_t align) {
  const mi_region_t* whole = &_mi_regions[0];
  size_t             end = mi_align_down(whole->n_chunks, PART_CHUNKS);
  size_t             lowest = mi_max(whole->n_open, whole->n_chunks / 2); // half of it stays what it is
  while (end > lowest && end - lowest >= n) {
    uintptr_t start = mi_align_down(whole->base + (end - n) * MI_CHUNK_SIZE, align);
    if (start < whole->base + lowest * MI_CHUNK_SIZE) break;
    size_t first = (start - whole->base) / MI_CHUNK_SIZE;
    size_t begin = mi_align_down(first, PART_CHUNKS);
    if (begin < lowest) break;
    size_t other = part_in_the_way(begin, end);
    if (other == end) return first;
    end = other;
  }
  return SIZE_MAX;
}

void _mi_part_set_limit(void) {
  mi_region_t* whole = &_mi_regions[0];
  whole->n_usable = part_in_the_way(0, whole->n_chunks);
}

bool _mi_part_clear(mi_region_t* part) {
  size_t begin = part_begin(part);
  size_t n = part_end(part) - begin;
  if (_mi_prim_decommit((void*)part->base, part->n_chunks * MI_CHUNK_SIZE) != 0) return false;
  memset(part->chunks, 0, part->n_open * sizeof(mi_chunk_t));
  char* owners = _mi_regions[0].owners + begin * MI_CHUNK_SLICES * MI_OWNER_SIZE;
  if (part->n_owned > 0 && _mi_prim_purge(owners, n * MI_CHUNK_SLICES * MI_OWNER_SIZE) != 0)
    memset(part->owners, 0, part->n_owned * MI_CHUNK_SLICES * MI_OWNER_SIZE);
  return true;
}
