// Proves: a directory finds what was added and not removed, and nothing else, however ids collide; it stays at most half full;
// what it and its like give back is used again, so that memory is bounded by what was in use at a time.
#include "../check.h"
#include "../modes/support.h"
#include "heap/directory.h"
#include "heap/meta.h"
#include "heap/thread.h"
#include "mimalloc.h"

enum { n_ids = 3000, n_steps = 30000 };

static uint64_t ids[n_ids];
static bool     is_in[n_ids];

static mi_theap_t* theap_of(size_t i) {
  return (mi_theap_t*)(uintptr_t)(64 * (i + 1)); // never looked at
}

static void clear(mi_directory_t* directory) {
  _mi_lock_acquire(&_mi_registry_lock);
  _mi_directory_clear(directory);
  _mi_lock_release(&_mi_registry_lock);
}

static void add(mi_directory_t* directory, size_t i) {
  CHECK(_mi_directory_reserve(directory));
  _mi_directory_add(directory, ids[i], theap_of(i));
  is_in[i] = true;
}

static void check_all(const mi_directory_t* directory) {
  size_t n = 0, n_entries = 0;
  for (size_t i = 0; i < n_ids; i++) {
    CHECK_FOR(_mi_directory_find(directory, ids[i]) == (is_in[i] ? theap_of(i) : NULL), "id %zu", (size_t)ids[i]);
    n += is_in[i];
  }
  for (size_t i = 0; directory->entries != NULL && i < (size_t)1 << directory->shift; i++) {
    n_entries += (directory->entries[i].id != 0);
  }
  CHECK_EQ(directory->n, n);
  CHECK_EQ(n_entries, n);
  CHECK(n == 0 || 2 * n <= (size_t)1 << directory->shift);
}

// About `n` of the ids at a time.
static void check_random(rng_t* r, size_t n) {
  mi_directory_t directory = {NULL, 0, 0};
  memset(is_in, 0, sizeof(is_in));
  CHECK(_mi_directory_find(&directory, ids[0]) == NULL && _mi_directory_find(&directory, 0) == NULL);
  for (size_t step = 0; step < n_steps; step++) {
    size_t i = rng_below(r, n_ids);
    if (is_in[i]) {
      _mi_directory_remove(&directory, ids[i]);
      is_in[i] = false;
    }
    else if (directory.n < n) {
      add(&directory, i);
    }
    if (step % (n_steps / 20) == 0) check_all(&directory);
  }
  check_all(&directory);
  CHECK(directory.shift <= 4 || (size_t)1 << directory.shift <= 4 * n);
  clear(&directory);
  CHECK(directory.entries == NULL && _mi_directory_find(&directory, ids[1]) == NULL);
}

// Ids whose places are next to each other, at the end of the table and at its beginning.
static void choose_colliding_ids(void) {
  mi_directory_t directory = {NULL, 12, 0};
  uint64_t       id = 1;
  for (size_t i = 0; i < n_ids; id++) {
    size_t place = _mi_directory_place(&directory, id);
    if (place > 4080 || place < 4) ids[i++] = id;
  }
}

static size_t meta_slices(void) {
  size_t n = 0;
  for (size_t i = 0; i < _mi_region_count(); i++) {
    const mi_region_t* region = &_mi_region_all[i];
    for (size_t k = 0; region->base != 0 && k < region->n_used; k++) {
      if (region->chunks[k].kind != MI_CHUNK_META) continue;
      n += MI_CHUNK_SLICES - (size_t)__builtin_popcount(region->chunks[k].free_bits);
    }
  }
  return n;
}

static void check_meta(rng_t* r) {
  enum { n_blocks = 64, n_rounds = 400 };
  static unsigned char* blocks[n_blocks];
  static unsigned       shifts[n_blocks];
  size_t                early = 0;
  _mi_lock_acquire(&_mi_registry_lock);
  for (size_t i = 0; i < n_blocks * n_rounds; i++) {
    size_t k = rng_below(r, n_blocks);
    if (i == n_blocks * n_rounds / 2) early = meta_slices();
    if (blocks[k] != NULL) {
      CHECK(pattern_check(blocks[k], (size_t)1 << shifts[k], k) == (size_t)1 << shifts[k]);
      _mi_meta_free(blocks[k], shifts[k]);
    }
    shifts[k] = MI_META_SHIFT_MIN + (unsigned)rng_below(r, 11); // up to four slices
    blocks[k] = (unsigned char*)_mi_meta_alloc(shifts[k]);
    size_t size = (size_t)1 << shifts[k];
    CHECK(blocks[k] != NULL && is_zero(blocks[k], 0, size) &&
          is_aligned(blocks[k], size < MI_SLICE_SIZE ? size : MI_SLICE_SIZE));
    pattern_fill(blocks[k], 0, size, k);
  }
  CHECK_FOR(meta_slices() <= early + early / 4, "%zu slices, then %zu", early, meta_slices());
  for (size_t k = 0; k < n_blocks; k++) {
    if (blocks[k] != NULL) _mi_meta_free(blocks[k], shifts[k]);
  }
  CHECK(_mi_meta_alloc(MI_META_SHIFT_MAX + 1) == NULL);
  _mi_lock_release(&_mi_registry_lock);
}

int main(int argc, char** argv) {
  watchdog(60);
  rng_t r = rng_make(test_seed(argc, argv));
  mi_free(mi_malloc(1));
  for (size_t i = 0; i < n_ids; i++) ids[i] = i + 1;
  check_random(&r, 6);
  check_random(&r, n_ids);
  for (size_t i = 0; i < n_ids; i++) ids[i] = 8 * i + 3;
  check_random(&r, 500);
  choose_colliding_ids();
  check_random(&r, 8);
  check_random(&r, 2000);
  check_meta(&r);
  size_t n_slices = meta_slices();
  for (int i = 0; i < 20; i++) check_random(&r, 1 + rng_below(&r, 2000));
  CHECK_FOR(meta_slices() <= n_slices + 4, "%zu slices, then %zu", n_slices, meta_slices());
  return check_result();
}
