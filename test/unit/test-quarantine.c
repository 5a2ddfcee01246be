// Proves: a freed block of up to 8 KiB takes one of 64 places of its thread and waits there, zero, for a time that is not foreseen;
// no other block waits, and none is left when the thread collects or ends; a write to one that waits is reported.
#include <errno.h>
#include <pthread.h>
#include "../check.h"
#include "../modes/support.h"
#include "heap/quarantine.h"
#include "heap/theap.h"
#include "mimalloc.h"
#include "page/page.h"
#include "support/stat.h"

static bool waits(const void* p) {
  for (size_t i = 0; i < MI_QUARANTINE_SIZE; i++) {
    if (_mi_theap_backing()->quarantine.blocks[i] == p) return true;
  }
  return false;
}

static size_t n_waiting(void) {
  size_t n = 0;
  for (size_t i = 0; i < MI_QUARANTINE_SIZE; i++) n += (_mi_theap_backing()->quarantine.blocks[i] != NULL);
  return n;
}

static int64_t page_count(void) {
  return mi_load_relaxed(&_mi_stat_live.pages.current);
}

static void* malloc_block(size_t block_size) {
  return mi_malloc(block_size - MI_PADDING_SIZE);
}

// How many frees later it goes on.
static size_t wait_of(size_t block_size) {
  char* p = (char*)malloc_block(block_size);
  memset(p, 1, block_size - MI_PADDING_SIZE);
  mi_free(p);
  CHECK(waits(p) && is_zero(p, 0, block_size - MI_PADDING_SIZE));
  for (size_t n = 1; n < 100 * MI_QUARANTINE_SIZE; n++) {
    void* q = malloc_block(block_size);
    CHECK(q != p);
    mi_free(q);
    if (!waits(p)) return n;
  }
  return SIZE_MAX;
}

static void check_wait(size_t block_size) {
  enum { n = 400 };
  size_t sum = 0, n_short = 0, n_long = 0;
  for (size_t i = 0; i < n; i++) {
    size_t wait = wait_of(block_size);
    CHECK(wait != SIZE_MAX);
    sum += wait;
    n_short += (wait <= MI_QUARANTINE_SIZE / 4);
    n_long += (wait > 2 * MI_QUARANTINE_SIZE);
  }
  // Of a geometric distribution: mean 64, 22% at most 16, 13% over 128.
  CHECK_FOR(sum > n * 45 && sum < n * 90, "%zu on average", sum / n);
  CHECK_FOR(n_short > n / 10 && n_short < n / 3, "%zu short ones", n_short);
  CHECK_FOR(n_long > n / 20 && n_long < n / 4, "%zu long ones", n_long);
}

// Which blocks wait, and what memory that is.
static void check_bound(rng_t* r) {
  mi_heap_t* heap = mi_heap_new();
  size_t     n_bytes = 0;
  for (int i = 0; i < 2000; i++) {
    size_t size = 1 + rng_below(r, 20 * KiB);
    bool   is_own = rng_below(r, 4) == 0;
    void*  p = is_own ? mi_heap_malloc(heap, size) : mi_malloc(size);
    size_t block_size = _mi_page_block_size(_mi_page_of(p));
    mi_free(p);
    CHECK_EQ(waits(p), !is_own && block_size <= MI_QUARANTINE_BLOCK_MAX);
  }
  for (size_t i = 0; i < MI_QUARANTINE_SIZE; i++) {
    void* p = _mi_theap_backing()->quarantine.blocks[i];
    if (p != NULL) n_bytes += _mi_page_block_size(_mi_page_of(p));
  }
  CHECK_FOR(n_bytes <= 512 * KiB && n_waiting() > MI_QUARANTINE_SIZE / 2, "%zu bytes", n_bytes);
  mi_heap_destroy(heap);
  mi_collect(true);
  CHECK_EQ(n_waiting(), 0);
  CHECK_EQ(page_count(), 0);
}

