// Proves: guard pages can be asked for in any build, and blocks are what they are otherwise.
#include "../check.h"
#include <mimalloc-stats.h>
#include "entries.h"

static void use(mi_heap_t* heap, uint64_t seed) {
  enum { n = 300 };
  static uint8_t* blocks[n];
  static size_t   sizes[n];
  rng_t           rng = rng_make(seed);
  for (size_t i = 0; i < n; i++) {
    sizes[i] = rng_size(&rng, 20 * KiB);
    size_t alignment = (size_t)16 << rng_below(&rng, 9);
    blocks[i] =
        (uint8_t*)(i % 3 == 0 ? mi_heap_malloc_aligned(heap, sizes[i], alignment) : mi_heap_malloc(heap, sizes[i]));
    CHECK(blocks[i] != NULL && mi_heap_contains(heap, blocks[i]));
    CHECK(is_aligned(blocks[i], i % 3 == 0 ? alignment : 8));
    CHECK_FOR(mi_usable_size(blocks[i]) >= sizes[i], "%zu of %zu", mi_usable_size(blocks[i]), sizes[i]);
    pattern_fill(blocks[i], 0, sizes[i], i);
  }
  for (size_t i = 0; i < n; i++) {
    CHECK(pattern_check(blocks[i], sizes[i], i) == sizes[i]);
    blocks[i] = (uint8_t*)mi_heap_realloc(heap, blocks[i], sizes[i] + 100);
    CHECK(pattern_check(blocks[i], sizes[i], i) == sizes[i]);
    mi_free(blocks[i]);
  }
}

// A heap that is destroyed while each of its allocations is looked at leaves nothing of its blocks to the next heap, which may get
// its memory.
static void check_destroyed(void) {
  enum { n = 100, size = 100 };
  static void* blocks[n];
  mi_stats_t_decl(stats);
  mi_heap_t* heap = mi_heap_new();
  mi_heap_guarded_set_size_bound(heap, 100 * MiB, 200 * MiB);
  mi_heap_guarded_set_sample_rate(heap, 1, 0);
  for (size_t i = 0; i < n; i++) blocks[i] = mi_heap_malloc(heap, size);
  for (size_t i = 0; i < n; i += 2) mi_free(blocks[i]);
  mi_heap_destroy(heap);
  heap = mi_heap_new();
  for (size_t i = 0; i < n; i++) blocks[i] = mi_heap_malloc(heap, size);
  CHECK(mi_heap_check(heap));
  CHECK(mi_heap_stats_get(heap, &stats));
  CHECK_EQ(stats.malloc_normal_count.total, n);
  mi_heap_destroy(heap);
}

static void note_error(int err, void* arg) {
  (void)err;
  (void)arg; // the check says it
}

int main(int argc, char** argv) {
  static const size_t rates[] = {1, 7, 1000, SIZE_MAX, 0};
  uint64_t            seed = test_seed(argc, argv);
  mi_heap_t*          heap = mi_heap_new();
  for (size_t i = 0; i < COUNT_OF(rates); i++) {
    mi_heap_guarded_set_sample_rate(heap, rates[i], i);
    use(heap, seed + i);
  }
  mi_heap_guarded_set_sample_rate(heap, 1, 0);
  mi_heap_guarded_set_size_bound(heap, 100, 1000);
  use(heap, seed);
  mi_heap_guarded_set_size_bound(heap, 1000, 100); // none at all
  use(heap, seed);
  mi_heap_guarded_set_sample_rate(NULL, 100, 1);
  mi_heap_guarded_set_size_bound(NULL, 0, 100 * KiB);
  use(NULL, seed);
  mi_heap_guarded_set_sample_rate(NULL, 0, 0);
  mi_heap_destroy(heap);
  mi_register_error(&note_error, NULL);
  check_destroyed();
  return check_result();
}
