// Proves: a pool has the SHARED pages of its heap and class, each once (S1); who needs a page takes one from there before a new one
// is made, so that what ended threads leave is bounded by what is live; threads that have enough pages of their own take few from
// others; a page that is free again leaves the pool; what a fork forgets leaves its list, and a theap made in a fork shares where that
// holds the lock; gap pages come in order; the pool of a heap that ends is handed over or emptied.
#include <pthread.h>
#include <sched.h>
#include "../check.h"
#include "../modes/support.h"
#include "heap/fork.h"
#include "heap/heap_stats.h"
#include "heap/pool.h"
#include "heap/thread.h"
#include "mimalloc.h"
#include "support/stat.h"

enum { n_blocks_max = 40000 };

static void*      blocks[n_blocks_max]; // NULL: free
static size_t     n_blocks, block_size, keep_every;
static mi_heap_t* heap; // NULL: the default one

static int64_t page_count(void) {
  return mi_load_relaxed(&_mi_stat_live.pages.current);
}

static void* malloc_block(size_t size) {
  return heap != NULL ? mi_heap_malloc(heap, size - MI_PADDING_SIZE) : mi_malloc(size - MI_PADDING_SIZE);
}

// S1, of all classes of a heap that nobody uses meanwhile; returns how many pages there are.
static size_t check_pool(mi_heap_t* of, mi_pool_t* pool) {
  size_t n = 0;
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    const mi_page_t* before = NULL;
    for (mi_page_t* page = mi_load_relaxed(&pool->first[cls]); page != NULL; page = page->next, n++) {
      CHECK_EQ(_mi_page_word_state(mi_load_relaxed(&page->word)), MI_PAGE_SHARED);
      CHECK(page->cls == cls && page->prev == before && page->pool == pool && _mi_heap_of(page) == of);
      size_t n_free = _mi_page_word_chain(mi_load_relaxed(&page->word)).count;
      CHECK_FOR(n_free > 0 && n_free < page->capacity, "%zu of %d", n_free, page->capacity);
      before = page;
      if (n > n_blocks_max) return n;
    }
  }
  return n;
}

static size_t check_pools(mi_heap_t* of) {
  size_t     n_pools, n = 0;
  mi_pool_t* pools = _mi_pool_all(of, &n_pools);
  for (size_t i = 0; i < n_pools; i++) n += check_pool(of, &pools[i]);
  return n;
}

static size_t check_main(void) {
  size_t n = check_pools(&_mi_heap_main);
  CHECK_EQ(_mi_pool_count().current, n);
  return n;
}

static void* leave(void* arg) {
  for (size_t i = 0; i < n_blocks; i++) blocks[i] = malloc_block(block_size);
  for (size_t i = 0; i < n_blocks; i++) {
    if (i % keep_every == 0) continue;
    mi_free(blocks[i]);
    blocks[i] = NULL;
  }
  return arg;
}

// A thread allocates so many blocks, frees most, and ends.
static void run_leave(size_t size, size_t n, size_t every) {
  pthread_t thread;
  block_size = size, n_blocks = n, keep_every = every;
  pthread_create(&thread, NULL, &leave, NULL);
  pthread_join(thread, NULL);
}

static void check_empty(void) {
  for (size_t i = 0; i < n_blocks; i++) mi_free(blocks[i]);
  n_blocks = 0;
  mi_collect(true);
  CHECK_EQ(check_main(), 0);
  CHECK_EQ(page_count(), 0);
}

// What the thread has left is used up before a page is made.
static void check_adopt(size_t size) {
  run_leave(size, 1024 * KiB / size, 4);
  int64_t n_pages = page_count();
  size_t  n_pooled = check_main(), n_left = 0;
  CHECK_FOR(n_pooled > 0 && (int64_t)n_pooled == n_pages, "%zu of %lld", n_pooled, (long long)n_pages);
  for (size_t i = 0; i < n_blocks; i++) {
    if (blocks[i] != NULL) continue;
    blocks[i] = malloc_block(size);
    CHECK(_mi_page_word_state(mi_load_relaxed(&_mi_page_of(blocks[i])->word)) != MI_PAGE_SHARED);
    n_left = check_main();
    CHECK(n_left <= n_pooled && n_pooled <= n_left + 1); // one at a time
    n_pooled = n_left;
  }
  CHECK_EQ(n_left, 0);
  CHECK(page_count() <= n_pages + MI_HARDENED); // where blocks wait before they are used again
  check_empty();
}

