// Proves: the frees of a tear-down go to drains, in which no block of another page is, and of which no more than their maximum wait;
// all of them come home, whoever wants them: the page that becomes empty, malloc, the trimming of bins, the end of the thread, a
// round while the thread sleeps, the profile.  Frees between mallocs do not go to drains.  What is wrong with a drain is found.
#include "../check.h"
#include "../modes/support.h"
#include "mimalloc.h"
#include "heap/bin.h"
#include "heap/drain.h"
#include "heap/idle.h"
#include "heap/thread.h"
#include "mimalloc-profile.h"
#include "support/stat.h"

#include <pthread.h>

enum { n_max = 60000 };

static void* blocks[n_max];

static void* malloc_block(size_t size) {
  return mi_malloc(size - MI_PADDING_SIZE);
}

static int64_t page_count(void) {
  return mi_load_relaxed(&_mi_stat_live.pages.current);
}

// How many blocks wait in drains; and whether each is where it belongs.
static size_t in_drains(mi_theap_t* theap) {
  size_t n = 0;
  for (size_t i = 0; i < MI_DRAINS; i++) {
    const mi_drain_t* drain = &theap->drains[i];
    size_t            n_here = 0;
    for (const mi_block_t* b = drain->bin.head; b != NULL; b = _mi_page_next_block(b), n_here++) {
      CHECK(_mi_page_of(b) == drain->page);
    }
    CHECK(n_here <= MI_DRAIN_MAX);
    if (!_mi_bin_are_closed(theap)) CHECK_EQ(drain->book.total - drain->bin.slots, n_here);
    if (drain->page != NULL) CHECK(_mi_queue_owns(theap, drain->page));
    n += n_here;
  }
  return n;
}

// Each page that names a drain is the one that the drain has.
static void check_names(mi_theap_t* theap, const mi_page_list_t* list) {
  for (mi_page_t* page = list->first; page != NULL; page = page->next) {
    size_t            offset = mi_load_relaxed(&page->bin_offset);
    const mi_drain_t* drain = _mi_theap_drain(theap, page->cls);
    bool              is_drained = (offset == (size_t)((const char*)&drain->bin - (const char*)theap));
    CHECK(is_drained || offset == ((size_t)page->cls << MI_BIN_SHIFT) + theap->return_offset);
    CHECK_EQ(is_drained, drain->page == page);
  }
}

static void check_all_names(mi_theap_t* theap) {
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    check_names(theap, &theap->classes[cls].queue);
    check_names(theap, &theap->classes[cls].full);
  }
}

static void fill(size_t n, size_t size, size_t other_size) {
  for (size_t i = 0; i < n; i++) blocks[i] = malloc_block(i % 2 == 0 ? size : other_size);
}

static void shuffle(size_t n) {
  rng_t r = rng_make(n);
  for (size_t i = n; i-- > 1;) {
    size_t k = rng_below(&r, i + 1);
    void*  p = blocks[i];
    blocks[i] = blocks[k];
    blocks[k] = p;
  }
}

// Frees [first, end).  How many of them went to a drain.
static size_t free_range(size_t first, size_t end) {
  mi_theap_t* theap = _mi_theap_default;
  size_t      n_drained = 0;
  for (size_t i = first; i < end; i++) {
    mi_page_t* page = _mi_page_of(blocks[i]);
    n_drained += (mi_load_relaxed(&page->bin_offset) >= MI_DRAINS_OFFSET);
    mi_free(blocks[i]);
    if (i % 97 == 0) {
      in_drains(theap);
      check_all_names(theap);
    }
  }
  return n_drained;
}

// ---- when blocks go there ---------------------------------------------------------------------------------------------

// A tear-down in order of addresses goes to drains nearly as a whole, and leaves what a bin holds.
static void check_tear_down(size_t size, size_t other_size, size_t n) {
  mi_collect(true);
  fill(n, size, other_size);
  size_t n_drained = free_range(0, n);
  CHECK_FOR(n_drained > n * 3 / 4, "%zu of %zu", n_drained, n);
  CHECK_FOR(page_count() <= 6, "%lld pages", (long long)page_count());
  mi_collect(true);
  CHECK_EQ(in_drains(_mi_theap_default), 0);
  CHECK_EQ(page_count(), 0);
}

