// Proves: a large block that is resized keeps its contents, and what is new reads as zero where that was asked for, whether it
// stays or moves, and what is not needed any more is free; so it does when the system refuses any of the calls; no slice is lost.
// What a thread has free is not given up for a mapping that can be copied.
#include "../check.h"
#include "../modes/support.h"
#include "heap/large.h"
#include "heap/theap.h"
#include "large.h"
#include "mimalloc.h"
#include "page/padding.h"

// Does the system move blocks?
#if defined(__linux__) && !(defined(MI_PRIM_CUSTOM) && MI_PRIM_CUSTOM)
  #define TEST_MOVES MI_PRIM_VIRTUAL
#else
  #define TEST_MOVES 0
#endif

// What was given back and is taken again in place.
static void check_extend(void) {
  char* p = (char*)mi_malloc(8 * MiB);
  memset(p, 1, 8 * MiB);
  size_t before = slices_in_use();
  CHECK(mi_realloc(p, 3 * MiB) == p);
  CHECK_EQ(before - slices_in_use(), 5 * MiB / MI_SLICE_SIZE);
  CHECK(mi_rezalloc(p, 8 * MiB) == p);
  CHECK(is_zero(p, 3 * MiB, 8 * MiB) && p[3 * MiB - 1] == 1);
  CHECK_EQ(slices_in_use(), before);
  mi_free(p);
  mi_collect(true);
}

// To a place that was written to before, copied or by the system.  (Without huge pages, for which a barrier would go elsewhere.)
static void check_move(size_t size) {
  mi_option_set(mi_option_allow_thp, 0);
  uint8_t* written = (uint8_t*)mi_malloc(30 * MiB);
  uint8_t* p = (uint8_t*)mi_malloc(size);
  void*    barrier = mi_malloc(600 * KiB);
  memset(written, 1, 30 * MiB);
  pattern_fill(p, 0, size, 1);
  mi_free(written);
  uint8_t* q = (uint8_t*)mi_rezalloc(p, size + 10 * MiB);
  CHECK(q != NULL && q != p);
  CHECK(MI_HARDENED || (q >= written && q < written + 30 * MiB));
  CHECK_EQ(pattern_check(q, size, 1), size);
  CHECK(is_zero(q, size, size + 10 * MiB));
  mi_free(barrier);
  mi_free(q);
  mi_collect(true);
  mi_option_set(mi_option_allow_thp, 1);
}

// A block that the system has moved gives back what it does not need any more, with its memory, unless the system refuses.
static void check_shrink_moved(void) {
  for (int fails = 0; fails <= 1; fails++) {
    uint8_t* p = (uint8_t*)mi_malloc(12 * MiB);
    void*    barrier = mi_malloc(600 * KiB);
    pattern_fill(p, 0, 12 * MiB, 1);
    size_t n_moved = mi_load_relaxed(&_mi_large_n_remapped);
    p = (uint8_t*)mi_realloc(p, 24 * MiB);
    CHECK_EQ(mi_load_relaxed(&_mi_large_n_remapped), n_moved + 1);
    pattern_fill(p, 0, 24 * MiB, 1);
    size_t n_before = slices_in_use(), usable = mi_usable_size(p);
    if (fails) _mi_prim_fail_nth(1, false);
    CHECK(mi_realloc(p, 3 * MiB) == p);
    _mi_prim_fail_nth(0, false);
    CHECK_EQ(mi_usable_size(p), fails ? usable : 3 * MiB);
    CHECK_EQ(n_before - slices_in_use(), fails ? 0 : (usable - 3 * MiB) / MI_SLICE_SIZE);
    CHECK(fails || _mi_chunk_purgeable() < 20 * MiB / MI_SLICE_SIZE); // what is dirty is where it was before
    CHECK_EQ(pattern_check(p, 3 * MiB, 1), 3 * MiB);
    p = (uint8_t*)mi_rezalloc(p, 24 * MiB);
    CHECK(p != NULL && is_zero(p, fails ? usable : 3 * MiB, 24 * MiB));
    CHECK_EQ(pattern_check(p, 3 * MiB, 1), 3 * MiB);
    memset(p, 2, 24 * MiB);
    mi_free(barrier);
    mi_free(p);
    mi_collect(true);
    CHECK_EQ(mi_load_relaxed(&_mi_large_n_remapped), n_moved);
  }
}