// Threads that come and go with the same work: pages are adopted, and do not pile up.
static void check_bound(void) {
  static void* kept[n_blocks_max];
  size_t       n_kept = 0;
  for (int round = 0; round < 40; round++) {
    run_leave(64, 20000, 400);
    for (size_t i = 0; i < n_blocks; i += keep_every) kept[n_kept++] = blocks[i];
    size_t n_bytes = 20000 * 64 + n_kept * 64;
    CHECK_FOR(page_count() <= (int64_t)(n_bytes / MI_SLICE_SIZE) + 4, "%lld pages in round %d", (long long)page_count(),
              round);
    CHECK_EQ(check_main(), page_count());
  }
  n_blocks = 0;
  for (size_t i = 0; i < n_kept; i++) mi_free(kept[i]);
  check_empty();
}

// Frees by a thread that does not own the pages: each page leaves the pool when its last block is free.
static void check_remove(void) {
  run_leave(256, 5000, 2);
  size_t n_pooled = check_main();
  CHECK(n_pooled > 4);
  for (size_t i = 0; i < n_blocks; i++) {
    mi_free(blocks[i]);
    blocks[i] = NULL;
    if (i % 128 != 0) continue;
    mi_collect(true);
    size_t n = check_main();
    CHECK_EQ(n, page_count());
    CHECK(n <= n_pooled);
    n_pooled = n;
  }
  check_empty();
}

static void check_heaps(void) {
  for (int destroys = 0; destroys <= 1; destroys++) {
    mi_heap_t* h = heap = mi_heap_new();
    run_leave(128, 5000, 3);
    int64_t n_pages = page_count();
    size_t  n_pooled = check_pools(h);
    CHECK(n_pooled > 4 && (int64_t)n_pooled == n_pages);
    void* p = malloc_block(128); // its theap adopts a page of its heap
    CHECK_EQ(check_pools(h), n_pooled - 1);
    CHECK_EQ(page_count(), n_pages);
    mi_free(p);
    heap = NULL;
    if (destroys) {
      mi_heap_destroy(h);
      memset(blocks, 0, sizeof(blocks));
      CHECK_EQ(page_count(), 0);
    }
    else {
      mi_heap_delete(h);
      mi_collect(true);
      CHECK(check_main() >= n_pooled - 1);
      CHECK_EQ(page_count(), n_pages);
    }
    CHECK_EQ(check_pools(h), 0);
    check_empty();
  }
}

// ---- its lists --------------------------------------------------------------------------------------------------------

enum { n_taken = 4 };

static mi_page_t* taken[n_taken];

// Shared pages of one class, more of which there are: they are the calling thread's then.
static void take_pages(void) {
  run_leave(256, 8000, 3);
  CHECK(check_main() > n_taken);
  for (size_t i = 0; i < n_taken; i++) {
    taken[i] = _mi_pool_adopt(_mi_size_class_of(256), _mi_thread_theap());
    CHECK(taken[i] != NULL);
    if (taken[i] == NULL) exit(check_result());
    CHECK_EQ(_mi_page_word_state(mi_load_relaxed(&taken[i]->word)), MI_PAGE_OWNED);
  }
}

static void share(size_t i) {
  CHECK(_mi_pool_share(taken[i], MI_PAGE_OWNED));
}

static void claim(size_t i) {
  mi_chain_t chain = _mi_page_word_chain(mi_load_relaxed(&taken[i]->word));
  mi_store_relaxed(&taken[i]->word, _mi_page_word_make(MI_PAGE_CLAIMED, chain.count, chain.first));
}