// The last blocks of a page, and those of other pages, in any order.
static void check_random_order(size_t size, size_t n) {
  fill(n, size, size);
  shuffle(n);
  free_range(0, n);
  mi_collect(true);
  CHECK_EQ(page_count(), 0);
}

// A bin that is used is not passed over.
static void check_steady(void) {
  enum { n = 100 }; // more than the bin's limit
  size_t n_drained = 0;
  fill(5000, 32, 32);
  for (int round = 0; round < 1000; round++) {
    for (size_t i = 5000; i < 5000 + n; i++) blocks[i] = malloc_block(32);
    n_drained += free_range(5000, 5000 + n);
  }
  CHECK_FOR(n_drained <= 1000 * n / 20, "%zu", n_drained);
  free_range(0, 5000);
  mi_collect(true);
  CHECK_EQ(page_count(), 0);
}

static void ignore_error(int err, void* arg) {
  (void)err;
  (void)arg;
}

// ---- how they come home -----------------------------------------------------------------------------------------------

// Leaves some blocks in a drain: how many blocks of `blocks` are freed then.
static size_t free_until_drained(size_t n) {
  size_t i = 0;
  while (i < n && in_drains(_mi_theap_default) < 20) mi_free(blocks[i++]);
  CHECK_FOR(i < n, "%zu", i);
  return i;
}

// All blocks that are freed can be had again, after those that the bin has: no page is made.
static void check_malloc(void) {
  fill(20000, 64, 64);
  size_t  n_freed = free_until_drained(20000), n = 20000;
  int64_t n_pages = page_count();
  for (size_t i = 0; i < n_freed; i++) blocks[i] = malloc_block(64);
  while (in_drains(_mi_theap_default) > 0 && n < 22000) blocks[n++] = malloc_block(64);
  CHECK_EQ(page_count(), n_pages);
  CHECK_EQ(in_drains(_mi_theap_default), 0);
  free_range(0, n);
  mi_collect(true);
  CHECK_EQ(page_count(), 0);
}

// mi_heap_check finds what is wrong with a drain, and nothing else.
static void check_checks(void) {
  mi_drain_t* drain = _mi_theap_drain(_mi_theap_default, _mi_size_class_of(64));
  mi_page_t*  page;
  fill(20000, 64, 64);
  size_t n = free_until_drained(20000);
  CHECK(mi_heap_check(NULL));
  mi_register_error(&ignore_error, NULL);
  drain->bin.slots--;
  CHECK(!mi_heap_check(NULL));
  drain->bin.slots++;
  page = drain->page;
  drain->page = _mi_page_of(blocks[19999]);
  CHECK(!mi_heap_check(NULL));
  drain->page = page;
  CHECK(mi_heap_check(NULL));
  // What a round has closed counts otherwise until its thread comes by, which is no damage.
  _mi_bin_close_all(_mi_theap_default);
  CHECK(mi_heap_check(NULL));
  _mi_bin_settle_all(_mi_theap_default);
  CHECK(mi_heap_check(NULL) && in_drains(_mi_theap_default) > 0);
  mi_register_error(NULL, NULL);
  free_range(n, 20000);
  mi_collect(true);
}

// Frees of another class bring them home.
static void check_trimming(void) {
  fill(20000, 64, 64);
  size_t n = free_until_drained(20000);
  for (size_t i = 30000; i < n_max; i++) blocks[i] = malloc_block(112);
  for (size_t i = 30000; i < n_max; i++) mi_free(blocks[i]);
  CHECK(_mi_theap_drain(_mi_theap_default, _mi_size_class_of(64))->page == NULL);
  free_range(n, 20000);
  mi_collect(true);
  CHECK_EQ(page_count(), 0);
}

static void* end_with_some(void* arg) {
  fill(20000, 64, 48);
  *(size_t*)arg = free_until_drained(20000);
  return NULL;
}

static void check_thread_end(void) {
  size_t    n = 0;
  pthread_t thread;
  pthread_create(&thread, NULL, &end_with_some, &n);
  pthread_join(thread, NULL);
  for (; n < 20000; n++) mi_free(blocks[n]);
  mi_collect(true);
  CHECK_EQ(page_count(), 0);
}

static mi_atomic(uint32_t)    step;
static mi_atomic(mi_theap_t*) sleeper;

