// Proves: calloc does not touch fresh memory, for blocks of a slice and more, however many there are: only what the program
// writes to is resident.  And it still clears what is not fresh.
#include "../check.h"
#include "../api/entries.h"

enum { total = 24 * MiB, n_sizes = 6, n_max = total / (64 * KiB) };

static const size_t sizes[n_sizes] = {64 * KiB, 100 * KiB, 128 * KiB, 200 * KiB, 320 * KiB, 500 * KiB};
static uint8_t*     blocks[n_sizes][n_max];

static void calloc_all(size_t s) {
  for (size_t i = 0; i < total / sizes[s]; i++) {
    blocks[s][i] = (uint8_t*)mi_calloc(1, sizes[s]);
    CHECK(blocks[s][i] != NULL);
    if (blocks[s][i] == NULL) exit(check_result());
    blocks[s][i][sizes[s] / 2] = 1;
  }
}

static void check_zero(size_t s, const char* what) {
  for (size_t i = 0; i < total / sizes[s]; i++) {
    const uint8_t* p = blocks[s][i];
    CHECK_FOR(is_zero(p, 0, sizes[s] / 2) && is_zero(p, sizes[s] / 2 + 1, sizes[s]), "%zu bytes, %s", sizes[s], what);
  }
}

// Of each block the OS page that is written to, that of the link which it had as a free block, and that of its padding.
static void check_resident(size_t s) {
  size_t before = rss_now();
  calloc_all(s);
  size_t bound = total / sizes[s] * 3 * 4 * KiB + 2 * MiB;
  CHECK_FOR(rss_within("resident", minus(rss_now(), before), bound), "%zu bytes", sizes[s]);
}

static void dirty_and_free(size_t s) {
  for (size_t i = 0; i < total / sizes[s]; i++) {
    memset(blocks[s][i], 0xAB, sizes[s]);
    mi_free(blocks[s][i]);
  }
}

int main(int argc, char** argv) {
  test_seed(argc, argv);
  if (MI_FILL && !MI_HARDENED) test_skip("fresh memory", "this build fills it");
  for (size_t s = 0; s < n_sizes; s++) { // all stay: the next size is to have memory that nobody had
    if (MI_FILL && !MI_HARDENED) calloc_all(s);
    else check_resident(s);
  }
  for (size_t s = 0; s < n_sizes; s++) {
    check_zero(s, "fresh");
    dirty_and_free(s);
    calloc_all(s);
    check_zero(s, "used");
    dirty_and_free(s);
  }
  return check_result();
}