// Blocks of a heap that was deleted are of the main heap from then on, but their pages have the mark of a heap for as long as they
// live, and a check looks for none of those here.
static void check_deleted(void) {
  enum { n = 2000 };
  static void* blocks[n];
  mi_heap_t*   heap = mi_heap_new();
  size_t       n_adopted = 0;
  for (size_t i = 0; i < n; i++) blocks[i] = mi_heap_malloc(heap, 1000);
  mi_heap_delete(heap);
  for (size_t i = 0; i < n; i++) {
    if (i % 4 != 0) mi_free(blocks[i]);
  }
  mi_collect(true);
  for (size_t i = 0; i < n; i++) {
    if (i % 4 != 0) blocks[i] = mi_malloc(1000);
  }
  for (size_t i = 0; i < n; i++) {
    const mi_page_t* page = _mi_page_of(blocks[i]);
    bool             is_marked = _mi_page_has(page, MI_PAGE_IN_HEAP);
    n_adopted += (is_marked && mi_load_relaxed(&((mi_page_t*)page)->home) == _mi_theap_backing());
    mi_free(blocks[i]);
    CHECK_EQ(waits(blocks[i]), !is_marked);
  }
  CHECK_FOR(n_adopted > n / 4, "%zu", n_adopted);
  CHECK(mi_heap_check(NULL));
  mi_collect(true);
  CHECK_EQ(page_count(), 0);
}

static void* freed_by_other[100];

static void* free_and_end(void* arg) {
  for (size_t i = 0; i < COUNT_OF(freed_by_other); i++) {
    mi_free(freed_by_other[i]); // of another thread's page
    mi_free(mi_malloc(64));
  }
  CHECK(n_waiting() > 0 && n_waiting() <= MI_QUARANTINE_SIZE);
  void* p = mi_malloc(200); // those that have gone on are in their pages, not in a bin of this thread
  CHECK(mi_load_relaxed(&_mi_page_of(p)->home) == _mi_theap_backing());
  mi_free(p);
  return arg;
}

static void check_threads(void) {
  pthread_t thread;
  for (size_t i = 0; i < COUNT_OF(freed_by_other); i++) freed_by_other[i] = mi_malloc(200);
  pthread_create(&thread, NULL, &free_and_end, NULL);
  pthread_join(thread, NULL);
  CHECK_EQ(n_waiting(), 0);
  mi_collect(true);
  CHECK_EQ(page_count(), 0);
}

static int n_errors;

static void count_error(int code, void* arg) {
  (void)arg;
  n_errors += (code == EFAULT);
}

// At its start, which is seen when it goes on, and behind that, which is seen when it is used again.
static void check_written(size_t at) {
  enum { n = 1000 };
  static void* blocks[n];
  mi_register_error(&count_error, NULL);
  n_errors = 0;
  char* p = (char*)malloc_block(256);
  mi_free(p);
  CHECK(waits(p));
  p[at] = 1;
  while (waits(p)) mi_free(malloc_block(64));
  CHECK_EQ(n_errors, at < sizeof(mi_block_t));
  for (size_t i = 0; i < n; i++) blocks[i] = malloc_block(256);
  CHECK_EQ(n_errors, 1);
  for (size_t i = 0; i < n; i++) mi_free(blocks[i]);
  mi_collect(true);
  CHECK_EQ(n_errors, 1);
  mi_register_error(NULL, NULL);
}

int main(int argc, char** argv) {
  watchdog(60);
  if (!MI_HARDENED) {
    test_skip("the quarantine", "freed blocks do not wait in this build");
    return skip_code;
  }
  rng_t r = rng_make(test_seed(argc, argv));
  mi_option_set(mi_option_purge_delay, -1); // no thread of ours that takes back what is idle
  mi_free(mi_malloc(1));
  check_wait(32);
  check_wait(1024);
  check_bound(&r);
  check_deleted();
  check_threads();
  check_written(0);
  check_written(7);
  check_written(8);
  check_written(200);
  CHECK_EQ(page_count(), 0);
  return check_result();
}
