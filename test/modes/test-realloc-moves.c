// Proves: a block that grows byte by byte costs linear time in all, a large one grows without being copied, also if it is aligned, a block
// that is resized to and fro across a class boundary does not move each time, and a shrunk block's memory goes back.
#include "../check.h"
#include <mimalloc-stats.h>
#include <mimalloc.h>
#include "base/mode.h"
#include <sys/mman.h>
#include "support.h"

// CPU seconds to grow a block from `from` to `to` in steps; the best of five runs.
static double grow_seconds(size_t from, size_t to, size_t step) {
  double best = 1e9;
  for (int run = 0; run < 5; run++) {
    double   start = cpu_seconds();
    uint8_t* p = (uint8_t*)mi_malloc(from);
    for (size_t size = from; size < to && p != NULL; size += step) {
      p = (uint8_t*)mi_realloc(p, size + step);
      if (p == NULL) break;
      p[size] = (uint8_t)size;
    }
    CHECK(p != NULL);
    for (size_t size = from; p != NULL && size < to; size += step * 101) CHECK(p[size] == (uint8_t)size);
    mi_free(p);
    double seconds = cpu_seconds() - start;
    if (seconds < best) best = seconds;
  }
  return best;
}

// CPU seconds to touch so much memory for the first time.
static double touch_seconds(size_t size) {
  double start = cpu_seconds();
  char*  p = (char*)mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return 0;
  for (size_t i = 0; i < size; i += 4096) p[i] = 1;
  munmap(p, size);
  return cpu_seconds() - start;
}

// 64 times the steps: 64 times the time if it is linear, 4096 times if each step copies.  Small blocks live in memory that is
// there already; large ones, which go back at once, do not.
static void check_linear(size_t from, size_t to, size_t step) {
  double little = grow_seconds(from, to / 64, step), much = grow_seconds(from, to, step);
  double touch = touch_seconds(to);
  printf("growing by %zu to %zu: %.2f ms, to 64 times that: %.2f ms, touching it %.2f ms\n", step, to / 64,
         little * 1e3, much * 1e3, touch * 1e3);
  CHECK_FOR(much < 512 * little + 4 * touch + 0.005, "step %zu", step);
}

static void check_doubling(void) {
  size_t size = 64 * MiB;
  double best_copy = 1e9, best_grow = 1e9;
  for (int run = 0; run < 5; run++) {
    uint8_t* p = (uint8_t*)mi_malloc(size);
    uint8_t* q = (uint8_t*)mi_malloc(size);
    CHECK(p != NULL && q != NULL);
    if (p == NULL || q == NULL) return;
    memset(p, run + 1, size);
    double start = now_seconds();
    memcpy(q, p, size);
    double copy = now_seconds() - start;
    if (copy < best_copy) best_copy = copy;
    // What follows p is taken, so it cannot just be extended.
    void* barrier = mi_malloc(64 * KiB);
    start = now_seconds();
    p = (uint8_t*)mi_realloc(p, 2 * size);
    double grow = now_seconds() - start;
    if (grow < best_grow) best_grow = grow;
    CHECK(p != NULL && p[0] == run + 1 && p[size / 2] == run + 1 && p[size - 1] == run + 1);
    mi_free(p);
    mi_free(q);
    mi_free(barrier);
  }
  printf("64 to 128 MiB: %.2f ms, a copy takes %.2f ms\n", best_grow * 1e3, best_copy * 1e3);
  CHECK(best_grow < 0.005 || best_grow < best_copy / 4);
}

static int64_t n_large_made(void) {
  mi_stats_t_decl(stats);
  CHECK(mi_stats_get(&stats));
  return stats.malloc_huge_count.total;
}

// No block is made for one that the system resizes, whatever its alignment up to an OS page.
static void check_aligned(size_t align, size_t offset) {
  size_t   size = 40 * MiB;
  uint8_t* p = (uint8_t*)mi_malloc_aligned_at(size, align, offset);
  int64_t  n = n_large_made();
  p[0] = p[size - 1] = 0xAB;
  for (size_t i = 1; i <= 10 && p != NULL; i++) {
    p = (uint8_t*)mi_realloc_aligned_at(p, size + i * MiB, align, offset);
    CHECK_FOR(p != NULL && ((uintptr_t)p + offset) % align == 0, "%zu at %zu", align, offset);
  }
  CHECK(p != NULL && p[0] == 0xAB && p[size - 1] == 0xAB);
  CHECK_FOR(n_large_made() == n, "%zu at %zu: %lld copies", align, offset, (long long)(n_large_made() - n));
  mi_free(p);
}

