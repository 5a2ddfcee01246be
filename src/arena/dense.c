// How much of its large blocks a program writes.  Layer: arena.  dense.h has the invariants.
#include "dense.h"

#include "../base/atomic.h"
#include "../base/bits.h"
#include "../base/mode.h"
#include "../base/track.h"

#define DENSE_SAMPLES     16
#define DENSE_SAMPLES_FEW 8 // of a block of less than 32 MiB: each costs 1 us
#define DENSE_MIXED_MAX   1
#define DENSE_THIN_MAX    2

// DE6
#define DENSE_LITTLE_MIN      (512 * MI_KiB)
#define DENSE_LITTLE_PER_THIN 4

// DE5: after DENSE_PATIENCE blocks in a row that were alike, one block of this many is looked at.
#define DENSE_PATIENCE 4
#define DENSE_DENSE    4  // if they were dense
#define DENSE_SPARSE   16 // if they were not

static mi_atomic(size_t)  dense_credit;    // DE2
static mi_atomic(bool)    dense_last_thin; // DE4
static mi_atomic(size_t)  dense_little;    // DE6: so many bytes of smaller blocks may be cleared by the system
static mi_atomic(int64_t) dense_run;       // how many in a row were dense; negative: how many were not

bool _mi_dense_take(size_t size) {
  size_t credit = mi_load_relaxed(&dense_credit);
  do {
    if (credit < size) return false;
  } while (!mi_cas_weak(&dense_credit, &credit, credit - size, relaxed, relaxed));
  return true;
}

void _mi_dense_grown(size_t old_size, size_t size) {
  size_t n = size - (old_size < MI_DENSE_MIN ? 0 : old_size), credit = mi_load_relaxed(&dense_credit);
  if (size < MI_DENSE_MIN) return;
  while (!mi_cas_weak(&dense_credit, &credit, credit - mi_min(credit, n), relaxed, relaxed)) {
  }
}

// False: the program has left the memory without access.
static bool dense_can_read(const char* page, size_t size) {
  return _mi_prim_populate_read((void*)(uintptr_t)page, size) == 0;
}

static bool dense_is_zero(const char* page, size_t size) {
  const uint64_t* words = (const uint64_t*)(const void*)page;
  for (size_t i = 0; i < size / sizeof(*words); i++) {
    if (words[i] != 0) return false;
  }
  return true;
}

static bool dense_is_empty(const char* page, size_t size) {
  return !dense_can_read(page, size) || dense_is_zero(page, size);
}

static size_t dense_n_samples(size_t size) {
  return size < DENSE_SAMPLES * MI_CHUNK_SIZE ? DENSE_SAMPLES_FEW : DENSE_SAMPLES;
}

// A place to look at (DE1): two OS pages, chosen at random because programs touch memory at regular distances, in one of 8 or 16 pieces of
// a block.  For the same block they are the same ones each time.
typedef struct dense_place_s {
  char*    pages[2];
  uint64_t random;
} dense_place_t;

static void dense_place(dense_place_t* place, const char* start, size_t size, size_t i) {
  size_t page_size = _mi_prim_os_page_size(), piece_size = mi_align_down(size / dense_n_samples(size), page_size);
  size_t n_pages = mi_min(MI_CHUNK_SIZE, piece_size) / page_size;
  char*  piece = (char*)(uintptr_t)start + piece_size * i;
  if (i == 0) place->random = (uintptr_t)start;
  place->random = mi_mix64(place->random + 1);
  place->pages[0] = piece + place->random % n_pages * page_size;
  place->pages[1] = piece + (place->random >> 32) % n_pages * page_size;
}

static bool dense_is(const char* start, size_t size) {
  size_t        page_size = _mi_prim_os_page_size(), n = dense_n_samples(size), n_mixed = 0, n_empty = 0;
  dense_place_t place;
  for (size_t i = 0; i < n && n_mixed <= DENSE_MIXED_MAX && n_empty <= n / 2; i++) {
    dense_place(&place, start, size, i);
    bool is_empty = dense_is_empty(place.pages[0], page_size);
    if (is_empty && i == 0) return false;
    if (is_empty != dense_is_empty(place.pages[1], page_size)) n_mixed++;
    else if (is_empty) n_empty++;
  }
  return n_mixed <= DENSE_MIXED_MAX && n_empty <= n / 2;
}

// DE5: is the next block after such a run looked at?
static bool dense_is_looked_at(int64_t run) {
  uint64_t n = (uint64_t)(run < 0 ? -run : run), share = (run < 0 ? DENSE_SPARSE : DENSE_DENSE);
  return n < DENSE_PATIENCE || n % share == mi_mix64(n / share) % share;
}

// The run with one more block.
static int64_t dense_run_on(int64_t run, bool is_dense) {
  if (is_dense) return (run > 0 ? run : 0) + 1;
  return (run < 0 ? run : 0) - 1;
}

bool _mi_dense_freed(const void* start, size_t size) {
  if (MI_TRACK || size < MI_DENSE_MIN) return false;
  int64_t run = mi_load_relaxed(&dense_run);
  bool    is_looked_at = dense_is_looked_at(run);
  bool    is_dense = (is_looked_at ? dense_is((const char*)start, size) : run > 0);
  mi_store_relaxed(&dense_run, dense_run_on(run, is_dense));
  if (is_dense) mi_fetch_add_relaxed(&dense_credit, size);
  else if (is_looked_at) mi_store_relaxed(&dense_credit, (size_t)0);
  return is_dense;
}

// DE4: of one OS page at random in each piece, from piece `first` on, at most n_most are used; a page that cannot be read counts as used.
static bool dense_is_thin(const char* start, size_t size, size_t first, size_t n_most) {
  size_t   page_size = _mi_prim_os_page_size(), piece = mi_align_down(size / DENSE_SAMPLES, page_size), n_used = 0;
  uint64_t random = (uintptr_t)start;
  for (size_t i = first; i < DENSE_SAMPLES && n_used <= n_most; i++) {
    random = mi_mix64(random + 1);
    const char* page = start + i * piece + random % (piece / page_size) * page_size;
    if (!dense_can_read(page, page_size) || !dense_is_zero(page, page_size)) n_used++;
  }
  return n_used <= n_most;
}

void _mi_dense_freed_zeros(const void* start, size_t size) {
  if (MI_TRACK || size < MI_THIN_MIN) return; // it may have shrunk
  bool is_thin = dense_is_thin((const char*)start, size, 0, DENSE_THIN_MAX);
  mi_store_relaxed(&dense_last_thin, is_thin);
  mi_store_relaxed(&dense_little, is_thin ? DENSE_LITTLE_PER_THIN * size : 0);
}

bool _mi_dense_is_thin(size_t size) {
  return size >= MI_THIN_MIN && mi_load_relaxed(&dense_last_thin);
}

bool _mi_dense_is_cleared_by_system(const void* start, size_t size) {
  if (size >= MI_THIN_MIN) return _mi_dense_is_thin(size);
  size_t left = mi_load_relaxed(&dense_little);
  if (mi_likely(left < size) || size < mi_max(DENSE_LITTLE_MIN, DENSE_SAMPLES * _mi_prim_os_page_size())) return false;
  if (!dense_is_thin((const char*)start, size, 1, 0)) return false;
  mi_store_relaxed(&dense_little, left - size);
  return true;
}
