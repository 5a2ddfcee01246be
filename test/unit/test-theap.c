// Proves: a bin never holds more than it has room for or was filled with (H3), and what does not fit goes to the pages;
// a thread that only frees does not keep blocks in bins; what others free comes back to where it can be used again; full
// pages are parked while there is another thread; a thread that ends leaves nothing but what is live.
#include "../check.h"
#include "../modes/support.h"
#include "mimalloc.h"
#include "arena/window.h"
#include "heap/bin.h"
#include "heap/grow.h"
#include "heap/pool.h"
#include "heap/queue.h"
#include "heap/theap.h"
#include "heap/thread.h"
#include "heap/vacant.h"
#include "support/stat.h"

#include <pthread.h>

enum { n_blocks_max = 100000 };

static void* blocks[n_blocks_max]; // of whichever check is running

// One that takes so many bytes, padding included.
static void* malloc_block(size_t size) {
  return mi_malloc(size - MI_PADDING_SIZE);
}

static size_t in_bin(const mi_theap_t* theap, size_t cls) {
  size_t n = 0;
  for (const mi_block_t* b = theap->bins[cls].head; b != NULL && n <= n_blocks_max; b = _mi_page_next_block(b)) n++;
  return n;
}

// Blocks that wait to be used again, in hardened builds.
static size_t in_quarantine(const mi_theap_t* theap, size_t cls) {
  size_t n = 0;
  for (size_t i = 0; i < MI_QUARANTINE_SIZE; i++) {
    n += (theap->quarantine.blocks[i] != NULL && _mi_page_of(theap->quarantine.blocks[i])->cls == cls);
  }
  return n;
}

static size_t in_drain(const mi_theap_t* theap, size_t cls) {
  const mi_drain_t* drain = _mi_theap_drain(theap, cls);
  return drain->page != NULL && drain->page->cls == cls ? (size_t)(drain->book.total - drain->bin.slots) : 0;
}

// All that the thread holds and nobody has.
static size_t in_hand(const mi_theap_t* theap, size_t cls) {
  return in_bin(theap, cls) + in_drain(theap, cls) + in_quarantine(theap, cls);
}

static size_t in_bins(const mi_theap_t* theap) {
  size_t n = 0;
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) n += in_hand(theap, cls) - in_drain(theap, cls);
  return n;
}

enum { n_waiting = MI_HARDENED ? MI_QUARANTINE_SIZE : 0 };

static int64_t page_count(void) {
  return mi_load_relaxed(&_mi_stat_live.pages.current);
}

static int64_t pool_count(void) {
  return _mi_pool_count().current;
}

static mi_page_state_t state_of(const void* block) {
  return _mi_page_word_state(mi_load_relaxed(&_mi_page_of(block)->word));
}

// ---- bins -----------------------------------------------------------------------------------------------------------

static size_t bin_limit[MI_CLASS_COUNT]; // what each bin was last allowed to hold

// H3 after a malloc or free; `refilled`: the bin was empty, and a block was asked of it.
static void check_bin(const mi_theap_t* theap, size_t cls, bool refilled) {
  const mi_bin_t* bin = &theap->bins[cls];
  size_t          n = in_bin(theap, cls);
  CHECK_FOR(bin->slots >= 0, "class %zu: left %d", cls, bin->slots);
  CHECK_FOR(bin->limit >= 0 && bin->limit <= (int32_t)_mi_grow_limit_max(cls), "class %zu: room %d", cls, bin->limit);
  size_t limit = n + (size_t)bin->slots;
  size_t room = (size_t)bin->limit;
  if (refilled) bin_limit[cls] = (n + 1 > room ? n + 1 : room);
  else if (limit == room) bin_limit[cls] = room; // it was emptied meanwhile
  CHECK_FOR(limit == bin_limit[cls], "class %zu: %zu in the bin, left %d, room %d, limit %zu", cls, n, bin->slots,
            bin->limit, bin_limit[cls]);
  for (const mi_block_t* b = bin->head; b != NULL; b = _mi_page_next_block(b)) {
    const mi_page_t* page = _mi_page_of(b);
    CHECK(page != NULL && page->cls == cls && mi_load_relaxed(&((mi_page_t*)page)->home) == theap);
  }
}

