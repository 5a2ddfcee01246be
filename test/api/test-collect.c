// Proves: mi_collect_reduce gives back free memory until the process holds as much as it is told, and no more of it than that;
// blocks in use count, and stay as they are.
#include "../check.h"
#include "entries.h"

// A purge takes up to a chunk more than it has to, and the last pages are partly used.  Slices are counted, and some of each was
// never touched: the end of a page, and in hardened builds the gap behind it.
enum { n_blocks = 2048, n_live = 256, block_kib = 64, slack_mib = 8 };

static void* blocks[n_blocks];

static const size_t block_size = block_kib * KiB - 512; // with its padding, where there is some, not a larger class

static void fill(void) {
  for (size_t i = 0; i < n_blocks; i++) {
    blocks[i] = mi_malloc(block_size);
    pattern_fill(blocks[i], 0, block_size, i);
  }
  for (size_t i = n_live; i < n_blocks; i++) mi_free(blocks[i]);
}

static void check_live(void) {
  for (size_t i = 0; i < n_live; i++) CHECK_EQ(pattern_check(blocks[i], block_size, i), block_size);
}

// What is resident beyond `base` when no more than `target` is to be held.
static size_t reduce(size_t base, size_t target) {
  mi_collect_reduce(target);
  return minus(rss_now(), base);
}

static void check_reduce(size_t base) {
  size_t all = reduce(base, SIZE_MAX);
  CHECK(!rss_is_meaningful() || all + slack_mib * MiB >= n_blocks * block_size / 8 * 7); // nothing has gone back
  for (size_t target = 96 * MiB; target >= 32 * MiB; target -= 32 * MiB) {
    size_t held = reduce(base, target);
    CHECK(rss_within("resident after reducing", held, target + slack_mib * MiB));
    CHECK_FOR(!rss_is_meaningful() || held + slack_mib * MiB >= target - target / 8, "%zu of %zu", held, target);
    size_t again = reduce(base, target + slack_mib * MiB); // it holds less: nothing to do
    CHECK_FOR(!rss_is_meaningful() || again + 1 * MiB >= held, "%zu after %zu", again, held);
  }
  size_t live = n_live * block_size;
  CHECK(rss_within("resident with a bound below what is in use", reduce(base, live / 2), live + slack_mib * MiB));
  check_live();
  for (size_t i = 0; i < n_live; i++) mi_free(blocks[i]);
  CHECK(rss_within("resident with nothing in use", reduce(base, 0), slack_mib * MiB));
}

int main(int argc, char** argv) {
  test_seed(argc, argv);
  watchdog(100);
  mi_option_set(mi_option_purge_delay, -1); // nothing goes back without being asked for
  mi_free(mi_malloc(1));
  size_t base = rss_now();
  fill();
  check_reduce(base);
  return check_result();
}