static void* sleep_with_some(void* arg) {
  (void)arg;
  fill(20000, 64, 64);
  size_t n = free_until_drained(20000);
  mi_store_relaxed(&sleeper, _mi_theap_default);
  mi_store_release(&step, 1u);
  while (mi_load_acquire(&step) == 1) sleep_ms(1);
  free_range(n, 20000);
  return NULL;
}

// Rounds take what a sleeping thread has there, and it goes on as if nothing had been.
static void check_rounds(void) {
  pthread_t thread;
  bool      is_idle;
  if (MI_TSAN) return;
  pthread_create(&thread, NULL, &sleep_with_some, NULL);
  while (mi_load_acquire(&step) == 0) sleep_ms(1);
  for (int i = 0; i < 10; i++) {
    _mi_idle_round(&is_idle);
    sleep_ms(20);
  }
  CHECK_EQ(in_drains(mi_load_relaxed(&sleeper)), 0);
  mi_store_release(&step, 2u);
  pthread_join(thread, NULL);
  mi_store_release(&step, 0u);
  mi_collect(true);
  CHECK_EQ(page_count(), 0);
}

static void* tear_down_often(void* arg) {
  enum { n = 4000 };
  rng_t  r = rng_make((uintptr_t)arg);
  void** mine = blocks + (uintptr_t)arg * n;
  for (size_t round = 0; round < 60 * test_scale(); round++) {
    size_t size = 16 * (1 + rng_below(&r, 12));
    for (size_t i = 0; i < n; i++) {
      mine[i] = malloc_block(size + 16);
      memset(mine[i], (int)i, size - MI_PADDING_SIZE);
    }
    for (size_t i = 0; i < n; i++) {
      CHECK(*(unsigned char*)mine[i] == (unsigned char)i);
      mi_free(mine[i]);
      if (rng_below(&r, 1000) == 0) sleep_ms(1);
    }
  }
  mi_fetch_add_relaxed(&step, 1);
  return NULL;
}

// The same at any moment, in the middle of a free as well.
static void check_rounds_at_random(void) {
  enum { n_threads = 3 };
  pthread_t threads[n_threads];
  bool      is_idle;
  for (size_t i = 0; i < n_threads; i++) pthread_create(&threads[i], NULL, &tear_down_often, (void*)(uintptr_t)i);
  while (mi_load_acquire(&step) < n_threads) {
    if (!MI_TSAN) _mi_idle_round(&is_idle);
    sleep_ms(1);
  }
  for (size_t i = 0; i < n_threads; i++) pthread_join(threads[i], NULL);
  mi_store_release(&step, 0u);
  mi_collect(true);
  CHECK_EQ(page_count(), 0);
}

// Theaps whose allocations are counted have none.
static void check_profile(void) {
  if (MI_TRACK || mi_profile_start(512 * KiB) != 0) return;
  fill(20000, 64, 64);
  CHECK_EQ(free_range(0, 10000), 0);
  mi_profile_stop();
  fill(10000, 64, 64);
  size_t n = free_until_drained(20000);
  CHECK_EQ(mi_profile_start(512 * KiB), 0);
  void* p = NULL;
  for (int i = 0; i < 1000; i++) { // until a slow path has seen it
    void** q = (void**)malloc_block(64);
    *q = p;
    p = (void*)q;
  }
  CHECK_EQ(in_drains(_mi_theap_default), 0);
  for (void* next; p != NULL; p = next) {
    next = *(void**)p;
    mi_free(p);
  }
  free_range(n, 20000);
  mi_profile_stop();
  mi_collect(true);
}

int main(void) {
  watchdog(120);
  if (MI_HARDENED || MI_TAGS) {
    test_skip("drains", "blocks that are freed wait before they go to a bin or past it");
    return skip_code;
  }
  mi_option_set(mi_option_purge_delay, -1);
  check_tear_down(32, 32, 20000);
  check_tear_down(64, 48, 20000);
  check_tear_down(64, 224, 20000); // classes that share a drain, perhaps
  check_tear_down(1024, 1024, 5000);
  for (size_t size = 16; size <= 2048; size *= 2) check_random_order(size, 20000);
  check_steady();
  check_malloc();
  check_checks();
  check_trimming();
  check_thread_end();
  check_rounds();
  check_rounds_at_random();
  check_profile();
  return check_result();
}
