// Proves of arena/region.h, arena/place.h and arena/reserve.c, for all addresses: slices, descriptors, groups and layouts.
#include "proof.h"

#include "arena/place.h"
#include "arena/reserve.h"

static mi_region_t any_region(void) {
  mi_region_t region = {0};
  region.base = nondet_size();
  region.n_chunks = nondet_size();
  REQUIRE(region.base % MI_SLICE_SIZE == 0 && region.n_chunks >= 1 && region.n_chunks <= SIZE_MAX / MI_CHUNK_SIZE);
  REQUIRE(region.base <= SIZE_MAX - region.n_chunks * MI_CHUNK_SIZE);
  region.n_slices = region.n_chunks * MI_CHUNK_SLICES;
  return region;
}

// The slice of each byte of a slice is that slice; what lies outside is no slice of the region.
void proof_slice(void) {
  mi_region_t region = any_region();
  size_t      slice = nondet_size(), at = nondet_size();
  REQUIRE(slice < region.n_slices && at < MI_SLICE_SIZE);
  uintptr_t start = (uintptr_t)_mi_region_slice_start(&region, slice);
  ENSURE(_mi_region_slice_index(&region, (const void*)(start + at)) == slice);
  uintptr_t other = nondet_size();
  bool      is_inside = (other - region.base < region.n_slices * MI_SLICE_SIZE);
  ENSURE((_mi_region_slice_index(&region, (const void*)other) < region.n_slices) == is_inside);
}

void proof_groups(void) {
  mi_region_t region = any_region();
  size_t      chunk = nondet_size();
  REQUIRE(chunk < region.n_chunks);
  _mi_region_set_groups(&region);
  ENSURE(chunk >> region.group_shift < MI_REGION_GROUPS);
  ENSURE(region.group_shift == 12 || region.n_chunks > (size_t)MI_REGION_GROUPS << (region.group_shift - 1));
}

// The parts of a run are its slices, each once.
void proof_parts(void) {
  size_t slice = nondet_size(), n = nondet_size(), i = nondet_size(), n_part;
  REQUIRE(n >= 1 && slice <= SIZE_MAX - n && i < MI_CHUNK_SLICES);
  uint32_t bits = _mi_place_part(slice, n, &n_part);
  size_t   first = slice - slice % MI_CHUNK_SLICES;
  ENSURE(n_part >= 1 && n_part <= n && (n_part == n || (slice + n_part) % MI_CHUNK_SLICES == 0));
  ENSURE(bit_of(bits, i) == (first + i >= slice && first + i < slice + n));
}

// The largest alignment that is a huge page's is that of a chunk.
void proof_huge(void) {
  size_t shift = nondet_size();
  REQUIRE(shift >= 12 && shift <= 20);
  ENSURE(_mi_region_fits_huge((size_t)1 << shift) == (shift == 12));
}