// The pages of a class: in which list they are (H4), and how many of their blocks are in use.
static size_t used_in_list(mi_theap_t* theap, const mi_page_list_t* list, bool full) {
  size_t used = 0, n = 0;
  for (mi_page_t* page = list->first; page != NULL; page = page->next, n++) {
    CHECK(_mi_queue_owns(theap, page));
    CHECK_EQ(_mi_page_has(page, MI_PAGE_IS_FULL), full);
    CHECK(_mi_page_is_valid(page));
    CHECK(page->next != NULL ? page->next->prev == page : list->last == page);
    used += _mi_page_used(page);
  }
  CHECK_EQ(list->count, n);
  return used;
}

static size_t used_in_pages(mi_theap_t* theap, size_t cls) {
  return used_in_list(theap, &theap->classes[cls].queue, false) + used_in_list(theap, &theap->classes[cls].full, true);
}

static void check_bins_random(rng_t* r) {
  static size_t n_live_of[MI_CLASS_COUNT];
  mi_theap_t*   theap = _mi_theap_default;
  size_t        n_live = 0;
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++)
    bin_limit[cls] = in_bin(theap, cls) + (size_t)theap->bins[cls].slots;
  for (size_t i = 0; i < 20000 * test_scale(); i++) {
    bool grow = (i / 2000 % 2 == 0);
    if (n_live < 4000 && rng_below(r, 10) < (grow ? 7u : 3u)) {
      size_t size = rng_below(r, 2) == 0 ? 64 : _mi_size_class_block(MI_PADDING + rng_below(r, 60 - MI_PADDING));
      size_t cls = _mi_size_class_of(size);
      bool   refilled = (theap->bins[cls].head == NULL);
      blocks[n_live++] = malloc_block(size);
      n_live_of[cls]++;
      check_bin(theap, cls, refilled);
    }
    else if (n_live > 0) {
      size_t at = rng_below(r, n_live);
      size_t cls = _mi_page_of(blocks[at])->cls;
      mi_free(blocks[at]);
      blocks[at] = blocks[--n_live];
      n_live_of[cls]--;
      check_bin(theap, cls, false);
    }
    if (i % 500 != 0) continue;
    for (size_t cls = 0; cls < 60; cls++) CHECK_EQ(used_in_pages(theap, cls), n_live_of[cls] + in_hand(theap, cls));
  }
  while (n_live > 0) mi_free(blocks[--n_live]);
  memset(n_live_of, 0, sizeof(n_live_of));
}

// All but what fits the bin is in its page again, and pages that are empty are gone but for one.
static void check_overflow(void) {
  enum { n = 20000 };
  mi_theap_t* theap = _mi_theap_default;
  size_t      cls = _mi_size_class_of(64);
  int64_t     before = page_count();
  for (size_t i = 0; i < n; i++) blocks[i] = malloc_block(64);
  CHECK_EQ(used_in_pages(theap, cls), n + in_hand(theap, cls));
  CHECK(page_count() - before >= n / _mi_size_class_info[cls].capacity);
  for (size_t i = 0; i < n; i++) mi_free(blocks[i]);
  CHECK_EQ(used_in_pages(theap, cls), in_hand(theap, cls));
  CHECK_FOR(in_bin(theap, cls) <= _mi_size_class_info[cls].bin_limit, "%zu in the bin", in_bin(theap, cls));
  // Those in the bin are the first that were freed, of one page or two.
  CHECK_FOR(page_count() - before <= 3, "%lld pages", (long long)(page_count() - before));
  mi_collect(true);
  CHECK_EQ(in_bins(theap), 0);
  CHECK_EQ(page_count(), 0);
}