static void own(size_t i) {
  taken[i]->free = NULL;
  _mi_page_unpack(taken[i], _mi_page_word_take(&taken[i]->word, MI_PAGE_OWNED));
}

// What a thread has claimed that the child of a fork does not have: the first of its list, one in the middle, and one that had been
// taken out already.
static void check_forget(void) {
  take_pages();
  for (size_t i = 0; i < n_taken; i++) share(i); // the last one is the first of the list
  size_t n = check_main();
  for (const char* at = "3102"; *at != 0; at++) {
    size_t i = (size_t)(*at - '0');
    claim(i);
    _mi_pool_forget(taken[i]);
    CHECK_EQ(check_main(), --n);
    _mi_pool_forget(taken[i]);
    CHECK_EQ(check_main(), n);
  }
  for (size_t i = 0; i < n_taken; i++) {
    own(i);
    share(i);
  }
  CHECK_EQ(check_main(), n + n_taken);
  check_empty();
}

static void expect_gaps(const char* order) {
  for (; *order != 0; order++) CHECK(_mi_pool_adopt(MI_POOL_GAPS, _mi_thread_theap()) == taken[*order - '0']);
  CHECK(_mi_pool_adopt(MI_POOL_GAPS, _mi_thread_theap()) == NULL);
}

static void share_gaps(const char* order) {
  for (; *order != 0; order++) share((size_t)(*order - '0'));
}

// Gap pages are adopted in the order in which they were shared (PO3).
static void check_order(void) {
  take_pages();
  for (size_t i = 0; i < n_taken; i++) mi_store_relaxed(&taken[i]->kind, (uint8_t)MI_PAGE_GAPS);
  share_gaps("0123");
  expect_gaps("0123");
  share_gaps("312");
  CHECK(_mi_pool_adopt(MI_POOL_GAPS, _mi_thread_theap()) == taken[3]);
  share_gaps("3");
  expect_gaps("123");
  for (size_t i = 0; i < 3; i++) { // one of three leaves: the first, that in the middle, the last
    share_gaps("012");
    claim(i);
    _mi_pool_remove(taken[i]);
    own(i);
    share_gaps("3");
    expect_gaps(i == 0 ? "123" : i == 1 ? "023" : "013");
  }
  for (size_t i = 0; i < n_taken; i++) {
    mi_store_relaxed(&taken[i]->kind, (uint8_t)MI_PAGE_BLOCKS);
    share(i);
  }
  check_empty();
}

// ---- threads that have enough pages of their own ----------------------------------------------------------------------

// Threads that replace blocks at the same time, and then end and leave their blocks to others.  What is theirs comes back to them
// (PO4): they would take pages from one another all the time otherwise, and the blocks of each would be in the pages of all.
enum { n_tables = 16, n_table_blocks = 5000, n_generations = 3 };

static void*        tables[n_tables][n_table_blocks];
static const size_t n_replaced = 200000; // by each thread

static void* replace(void* arg) {
  void** table = (void**)arg;
  rng_t  r = rng_make((uint64_t)(uintptr_t)arg);
  for (size_t i = 0; i < n_replaced; i++) {
    void** slot = &table[rng_below(&r, n_table_blocks)];
    mi_free(*slot);
    *slot = mi_malloc(8 + rng_below(&r, 1000));
    if (i % 64 == 0) sched_yield(); // as with a processor for each of them
  }
  return NULL;
}

static void run_generation(void) {
  pthread_t threads[n_tables];
  for (size_t i = 0; i < n_tables; i++) pthread_create(&threads[i], NULL, &replace, tables[i]);
  for (size_t i = 0; i < n_tables; i++) pthread_join(threads[i], NULL);
}

