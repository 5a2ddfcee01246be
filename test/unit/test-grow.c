// Proves: batches that are allocated and freed in turn find all their blocks in bins after a few times, so that no page is made;
// grown bins stay within the bounds of a theap and of the purge policy; they have the limit of their class again when other classes
// need memory, when a round finds them unused, and at the end of their thread.  What only grows, or only shrinks, grows no bin.
#include "../check.h"
#include "../modes/support.h"
#include "mimalloc.h"
#include "arena/chunk.h"
#include "arena/purge.h"
#include "heap/bin.h"
#include "heap/grow.h"
#include "heap/idle.h"
#include "heap/thread.h"
#include "support/stat.h"

#include <pthread.h>

enum { n_max = 20000, n_other = 12000 };

static void* blocks[n_max];

static size_t class_of(size_t size) {
  return _mi_size_class_of(size);
}

static void batch(size_t n, size_t size) {
  for (size_t i = 0; i < n; i++) blocks[i] = mi_malloc(size - MI_PADDING_SIZE);
  for (size_t i = 0; i < n; i++) mi_free(blocks[i]);
}

static size_t n_searches(void) {
  return mi_load_relaxed(&_mi_theap_default->counts[MI_COUNT_SEARCHES]);
}

static size_t n_kept(void) {
  return _mi_purge_n_backed() - _mi_chunk_purgeable();
}

// What the theap's bins count for is what it says, and within its bounds.
static void check_bounds(mi_theap_t* theap) {
  size_t n_slices = 0, n_alone = 0;
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    size_t n = mi_div_up(theap->classes[cls].n_grown * _mi_size_class_block(cls), MI_SLICE_SIZE);
    n_slices += n;
    if (_mi_grow_is_alone(cls)) n_alone += n;
    CHECK(_mi_grow_limit(theap, cls) <= _mi_grow_limit_max(cls));
    CHECK(theap->bins[cls].limit <= (int32_t)_mi_grow_limit(theap, cls));
  }
  CHECK_EQ(theap->grown.n_slices, n_slices);
  CHECK_EQ(theap->grown.n_alone, n_alone);
  CHECK(n_slices - n_alone <= MI_GROW_SLICES && n_alone <= MI_GROW_ALONE_SLICES);
}

static size_t grown(mi_theap_t* theap, size_t size) {
  return theap->classes[class_of(size)].n_grown;
}

// A round, of which there are ten in a second, may take a bin for unused in between, which has to grow again then.
enum { n_tries = 100, n_searches_per_second = 10 * 20 };

static void grow(size_t n, size_t size) {
  for (int i = 0; i < 20; i++) batch(n, size);
  for (int i = 0; i < n_tries && grown(_mi_theap_default, size) == 0; i++) batch(n, size);
  CHECK_FOR(grown(_mi_theap_default, size) > 0, "%zu of %zu bytes", n, size);
}

static void check_batches(size_t n, size_t size) {
  grow(n, size);
  size_t before = n_searches();
  double start = now_seconds();
  for (int i = 0; i < 1000; i++) batch(n, size);
  size_t n_found = n_searches() - before, n_may = 100 + (size_t)((now_seconds() - start) * n_searches_per_second);
  CHECK_FOR(n_found <= n_may, "%zu of %zu bytes: %zu searches, at most %zu", n, size, n_found, n_may);
  check_bounds(_mi_theap_default);
  CHECK(mi_heap_check(NULL));
  mi_collect(true);
  CHECK_EQ(_mi_theap_default->grown.n_slices, 0);
  CHECK_EQ(n_kept(), 0);
  check_bounds(_mi_theap_default);
}

// More than all bins may have: what there is in them stays within the bounds.
static void check_all_classes(void) {
  for (int i = 0; i < 8; i++) {
    for (size_t cls = 1; cls < MI_CLASS_COUNT; cls++) batch(40, _mi_size_class_block(cls));
    check_bounds(_mi_theap_default);
  }
  mi_collect(true);
  CHECK_EQ(n_kept(), 0);
}

// All are allocated, and then all are freed.
static void check_once(void) {
  batch(n_max, 1024);
  CHECK_EQ(grown(_mi_theap_default, 1024), 0);
  mi_collect(true);
}

// Pages of another class end it, and the blocks in the bin go to their pages: after ten looks, as all wide classes are used in turn.
static void check_other_class(size_t n, size_t size) {
  grow(n, size);
  for (size_t i = 0; i < n_other; i++) blocks[i] = mi_malloc(1024 - MI_PADDING_SIZE);
  CHECK_EQ(grown(_mi_theap_default, size), 0);
  CHECK(_mi_theap_default->bins[class_of(size)].head == NULL);
  check_bounds(_mi_theap_default);
  for (size_t i = 0; i < n_other; i++) mi_free(blocks[i]);
  mi_collect(true);
}

static mi_atomic(uint32_t)    step;
static mi_atomic(mi_theap_t*) sleeper;

static void* grow_and_sleep(void* arg) {
  (void)arg;
  grow(64, 8192);
  mi_store_relaxed(&sleeper, _mi_theap_default);
  mi_store_release(&step, 1u);
  while (mi_load_acquire(&step) == 1) sleep_ms(1);
  grow(64, 8192);
  check_bounds(_mi_theap_default);
  return NULL;
}

// Rounds take it from a thread that sleeps, which goes on as if nothing had been; nothing is kept when it has ended.
static void check_thread(bool sleeps) {
  pthread_t thread;
  bool      is_idle;
  pthread_create(&thread, NULL, &grow_and_sleep, NULL);
  while (mi_load_acquire(&step) == 0) sleep_ms(1);
  for (int i = 0; sleeps && i < 10; i++) {
    _mi_idle_round(&is_idle);
    sleep_ms(20);
  }
  mi_theap_t* theap = mi_load_relaxed(&sleeper);
  if (sleeps) CHECK_EQ(theap->grown.n_slices, 0);
  if (sleeps) CHECK_EQ(n_kept(), 0);
  mi_store_release(&step, 2u);
  pthread_join(thread, NULL);
  mi_store_release(&step, 0u);
  mi_collect(true); // it may have left its theap (warm.h), and empty pages
  CHECK_EQ(n_kept(), 0);
}

int main(void) {
  watchdog(120);
  if (MI_HARDENED || MI_TAGS) {
    test_skip("grown bins", "blocks that are freed wait before they go to a bin or past it");
    return skip_code;
  }
  mi_option_set(mi_option_purge_delay, -1);
  check_batches(256, 64);
  check_batches(256, 1024);
  check_batches(16, 16384);
  check_batches(16, 65536);
  check_batches(16, 262144);
  check_batches(16, MI_CLASS_SIZE_MAX); // more than 4 MiB: they have a page each
  check_all_classes();
  check_once();
  check_other_class(64, 8192);
  check_other_class(16, MI_CLASS_SIZE_MAX);
  check_thread(false);
  if (!MI_TSAN) check_thread(true);
  return check_result();
}