// ---- bins of a thread that only frees ---------------------------------------------------------------------------------

enum { n_freeers = 2, n_each = 30000 };

static pthread_barrier_t barrier;

static void* free_all(void* arg) {
  size_t index = (size_t)(uintptr_t)arg;
  rng_t  r = rng_make(index + 100);
  void** mine = blocks + index * n_each;
  for (size_t i = 0; i < n_each; i++) mine[i] = mi_malloc(rng_size(&r, 2 * KiB));
  pthread_barrier_wait(&barrier);
  if (index == 0) {
    for (size_t i = n_freeers * n_each; i-- > 1;) {
      size_t k = rng_below(&r, i + 1);
      void*  p = blocks[i];
      blocks[i] = blocks[k];
      blocks[k] = p;
    }
  }
  pthread_barrier_wait(&barrier);
  for (size_t i = 0; i < n_each; i++) mi_free(mine[i]); // half of them the other's
  size_t n = in_bins(_mi_theap_default);
  CHECK_FOR(n <= 32 + n_waiting, "%zu blocks rest in bins", n);
  pthread_barrier_wait(&barrier);
  return NULL;
}

static void run_threads(size_t n, void* (*body)(void*)) {
  pthread_t threads[8];
  for (size_t i = 0; i < n; i++) pthread_create(&threads[i], NULL, body, (void*)(uintptr_t)i);
  for (size_t i = 0; i < n; i++) pthread_join(threads[i], NULL);
}

static void check_unused_bins(void) {
  pthread_barrier_init(&barrier, NULL, n_freeers);
  run_threads(n_freeers, &free_all);
  pthread_barrier_destroy(&barrier);
  mi_collect(true);
  CHECK_EQ(page_count(), 0);
}

// ---- parking, and frees of others -----------------------------------------------------------------------------------

enum { n_pages = 20, n_pinned = 4, block_size = 64 };

static size_t n_per_page, n_total;

static size_t parked_count(void) {
  size_t n = 0;
  for (size_t i = 0; i < n_total; i += n_per_page) n += (state_of(blocks[i]) == MI_PAGE_PARKED);
  return n;
}

// Page by page: a fresh page is handed out whole before the next one.
static void fill_pages(void) {
  for (size_t i = 0; i < n_total; i++) blocks[i] = malloc_block(block_size);
}

static void check_alone(void) {
  size_t cls = _mi_size_class_of(block_size);
  void*  p = malloc_block(block_size);
  n_per_page = _mi_page_of(p)->capacity; // that of the class, or what a gap has left of it
  mi_free(p);
  mi_collect(true);
  n_total = n_pages * n_per_page;
  CHECK_EQ(mi_load_relaxed(&_mi_registry_n_threads), 1);
  fill_pages();
  CHECK_EQ(page_count(), n_pages);
  CHECK_EQ(parked_count(), 0);
  CHECK(_mi_theap_default->classes[cls].full.count >= n_pages - 1); // the last one was not asked for more yet
  for (size_t i = 0; i < n_total; i++) mi_free(blocks[i]);
  mi_collect(true);
  CHECK_EQ(page_count(), 0);
}

static size_t step; // every so many blocks are freed

static void* free_every(void* arg) {
  (void)arg;
  for (size_t i = 0; i < n_total; i += step) mi_free(blocks[i]);
  return NULL;
}

static int compare_pointers(const void* a, const void* b) {
  uintptr_t x = (uintptr_t)*(void* const*)a, y = (uintptr_t)*(void* const*)b;
  return x < y ? -1 : x > y;
}

static void* wait_twice(void* arg) {
  (void)arg;
  mi_free(mi_malloc(1));
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  return NULL;
}