// How many pages were adopted for how many blocks.
static double run_apart(void) {
  int64_t n_before = _mi_heap_stats_counted(MI_COUNT_ADOPTED);
  for (size_t i = 0; i < n_generations; i++) run_generation();
  int64_t n = _mi_heap_stats_counted(MI_COUNT_ADOPTED) - n_before;
  for (size_t i = 0; i < n_tables; i++) {
    for (size_t k = 0; k < n_table_blocks; k++) {
      mi_free(tables[i][k]);
      tables[i][k] = NULL;
    }
  }
  return (double)n / (double)(n_tables * n_replaced * n_generations);
}

// Threads that take turns in another way may mix once; with one pool they do each time.
static void check_apart(void) {
  double least = 1;
  for (int tries = 0; tries < 3 && least > 0.01; tries++) {
    double share = run_apart();
    if (share < least) least = share;
    check_empty();
  }
  CHECK_FOR(least <= 0.01, "%g pages were adopted for each block", least);
}

// ---- a fork ---------------------------------------------------------------------------------------------------------

enum { n_forkers = 40 };

static size_t n_theaps_before;

// A thread whose first allocation is in a handler of its fork.
static void* allocate_in_fork(void* barrier) {
  _mi_fork_lock_all();
  mi_free(mi_malloc(100));
  CHECK(_mi_theap_backing()->number < n_theaps_before);
  _mi_fork_unlock_all();
  pthread_barrier_wait((pthread_barrier_t*)barrier); // until then none of them leaves its theap to another
  return NULL;
}

// Its pages are shared where a lock is held that was taken before (PO4).
static void check_fork(void) {
  pthread_t         threads[n_forkers];
  pthread_barrier_t barrier;
  size_t            n_pools;
  mi_pool_t*        pools;
  pthread_barrier_init(&barrier, NULL, n_forkers);
  n_theaps_before = _mi_registry_count();
  for (size_t i = 0; i < n_forkers; i++) pthread_create(&threads[i], NULL, &allocate_in_fork, &barrier);
  for (size_t i = 0; i < n_forkers; i++) pthread_join(threads[i], NULL);
  CHECK(_mi_registry_count() > n_theaps_before);
  pools = _mi_pool_all(&_mi_heap_main, &n_pools);
  for (size_t i = 0; i < n_pools; i++) CHECK_EQ(mi_load_relaxed(&pools[i].lock.state), 0);
}

// ---- all at once ----------------------------------------------------------------------------------------------------

enum { n_threads = 4, n_slots = 4096 };

static void* slots[n_slots]; // each is exchanged atomically

static void* exchange(void* arg) {
  rng_t r = rng_make((uint64_t)(uintptr_t)arg);
  for (size_t i = 0; i < 30000 * test_scale(); i++) {
    void* p = rng_below(&r, 3) == 0 ? NULL : mi_malloc(16 + rng_below(&r, 6) * 200);
    mi_free(__atomic_exchange_n(&slots[rng_below(&r, n_slots)], p, __ATOMIC_ACQ_REL));
  }
  return NULL;
}

static void check_threads(uint64_t seed) {
  for (uint64_t round = 0; round < 5; round++) {
    pthread_t threads[n_threads];
    for (uintptr_t i = 0; i < n_threads; i++)
      pthread_create(&threads[i], NULL, &exchange, (void*)(uintptr_t)(seed + 100 * round + i));
    for (size_t i = 0; i < n_threads; i++) pthread_join(threads[i], NULL);
    CHECK(check_main() > 0);
  }
  for (size_t i = 0; i < n_slots; i++) mi_free(slots[i]);
  check_empty();
}

int main(int argc, char** argv) {
  watchdog(120);
  uint64_t seed = test_seed(argc, argv);
  mi_option_set(mi_option_purge_delay, -1); // no thread of ours that takes back what is idle
  mi_free(mi_malloc(1));
  mi_collect(true);
  const size_t sizes[] = {32, 256, 2048, 32 * KiB};
  for (size_t i = 0; i < COUNT_OF(sizes); i++) check_adopt(sizes[i]);
  check_bound();
  check_remove();
  check_heaps();
  check_forget();
  check_order();
  check_apart();
  check_fork();
  check_threads(seed);
  return check_result();
}
