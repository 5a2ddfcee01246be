// Proves, where memory only grows: a program whose live memory is bounded stops growing, whatever sizes it asks for, and has a
// small multiple of what was live at most; large blocks bring no memory ahead; no slice is lost (WI1, WI2).
#include "../check.h"
#include "../modes/support.h"
#include "large.h"
#include "mimalloc.h"

enum { n_blocks_max = 1 << 18, n_rounds = 10, n_first = 6, live_max = 8 * MiB };

static void*  blocks[n_blocks_max];
static size_t n_blocks;

// All that the program has, its own data too.
static size_t memory_size(void) {
  return __builtin_wasm_memory_size(0) * 64 * KiB;
}

static void add_block(size_t size) {
  CHECK(n_blocks < n_blocks_max);
  uint8_t* p = (uint8_t*)mi_malloc(size);
  CHECK(p != NULL);
  p[0] = p[size - 1] = (uint8_t)n_blocks;
  blocks[n_blocks++] = p;
}

// Every second block first, so that no page is free before half of all are.
static void free_blocks(void) {
  for (size_t i = 0; i < n_blocks; i += 2) mi_free(blocks[i]);
  for (size_t i = 1; i < n_blocks; i += 2) mi_free(blocks[i]);
  n_blocks = 0;
}

// ---- phases ---------------------------------------------------------------------------------------------------------

static void phase_fixed(size_t size) {
  for (size_t live = 0; live + size <= live_max; live += size) add_block(size);
  free_blocks();
}

// Of all sizes from 16 bytes to 2 MiB, freed and allocated in turn.
static void phase_mixed(rng_t* r) {
  static size_t sizes[n_blocks_max];
  size_t        live = 0;
  for (size_t i = 0; i < 20000; i++) {
    size_t size = ((size_t)16 << rng_below(r, 17)) + rng_below(r, 16);
    while (live + size > live_max) {
      size_t which = rng_below(r, n_blocks);
      mi_free(blocks[which]);
      live -= sizes[which];
      blocks[which] = blocks[--n_blocks];
      sizes[which] = sizes[n_blocks];
    }
    sizes[n_blocks] = size;
    add_block(size);
    live += size;
  }
  free_blocks();
}

// One block that grows by steps, with others in its way.
static void phase_growing(void) {
  void* p = NULL;
  for (size_t size = 64 * KiB; size <= live_max / 2; size += 200 * KiB) {
    p = mi_realloc(p, size);
    CHECK(p != NULL);
    if (n_blocks < 20) add_block(100 * KiB);
  }
  mi_free(p);
  free_blocks();
}

static void run_fixed(size_t first) {
  static const size_t sizes[] = {live_max,  32,   MiB,      64,        3 * MiB, 600,
                                 300 * KiB, 5000, 40 * KiB, 520 * KiB, 2 * MiB, 100 * KiB};
  for (size_t i = 0; i < COUNT_OF(sizes); i++) phase_fixed(sizes[(first + i) % COUNT_OF(sizes)]);
}

// ---- checks ---------------------------------------------------------------------------------------------------------

// The same again and again: what suffices for six rounds suffices for ever.
static void check_steady(void) {
  size_t before = memory_size(), early = 0;
  for (size_t round = 1; round <= n_rounds; round++) {
    run_fixed(0);
    if (round == n_first) early = memory_size();
  }
  size_t end = memory_size();
  printf("%zu KiB before, %zu after %d rounds, %zu after %d\n", before / KiB, early / KiB, n_first, end / KiB,
         n_rounds);
  CHECK_FOR(end == early, "%zu KiB more", (end - early) / KiB);
  CHECK_FOR(end - before <= 2 * live_max, "%zu KiB, with 8 MiB live", (end - before) / KiB);
}

// Where sizes and their order change, free memory lies in pieces: so much more is needed, but no more than that.
static void check_bound(rng_t* r) {
  for (size_t round = 0; round < n_rounds; round++) {
    run_fixed(rng_below(r, 12));
    phase_growing();
    phase_mixed(r);
  }
  size_t end = memory_size();
  printf("%zu KiB after sizes at random\n", end / KiB);
  CHECK_FOR(end - sizeof(blocks) <= 7 * live_max / 2, "%zu KiB, with 8 MiB live", (end - sizeof(blocks)) / KiB);
}

// What is neither free nor in use by somebody is lost.
static void check_slices(rng_t* r) {
  mi_collect(true);
  size_t before = slices_in_use();
  run_fixed(1);
  phase_mixed(r);
  mi_collect(true);
  CHECK_EQ(slices_in_use(), before);
}

static size_t n_asked(void) {
  return (size_t)mi_load_relaxed(&_mi_stat_live.reserved.current);
}

// For a block that is large beside what is there no more is asked than it needs.  (Emscripten itself adds a fifth.)
static void check_large(void) {
  size_t n_grown = 0;
  for (size_t i = 0; i < 40; i++) {
    size_t before = n_asked();
    add_block(MiB);
    size_t grown = n_asked() - before;
    n_grown += (grown > 0);
    CHECK_FOR(grown <= MiB + 128 * KiB, "%zu KiB more", grown / KiB);
  }
  CHECK(n_grown > 0);
  free_blocks();
}

int main(int argc, char** argv) {
  rng_t r = rng_make(test_seed(argc, argv));
  check_steady();
  check_bound(&r);
  check_slices(&r);
  check_large();
  return check_result();
}