// Half the blocks of each page, freed by another thread: they are what the next mallocs get.
static void check_remote(void) {
  static void* freed[n_blocks_max];
  size_t       n_freed = 0, n_again = 0;
  pthread_t    other;
  pthread_barrier_init(&barrier, NULL, 2);
  pthread_create(&other, NULL, &wait_twice, NULL);
  pthread_barrier_wait(&barrier); // from here on there are two threads
  int64_t others = page_count();
  fill_pages();
  size_t n_full = _mi_theap_default->classes[_mi_size_class_of(block_size)].full.count;
  CHECK_FOR(n_full == 0, "%zu full pages are kept", n_full);
  CHECK(parked_count() >= n_pages - 1); // the last one was not asked for more yet
  step = 2;
  for (size_t i = 0; i < n_total; i += step) freed[n_freed++] = blocks[i];
  qsort(freed, n_freed, sizeof(freed[0]), &compare_pointers);
  int64_t shared = pool_count();
  run_threads(1, &free_every);
  CHECK_FOR(pool_count() - shared >= n_pages - 1, "%lld pages are shared", (long long)pool_count());
  int64_t before = page_count();
  for (size_t i = 0; i < n_total; i += step) {
    blocks[i] = malloc_block(block_size);
    n_again += bsearch(&blocks[i], freed, n_freed, sizeof(freed[0]), &compare_pointers) != NULL;
  }
  // Half a page may be in the bin.
  CHECK_FOR(n_again >= n_freed - n_per_page / 2, "%zu of %zu came back", n_again, n_freed);
  CHECK_FOR(page_count() <= before + 1, "%lld pages more", (long long)(page_count() - before));
  // All of them: what was parked is given back by the push that empties it.
  step = 1;
  before = page_count();
  run_threads(1, &free_every);
  CHECK_FOR(page_count() - others <= 1, "%lld pages", (long long)(page_count() - others));
  mi_collect(true);
  CHECK_EQ(page_count(), others);
  pthread_barrier_wait(&barrier);
  pthread_join(other, NULL);
  pthread_barrier_destroy(&barrier);
  CHECK_EQ(page_count(), 0);
}

static void* free_rest(void* arg) {
  (void)arg;
  for (size_t i = n_pinned * n_per_page; i < n_total; i++) mi_free(blocks[i]);
  return NULL;
}

// A thread that is alone when it allocates keeps all its full pages.  Those that another thread has freed are used again
// although the first ones are not.
static void check_refreed(void) {
  int64_t most = 0;
  n_total = n_pages * n_per_page;
  fill_pages();
  for (int round = 0; round < 10; round++) {
    run_threads(1, &free_rest);
    for (size_t i = n_pinned * n_per_page; i < n_total; i++) blocks[i] = malloc_block(block_size);
    if (page_count() > most) most = page_count();
  }
  CHECK_FOR(most <= n_pages + n_pages / 2, "%lld pages for %d", (long long)most, n_pages);
  for (size_t i = 0; i < n_total; i++) mi_free(blocks[i]);
  mi_collect(true);
  CHECK_EQ(page_count(), 0);
}

// Frees of a page that its owner keeps (OWNED) wait on its word, and the owner's next look finds them.
static void check_remote_owned(void) {
  n_total = n_per_page;
  fill_pages();
  CHECK_EQ(state_of(blocks[0]), MI_PAGE_OWNED);
  mi_page_t* page = _mi_page_of(blocks[0]);
  uintptr_t  bits = (uintptr_t)page;
  step = 1;
  run_threads(1, &free_every);
  CHECK_EQ(_mi_page_word_chain(mi_load_relaxed(&page->word)).count, n_total);
  for (size_t i = 0; i < n_total; i++) {
    blocks[i] = malloc_block(block_size);
    CHECK_FOR((uintptr_t)_mi_page_of(blocks[i]) == bits, "block %zu", i);
  }
  for (size_t i = 0; i < n_total; i++) mi_free(blocks[i]);
  mi_collect(true);
  CHECK_EQ(page_count(), 0);
}

