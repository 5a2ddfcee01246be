// Proves: blocks that a thread frees for another one may wait on their way back, but no more than 256 KiB of them, and not
// for long: whatever the thread does when it has freed them, two seconds later their pages have gone back.
#include "../check.h"
#include <mimalloc-stats.h>
#include <mimalloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "base/compiler.h"
#include "ballast.h"
#include "base/mode.h"
#include "support.h"

enum { n_max = 400000, n_pages_left = 10, wait_ms = 2000 };
#define TOTAL     (4 * MiB)
#define WAIT_MOST (256 * KiB)
#define SLACK     (96 * KiB) // what is in bins, and in pages that are nearly full

typedef enum after_e { AFTER_SLEEPS, AFTER_COMPUTES, AFTER_PAIRS, AFTER_OTHERS, AFTER_COUNT } after_t;
static const char* const after_names[AFTER_COUNT] = {"sleeps", "computes", "frees what it allocates",
                                                     "uses other sizes"};

static void*      blocks[n_max];
static uintptr_t  known[n_max]; // addresses, in order
static void*      kept[n_max];
static size_t     n_blocks, n_kept, block_size;
static atomic_int step; // 0: allocated; 1: free them; 2: they are free; 3: end

static int64_t page_count(void) {
  mi_stats_t_decl(stats);
  CHECK(mi_stats_get(&stats));
  return stats.pages.current;
}

static void allocate(void) {
  for (size_t i = 0; i < n_blocks; i++) blocks[i] = mi_malloc(block_size);
}

// One of 29 blocks that follow each other stays, so that each page has one.
static void keep_some(void) {
  size_t n = 0;
  n_kept = 0;
  for (size_t i = 0; i < n_blocks; i++) {
    if (i % 29 == 0) kept[n_kept++] = blocks[i];
    else blocks[n++] = blocks[i];
  }
  n_blocks = n;
}

static void shuffle(rng_t* rng) {
  for (size_t i = n_blocks; i-- > 1;) {
    size_t k = rng_below(rng, i + 1);
    void*  p = blocks[i];
    blocks[i] = blocks[k];
    blocks[k] = p;
  }
}

static void do_after(after_t after) {
  static atomic_size_t sink;
  void*                q[100];
  for (size_t n = 0; atomic_load(&step) == 2; n++) {
    if (after == AFTER_COMPUTES) atomic_fetch_xor(&sink, n);
    else if (after == AFTER_PAIRS) mi_free(mi_malloc(200));
    else if (after == AFTER_OTHERS) {
      for (size_t i = 0; i < 100; i++) q[i] = mi_malloc(1000 + i);
      for (size_t i = 0; i < 100; i++) mi_free(q[i]);
    }
    if (after == AFTER_SLEEPS || n % 100 == 0) sleep_ms(1);
  }
}

static void* free_all(void* arg) {
  mi_free(mi_malloc(200)); // a thread that has not allocated frees without waiting
  while (atomic_load(&step) < 1) sleep_ms(1);
  for (size_t i = 0; i < n_blocks; i++) mi_free(blocks[i]);
  atomic_store(&step, 2);
  do_after(*(after_t*)arg);
  return NULL;
}

static pthread_t let_free(after_t* after) {
  pthread_t thread;
  atomic_store(&step, 0);
  CHECK_EQ(pthread_create(&thread, NULL, &free_all, after), 0);
  atomic_store(&step, 1);
  while (atomic_load(&step) == 1) sched_yield();
  return thread;
}

static void let_end(pthread_t thread) {
  atomic_store(&step, 3);
  pthread_join(thread, NULL);
  for (size_t i = 0; i < n_blocks; i++) blocks[i] = NULL;
  mi_collect(true);
}

static int compare(const void* a, const void* b) {
  uintptr_t x = *(const uintptr_t*)a, y = *(const uintptr_t*)b;
  return x < y ? -1 : x > y;
}

// All of it is allocated again at once: what is new had to be waited for.  No round helps.  The blocks that stay keep the pages
// where they are.
static void check_amount(size_t size, bool in_order) {
  after_t after = AFTER_SLEEPS;
  rng_t   rng = rng_make(size);
  block_size = size;
  n_blocks = TOTAL / size;
  mi_option_set(mi_option_purge_delay, -1);
  allocate();
  for (size_t i = 0; i < n_blocks; i++) known[i] = (uintptr_t)blocks[i];
  qsort(known, n_blocks, sizeof(known[0]), &compare);
  size_t n_known = n_blocks;
  keep_some();
  if (!in_order) shuffle(&rng);
  pthread_t thread = let_free(&after);
  size_t    n_new = 0;
  for (size_t i = 0; i < n_blocks; i++) {
    uintptr_t p = (uintptr_t)(blocks[i] = mi_malloc(size));
    n_new += (bsearch(&p, known, n_known, sizeof(known[0]), &compare) == NULL);
  }
  printf("%zu bytes each, %s: %zu KiB wait\n", size, in_order ? "in order" : "at random", n_new * size / KiB);
  CHECK_FOR(n_new * size <= WAIT_MOST + SLACK, "%zu bytes, %zu blocks", size, n_new);
  for (size_t i = 0; i < n_blocks; i++) mi_free(blocks[i]);
  for (size_t i = 0; i < n_kept; i++) mi_free(kept[i]);
  let_end(thread);
}

static void check_time(size_t size, after_t after) {
  rng_t rng = rng_make(size);
  mi_option_set(mi_option_purge_delay, 10);
  block_size = size;
  n_blocks = TOTAL / size;
  int64_t before = page_count();
  allocate();
  CHECK(page_count() > before + 2 * n_pages_left);
  shuffle(&rng);
  pthread_t thread = let_free(&after);
  double    end = now_seconds() + (double)wait_ms * 1e-3 * (double)test_scale();
  while (page_count() > before + n_pages_left && now_seconds() < end) {
    sleep_ms(50);
    mi_free(mi_malloc(128 * KiB)); // whoever has freed them, this thread goes on
  }
  printf("%zu bytes each, and the thread %s: %lld pages are left\n", size, after_names[after],
         (long long)(page_count() - before));
  CHECK_FOR(page_count() <= before + n_pages_left, "%zu bytes, the thread %s: %lld pages", size, after_names[after],
            (long long)(page_count() - before));
  let_end(thread);
}

int main(void) {
  watchdog(120);
  if (MI_HARDENED) {
    test_skip("blocks on their way back", "freed blocks wait elsewhere first");
    return skip_code;
  }
  mi_option_set(mi_option_purge_delay, -1);
  mi_free(mi_malloc(1));
  const size_t sizes[] = {16, 64, 512, 2048};
  for (size_t i = 0; i < COUNT_OF(sizes); i++) {
    check_amount(sizes[i], true);
    check_amount(sizes[i], false);
  }
  if (TEST_ASAN) {
    test_skip("how long they wait",
              "the address sanitizer starts threads itself, so that there is no library's thread");
    return check_result();
  }
  if (!TEST_HAS_BACKGROUND) {
    test_skip("how long they wait", "the library has no thread of its own on this system");
    return check_result();
  }
  ballast_take();
  // Under ThreadSanitizer bins are not closed: a thread that takes nothing but fast paths does not come by.
  int n_after = (MI_TSAN ? AFTER_PAIRS : AFTER_COUNT);
  for (int after = 0; after < n_after; after++) {
    check_time(64, (after_t)after);
    check_time(1024, (after_t)after);
  }
  ballast_drop();
  return check_result();
}
