// Proves: what is left in the bins of wide classes is bounded while pages are made for others: a buffer that becomes larger and
// larger leaves no block of each size behind, unless there is one again and again.  Bins that hold little are left as they are, unless a run is wanted that is too large
// to be kept (TI4), or the process is becoming larger than it ever was.  Bins that are used in turn are left as they are, too.
#include "../check.h"
#include "../modes/support.h"
#include "mimalloc.h"
#include "mimalloc-stats.h"
#include "heap/theap.h"
#include "page/padding.h"

enum { n_live = 8, n_rounds = 20, n_peak = 64, n_steps = 5000, n_few = 8 };

static size_t in_bin(size_t cls) {
  size_t n = 0;
  for (const mi_block_t* b = _mi_theap_default->bins[cls].head; b != NULL; b = _mi_page_next_block(b)) n++;
  return n;
}

static size_t bytes_in_bins_to(size_t size) {
  size_t n = 0;
  for (size_t cls = MI_CLASS_WIDE; cls < MI_CLASS_COUNT && _mi_size_class_block(cls) <= size; cls++)
    n += in_bin(cls) * _mi_size_class_block(cls);
  return n;
}

static size_t bytes_in_bins(void) {
  return bytes_in_bins_to(MI_CLASS_SIZE_MAX);
}

static int64_t n_pages_made(void) {
  static mi_stats_t stats;
  stats.size = sizeof(stats);
  stats.version = MI_STAT_VERSION;
  mi_stats_get(&stats);
  return stats.pages.total;
}

// One block of each wide class up to a size, one after the other.
static void grow_to(size_t size) {
  for (size_t cls = MI_CLASS_WIDE; cls < MI_CLASS_COUNT && _mi_size_class_block(cls) <= size; cls++)
    mi_free(mi_malloc(_mi_size_class_block(cls) - MI_PADDING_SIZE));
}

// A page is made for each block.
static void hold(void** blocks) {
  for (size_t i = 0; i < n_live; i++) blocks[i] = mi_malloc(MI_CLASS_SIZE_MAX - MI_PADDING_SIZE);
}

static void release(void** blocks) {
  for (size_t i = 0; i < n_live; i++) mi_free(blocks[i]);
  mi_collect(true);
}

static void check_bounded(bool is_in_turn) {
  void* blocks[n_live];
  grow_to(MI_CLASS_SIZE_MAX);
  size_t n = bytes_in_bins(); // the last two pages were made after the last look that found too much
  CHECK_FOR(n <= (is_in_turn ? 7 : 5) * MI_MiB / 2, "%zu bytes", n);
  hold(blocks);
  n = bytes_in_bins();
  CHECK_FOR(n <= (is_in_turn ? 6 : 3) * MI_MiB / 2, "%zu bytes", n);
  release(blocks);
}

// Is what bins hold left there?  Where memory only grows it comes before more of that (arena/window.h, WI5).
static bool stays(size_t n) {
  return !MI_PRIM_VIRTUAL || bytes_in_bins() == n;
}

// TI4
static void check_run(void) {
  grow_to(104832);
  size_t n = bytes_in_bins();
  CHECK(n > 0);
  mi_free(mi_malloc(4 * MI_MiB - MI_PADDING_SIZE));
  CHECK(stays(n));
  mi_free(mi_malloc(4 * MI_MiB + 1));
  CHECK_EQ(bytes_in_bins(), 0);
}

// Unless that makes the process larger than ever: then nothing stays of what is not in use.
static void check_peak(void) {
  static void* blocks[n_peak];
  grow_to(104832);
  CHECK(bytes_in_bins_to(104832) > 0);
  for (size_t i = 0; i < n_peak; i++) blocks[i] = mi_malloc(MI_CLASS_SIZE_MAX - MI_PADDING_SIZE);
  CHECK_EQ(bytes_in_bins_to(104832), 0);
  for (size_t i = 0; i < n_peak; i++) mi_free(blocks[i]);
  mi_collect(true);
}

// Less than a MiB stays, whatever is made.
static void check_few(void) {
  void* blocks[n_live];
  grow_to(104832);
  size_t n = bytes_in_bins();
  CHECK(n > 0 && n <= MI_MiB);
  hold(blocks);
  CHECK(stays(n));
  release(blocks);
}

// A few blocks of random sizes, of all wide classes: hardly any page is made, as bins keep what is wanted again, unless the blocks are
// written, and so resident.
static void check_in_turn(bool is_written) {
  static void* blocks[n_few];
  rng_t        r = rng_make(20261130);
  int64_t      n_before = 0;
  for (size_t i = 0; i < 2 * n_steps; i++) {
    size_t cls = MI_CLASS_WIDE + rng_below(&r, MI_CLASS_COUNT - MI_CLASS_WIDE), at = rng_below(&r, n_few);
    if (i == n_steps) n_before = n_pages_made();
    mi_free(blocks[at]);
    blocks[at] = mi_malloc(_mi_size_class_block(cls) - MI_PADDING_SIZE);
    if (is_written) memset(blocks[at], 1, _mi_size_class_block(cls) - MI_PADDING_SIZE);
  }
  int64_t n_made = n_pages_made() - n_before;
  CHECK_FOR((n_made > n_steps / 10) == is_written, "%lld pages in %d steps", (long long)n_made, (int)n_steps);
  for (size_t i = 0; i < n_few; i++) mi_free(blocks[i]);
  memset(blocks, 0, sizeof(blocks));
  mi_collect(true);
}

int main(void) {
  watchdog(120);
  if (MI_HARDENED || MI_TAGS) {
    test_skip("bins of wide classes", "blocks that are freed wait before they go to a bin or past it");
    return skip_code;
  }
  mi_option_set(mi_option_purge_delay, -1);
  check_peak();
  for (int i = 0; i < n_rounds; i++) {
    check_bounded(i > 2);
    check_few();
    check_run();
  }
  if (!MI_FILL && !MI_TRACK) { // nor tags, see above
    check_in_turn(false);
    check_in_turn(true);
  }
  return check_result();
}