// One step up, one step down, many times.
static void check_to_and_fro(void) {
  for (size_t size = 16; size <= 8 * MiB; size *= 2) {
    void*  p = mi_malloc(size);
    size_t n_moves = 0;
    double start = cpu_seconds();
    for (size_t i = 0; i < 10000; i++) {
      void* q = mi_realloc(p, size + 1);
      n_moves += q != p;
      p = q;
      q = mi_realloc(p, size);
      n_moves += q != p;
      p = q;
      CHECK(p != NULL);
    }
    double seconds = cpu_seconds() - start;
    CHECK_FOR(n_moves <= 4, "%zu moves around %zu bytes", n_moves, size);
    CHECK_FOR(seconds < 0.5, "%.3f s around %zu bytes", seconds, size);
    mi_free(p);
  }
}

// A block that grows in small steps is copied once for each quarter of its size, and has no more than that to spare.
static void check_small_steps(void) {
  size_t   n_moves = 0, size = 1000;
  uint8_t* p = (uint8_t*)mi_malloc(size);
  for (; size < 200 * KiB && p != NULL; size += size / 50) {
    uint8_t* q = (uint8_t*)mi_realloc(p, size + size / 50);
    n_moves += (q != p);
    p = q;
    CHECK_FOR(mi_usable_size(p) <= size * 8 / 5, "%zu of %zu bytes", mi_usable_size(p), size);
  }
  mi_free(p);
  printf("from 1000 bytes to 200 KiB by 2 %%: %zu moves\n", n_moves);
  if (!MI_PADDING && !MI_TRACK && MI_DEBUG == 0 && MI_API_LEVEL < 3) CHECK_FOR(n_moves < 26, "%zu moves", n_moves);
}

static void check_shrink(void) {
  size_t   before = rss_now(), size = 128 * MiB;
  uint8_t* p = (uint8_t*)mi_malloc(size);
  CHECK(p != NULL);
  if (p == NULL) return;
  memset(p, 0xAB, size);
  p = (uint8_t*)mi_realloc(p, 1 * MiB);
  CHECK(p != NULL && p[0] == 0xAB && p[MiB - 1] == 0xAB);
  mi_collect(true);
  CHECK(rss_within("after a shrink from 128 to 1 MiB", minus(rss_now(), before), 8 * MiB));
  mi_free(p);
}

// Contents through a long random walk of large sizes, several blocks side by side.
static void check_large_walk(uint64_t seed) {
  enum { n_blocks = 8 };
  uint8_t* blocks[n_blocks] = {NULL};
  size_t   sizes[n_blocks] = {0};
  rng_t    rng = rng_make(seed);
  size_t   max_size = (TEST_SANITIZED ? 2 : 12) * MiB;
  for (size_t step = 0; step < 400; step++) {
    size_t   i = rng_below(&rng, n_blocks), size = 1 + rng_below(&rng, max_size);
    uint8_t* p = (uint8_t*)mi_realloc(blocks[i], size);
    CHECK(p != NULL);
    if (p == NULL) break;
    size_t kept = size < sizes[i] ? size : sizes[i];
    // The pattern at the start of each 4 KiB is enough to see a lost or foreign OS page.
    for (size_t at = 0; at + 8 <= kept; at += 4096) {
      uint64_t want = pattern_word(i, at), have;
      memcpy(&have, p + at, 8);
      CHECK_FOR(have == want, "step %zu, block of %zu at %zu", step, size, at);
    }
    for (size_t at = 0; at + 8 <= size; at += 4096) {
      uint64_t want = pattern_word(i, at);
      memcpy(p + at, &want, 8);
    }
    blocks[i] = p;
    sizes[i] = size;
  }
  for (size_t i = 0; i < n_blocks; i++) mi_free(blocks[i]);
}

int main(int argc, char** argv) {
  uint64_t seed = test_seed(argc, argv);
  watchdog(120);
  size_t slow = TEST_SANITIZED ? 4 : 1;
  check_linear(0, 2 * MiB / slow, 1);
  // For tools, large blocks that outgrow their room are copied.
  if (!MI_TRACK) check_linear(512 * KiB, 64 * MiB / slow, 4096);
  // In hardened builds large blocks are guarded, and copied when they have no room.
  if (!TEST_SANITIZED && !MI_TRACK && !MI_HARDENED) check_doubling();
  if (!MI_TRACK && !MI_HARDENED) {
    check_aligned(16, 0);
    check_aligned(4096, 0);
    check_aligned(4096, 1000);
  }
  check_to_and_fro();
  check_small_steps();
  check_shrink();
  check_large_walk(seed);
  return check_result();
}
