// Proves: usable sizes and mi_good_size agree and make sense: a usable size covers the request, up to 512 KiB it is
// exactly the good size, good sizes are fixed points that grow with the request, and little is wasted.
#include "../check.h"
#include "entries.h"

static void check_one(size_t size, bool padded) {
  void* p = mi_malloc(size);
  CHECK_FOR(p != NULL, "size %zu", size);
  if (p == NULL) return;
  size_t usable = mi_usable_size(p);
  size_t good = mi_good_size(size);
  CHECK_FOR(usable >= size, "size %zu", size);
  CHECK_FOR(good >= size, "size %zu", size);
  CHECK_EQ(mi_malloc_usable_size(p), usable);
  CHECK_EQ(mi_malloc_size(p), usable);
  CHECK_EQ(mi_malloc_good_size(size), good);
  if (padded) CHECK_FOR(usable == size || size == 0, "size %zu usable %zu", size, usable);
  else if (size <= 512 * KiB) CHECK_FOR(usable == good, "size %zu usable %zu good %zu", size, usable, good);
  mi_free(p);
}

static void check_good_sizes(bool padded) {
  size_t previous = 0;
  for (size_t size = 0; size <= 1 * MiB; size = size < 70000 ? size + 1 : size + 1021) {
    size_t good = mi_good_size(size);
    CHECK_FOR(good >= size && good >= previous && good % 8 == 0, "size %zu good %zu", size, good);
    if (!padded) {
      CHECK_FOR(mi_good_size(good) == good, "size %zu", size);
      // at most a step of 16 or an eighth of the size up to 4 KiB, a third beyond
      size_t step = size <= 256 ? 16 : size / (size <= 4 * KiB ? 8 : 3) + 16;
      CHECK_FOR(good - size <= step, "size %zu good %zu", size, good);
    }
    previous = good;
  }
  if (!padded) {
    CHECK_EQ(mi_good_size(0), 8);
    CHECK_EQ(mi_good_size(8), 8);
  }
  CHECK(mi_good_size(hidden(SIZE_MAX)) == SIZE_MAX);
}

// A power of two up to 4 KiB is its own class: no waste for buffers and hash tables.
static void check_powers(bool padded) {
  if (padded) return;
  for (size_t size = 8; size <= 4 * KiB; size *= 2) CHECK_EQ(mi_good_size(size), size);
}

int main(int argc, char** argv) {
  rng_t rng = rng_make(test_seed(argc, argv));
  bool  padded = blocks_are_padded();
  printf("padded blocks: %s\n", padded ? "yes" : "no");
  for (size_t size = 0; size <= 4200; size++) check_one(size, padded);
  for (size_t i = 0; i < 3000; i++) check_one(rng_size(&rng, 600 * KiB), padded);
  for (size_t i = 0; i < 200; i++) check_one(rng_size(&rng, 64 * MiB), padded);
  check_good_sizes(padded);
  check_powers(padded);
  return check_result();
}