// A thread that uses few blocks does not get many, however many its page has free.
static void* check_first_fill(void* arg) {
  (void)arg;
  void*  p = malloc_block(16);
  size_t n = in_bin(_mi_theap_default, _mi_size_class_of(16));
  CHECK_FOR(n < 8, "%zu blocks in the bin after the first malloc", n);
  mi_free(p);
  return NULL;
}

// ---- thread exit ----------------------------------------------------------------------------------------------------

static void* leave_some(void* arg) {
  rng_t  r = rng_make(7);
  size_t n_kept = (size_t)(uintptr_t)arg * 5000;
  for (size_t i = 0; i < 20000; i++) blocks[i] = mi_malloc(rng_size(&r, 64 * KiB) / 4 + 1);
  for (size_t i = n_kept; i < 20000; i++) mi_free(blocks[i]);
  return NULL;
}

static void count_theap(mi_theap_t* theap, void* arg) {
  (void)theap;
  ++*(size_t*)arg;
}

static size_t theap_count(void) {
  size_t n = 0;
  _mi_registry_visit(&count_theap, &n);
  return n;
}

static void run_leave_some(size_t arg) {
  pthread_t thread;
  pthread_create(&thread, NULL, &leave_some, (void*)(uintptr_t)arg);
  pthread_join(thread, NULL);
}

static void* find_theap(void* arg) {
  mi_free(mi_malloc(1));
  *(mi_theap_t**)arg = _mi_theap_backing();
  return NULL;
}

// The theap of a thread is used again, but not before those of some others that ended later.
static void check_rest(void) {
  enum { n_threads = 4 * MI_VACANT_REST };
  static mi_theap_t* theaps[n_threads];
  size_t             n_theaps = 0;
  for (size_t i = 0; i < n_threads; i++) {
    pthread_t thread;
    pthread_create(&thread, NULL, &find_theap, &theaps[i]);
    pthread_join(thread, NULL);
    CHECK(theaps[i] != NULL);
    for (size_t k = 1; k <= i && k < MI_VACANT_REST; k++)
      CHECK_FOR(theaps[i] != theaps[i - k], "%zu and %zu", i, i - k);
    if (i == MI_VACANT_REST) n_theaps = theap_count();
  }
  CHECK_EQ(theap_count(), n_theaps);
}

static void check_exit(void) {
  size_t  n_theaps = theap_count();
  int64_t n_threads = mi_load_relaxed(&_mi_stat_live.threads.current);
  for (int i = 0; i < 3; i++) {
    run_leave_some(0);
    CHECK_EQ(page_count(), 0);
    CHECK_EQ(pool_count(), 0);
  }
  CHECK_EQ(mi_load_relaxed(&_mi_stat_live.threads.current), n_threads);
  CHECK_EQ(mi_load_relaxed(&_mi_registry_n_threads), n_threads);
  CHECK(theap_count() <= n_theaps + MI_VACANT_REST); // used again, not made anew
  // What is live stays, in pages that are nobody's; whoever frees it last gives them back.
  run_leave_some(1);
  CHECK(page_count() > 0);
  for (size_t i = 0; i < 5000; i++)
    CHECK(state_of(blocks[i]) == MI_PAGE_SHARED || state_of(blocks[i]) == MI_PAGE_PARKED);
  for (size_t i = 0; i < 5000; i++) mi_free(blocks[i]);
  mi_collect(true);
  CHECK_EQ(page_count(), 0);
  CHECK_EQ(pool_count(), 0);
}

int main(int argc, char** argv) {
  watchdog(60);
  rng_t r = rng_make(test_seed(argc, argv));
  mi_option_set(mi_option_purge_delay, -1); // no thread of ours that takes back what is idle
  mi_free(mi_malloc(1));
  if (!MI_PRIM_VIRTUAL) _mi_window_open(); // pages are made here without a request for a block
  check_bins_random(&r);
  mi_collect(true);
  check_overflow();
  check_alone();
  check_unused_bins();
  check_remote();
  check_refreed();
  check_remote_owned();
  run_threads(1, &check_first_fill);
  check_rest();
  check_exit();
  return check_result();
}