// By steps that grow and shrink it, in place or not; with `fails` each call to the system fails once.
static void check_resize(rng_t* r, bool fails) {
  size_t   size = MiB, n_steps = fails ? 60 : 300, n_failed = 0;
  uint8_t* p = (uint8_t*)mi_zalloc(size);
  void*    barriers[20];
  for (size_t i = 0; i < n_steps; i++) {
    if (i < COUNT_OF(barriers)) barriers[i] = mi_malloc(600 * KiB); // in the way
    size_t new_size = 520 * KiB + rng_below(r, 12 * MiB);
    pattern_fill(p, 0, size, i);
    size_t known =
        (MI_PADDING ? size : mi_usable_size(p)); // of the old size, to the library: what is behind it is zero
    for (size_t n = 1;; n++) {
      if (fails) _mi_prim_fail_nth(n, false);
      uint8_t* q = (uint8_t*)mi_rezalloc(p, new_size);
      _mi_prim_fail_nth(0, false);
      if (q != NULL) {
        p = q;
        break;
      }
      n_failed++;
      CHECK_EQ(pattern_check(p, size, i), size); // it is as it was
    }
    size_t least = size < new_size ? size : new_size;
    CHECK_EQ(pattern_check(p, least, i), least);
    CHECK(new_size <= known || is_zero(p, known, new_size));
    size = new_size;
  }
  CHECK(n_failed == 0 || fails);
  for (size_t i = 0; i < COUNT_OF(barriers); i++) mi_free(barriers[i]);
  mi_free(p);
  mi_collect(true);
  CHECK_EQ(bytes_in_use(), 0);
  CHECK(mi_heap_check(NULL));
}

static void check_copied(void) {
  const size_t size = 40 * MiB;
  size_t       cls = _mi_size_class_of(64);
  mi_free(mi_malloc(_mi_size_class_block(cls) - MI_PADDING_SIZE));
  char* p = (char*)mi_malloc(size);
  p[0] = p[size - 1] = 1;
  CHECK(_mi_theap_default->bins[cls].head != NULL);
  _mi_prim_fail_nth(1, false);
  char* q = (char*)mi_realloc(p, size + 20 * MiB);
  CHECK(_mi_prim_fail_nth(0, false) > 1);
  CHECK(q != NULL && q[0] == 1 && q[size - 1] == 1);
  CHECK(_mi_theap_default->bins[cls].head != NULL);
  mi_free(q);
  mi_collect(true);
}

int main(int argc, char** argv) {
  watchdog(120);
  rng_t r = rng_make(test_seed(argc, argv));
  mi_option_set(mi_option_purge_delay, -1);
  mi_free(mi_malloc(1));
  mi_collect(true);
  size_t before = slices_in_use();
  if (!MI_HARDENED && !MI_TRACK) check_extend(); // elsewhere blocks move
  if (TEST_MOVES && !MI_HARDENED && !MI_TRACK && !MI_PADDING) check_shrink_moved();
  check_move(2 * MiB);
  check_move(12 * MiB);
  check_resize(&r, false);
  check_resize(&r, true);
  if (MI_PRIM_VIRTUAL && !MI_HARDENED && !MI_TRACK) check_copied(); // elsewhere no mapping is resized
  // Guarded blocks stay inaccessible for a while.
  if (!MI_HARDENED) CHECK_FOR(slices_in_use() == before, "%zu slices, then %zu", before, slices_in_use());
  return check_result();
}
