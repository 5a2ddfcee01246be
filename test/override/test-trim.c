// Proves: malloc_trim keeps as many free bytes as it is told, gives back the others, and says whether there were any; mallopt
// accepts what glibc has, and nothing else.
#include "../check.h"
#include <malloc.h>
#include <mimalloc.h>
#include "../modes/support.h"

#if defined(__GLIBC__)

enum { n_blocks = 640, block_size = 100 * KiB, total = n_blocks * block_size, slack = 4 * MiB };

static void* blocks[n_blocks];

// Slices are counted, and some of each was never touched: the end of a page, and in hardened builds the gap behind it.
static size_t touched_of(size_t bytes) {
  return bytes - bytes / 8;
}

static void fill_and_free(void) {
  for (size_t i = 0; i < n_blocks; i++) memset(blocks[i] = malloc(block_size), 0xAB, block_size);
  for (size_t i = 0; i < n_blocks; i++) free(blocks[i]);
}

static void check_trim(size_t base) {
  fill_and_free();
  CHECK_EQ(malloc_trim(SIZE_MAX), 0);
  CHECK_EQ(malloc_trim(2 * (size_t)total), 0);
  size_t held = minus(rss_now(), base);
  CHECK(!rss_is_meaningful() || held + slack >= total);
  for (size_t pad = 48 * MiB; pad >= 16 * MiB; pad -= 16 * MiB) {
    CHECK_EQ(malloc_trim(pad), 1);
    held = minus(rss_now(), base);
    CHECK_FOR(!rss_is_meaningful() || held >= touched_of(pad), "%zu of %zu", held, pad);
    CHECK(rss_within("resident after trimming", held, pad + slack));
    CHECK_EQ(malloc_trim(pad), 0);
  }
  CHECK_EQ(malloc_trim(0), 1);
  CHECK(rss_within("resident after trimming all", minus(rss_now(), base), slack));
  CHECK_EQ(malloc_trim(0), 0);
}

static void check_mallopt(void) {
  static const int known[] = {M_MXFAST,  M_TRIM_THRESHOLD, M_TOP_PAD,    M_MMAP_THRESHOLD, M_MMAP_MAX,
                              M_PERTURB, M_CHECK_ACTION,   M_ARENA_TEST, M_ARENA_MAX};
  static const int unknown[] = {0, -9, -1000, 5, 12345};
  for (size_t i = 0; i < COUNT_OF(known); i++) CHECK_FOR(mallopt(known[i], 8) == 1, "%d", known[i]);
  for (size_t i = 0; i < COUNT_OF(unknown); i++) CHECK_FOR(mallopt(unknown[i], 8) == 0, "%d", unknown[i]);
}

int main(int argc, char** argv) {
  test_seed(argc, argv);
  watchdog(100);
  mi_option_set(mi_option_purge_delay, -1); // nothing goes back without being asked for
  malloc_trim(0);
  check_trim(rss_now());
  check_mallopt();
  return check_result();
}

#else

int main(void) {
  test_skip("malloc_trim", "a function of glibc");
  return skip_code;
}

#endif
