// Proves: usable sizes and mi_good_size agree and make sense: a usable size covers the request, up to 512 KiB it is
// exactly the good size, good sizes are fixed points that grow with the request, and little is wasted.  Where blocks are
// padded the usable size is what was asked for, and the good size has the padding in it.  Guarded blocks have nothing more.
#include "../check.h"
#include "entries.h"

static void check_one(size_t size) {
  void* p = mi_malloc(size);
  CHECK_FOR(p != NULL, "size %zu", size);
  if (p == NULL) return;
  size_t usable = mi_usable_size(p);
  size_t good = mi_good_size(size);
  CHECK_FOR(size_is_right(usable, size), "size %zu usable %zu", size, usable);
  CHECK_FOR(good >= size + MI_PADDING_SIZE, "size %zu good %zu", size, good);
  CHECK_EQ(mi_malloc_usable_size(p), usable);
  CHECK_EQ(mi_malloc_size(p), usable);
  CHECK_EQ(mi_malloc_good_size(size), good);
  size_t block_size;
  void*  q = mi_umalloc(size, &block_size);
  bool   is_guarded = (MI_HARDENED && (size == 0 || may_move(size))); // those end where they were asked to
  size_t wanted = (is_guarded ? size : good);
  if (good <= 512 * KiB || is_guarded)
    CHECK_FOR(block_size == wanted, "size %zu: block of %zu, good %zu", size, block_size, good);
  if (good <= 512 * KiB && !MI_PADDING) CHECK_FOR(usable == good, "size %zu usable %zu good %zu", size, usable, good);
  mi_free(q);
  mi_free(p);
}

static void check_good_sizes(void) {
  size_t previous = 0;
  for (size_t size = 0; size <= 1 * MiB; size = size < 70000 ? size + 1 : size + 1021) {
    size_t good = mi_good_size(size);
    CHECK_FOR(good >= size && good >= previous && good % 8 == 0, "size %zu good %zu", size, good);
    CHECK_FOR(mi_good_size(good - MI_PADDING_SIZE) == good, "size %zu", size);
    // at most a step of 16 or an eighth of the size up to 4 KiB, a third beyond
    size_t full = size + MI_PADDING_SIZE;
    size_t step = full <= 256 ? 16 : full / (full <= 4 * KiB ? 8 : 3) + 16;
    CHECK_FOR(good - full <= step, "size %zu good %zu", size, good);
    previous = good;
  }
  CHECK_EQ(mi_good_size(0), MI_PADDING || MI_TAGS ? 16 : 8); // blocks with padding, or tags, have no less
  CHECK_EQ(mi_good_size(8), MI_PADDING || MI_TAGS ? 16 : 8);
  CHECK(mi_good_size(hidden(SIZE_MAX)) == SIZE_MAX);
}

// A power of two up to 4 KiB is its own class: no waste for buffers and hash tables.
static void check_powers(void) {
  for (size_t size = 16; size <= 4 * KiB; size *= 2) CHECK_EQ(mi_good_size(size - MI_PADDING_SIZE), size);
}

int main(int argc, char** argv) {
  rng_t rng = rng_make(test_seed(argc, argv));
  printf("padded blocks: %s\n", MI_PADDING ? "yes" : "no");
  for (size_t size = 0; size <= 4200; size++) check_one(size);
  for (size_t i = 0; i < 3000; i++) check_one(rng_size(&rng, 600 * KiB));
  for (size_t i = 0; i < 200; i++) check_one(rng_size(&rng, 64 * MiB));
  check_good_sizes();
  check_powers();
  return check_result();
}
