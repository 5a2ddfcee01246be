// Proves: blocks freed into pages of other threads wait in batches of at most 32 blocks or 4 KiB, 16 of them, so that what waits is
// bounded; none is lost or pushed twice; the push that makes a page worth taking takes it; blocks of heaps that can end do not
// wait; pages that it empties go back to the system, without rounds and by a thread past its exit, too.
#include <pthread.h>
#include "../check.h"
#include "../modes/support.h"
#include "arena/chunk.h"
#include "heap/event.h"
#include "heap/theap.h"
#include "heap/thread.h"
#include "mimalloc.h"
#include "support/stat.h"

enum { n_blocks_max = 20000 };

static void*      blocks[n_blocks_max];
static size_t     n_blocks, block_size;
static mi_heap_t* heap; // NULL: the default one

static void allocate(void) {
  size_t size = block_size - MI_PADDING_SIZE;
  for (size_t i = 0; i < n_blocks; i++) blocks[i] = (heap != NULL ? mi_heap_malloc(heap, size) : mi_malloc(size));
}

static int64_t page_count(void) {
  return mi_load_relaxed(&_mi_stat_live.pages.current);
}

static uint64_t word_of(const mi_page_t* page) {
  return mi_load_relaxed(&((mi_page_t*)page)->word);
}

static size_t on_chain(const mi_page_t* page) {
  return _mi_page_word_chain(word_of(page)).count;
}

// Blocks that wait in the thread's outbox: all of them, or those of a page.
static size_t waiting(const mi_page_t* page) {
  size_t n = 0;
  for (size_t i = 0; i < MI_OUTBOX_SIZE; i++) {
    const mi_batch_t* batch = &_mi_theap_default->outbox[i];
    if (batch->page == NULL || (page != NULL && batch->page != page)) continue;
    CHECK(batch->count > 0 && batch->count < batch->limit && batch->limit <= 32);
    CHECK(batch->count * _mi_page_block_size(batch->page) <= 4 * KiB);
    n += batch->count;
  }
  return n;
}

// Another thread, which does what it is told.
static pthread_barrier_t barrier;
static void (*job)(void); // NULL: end

static void* owner_main(void* arg) {
  for (;;) {
    pthread_barrier_wait(&barrier);
    if (job == NULL) return arg;
    job();
    pthread_barrier_wait(&barrier);
  }
}

static void owner_run(void (*what)(void)) {
  job = what;
  pthread_barrier_wait(&barrier);
  if (what != NULL) pthread_barrier_wait(&barrier);
}

static pthread_t owner_begin(size_t size, size_t n) {
  pthread_t owner;
  block_size = size;
  n_blocks = n;
  pthread_create(&owner, NULL, &owner_main, NULL);
  owner_run(&allocate);
  return owner;
}

static void owner_end(pthread_t owner) {
  owner_run(NULL);
  pthread_join(owner, NULL);
}

static void free_all(void) {
  for (size_t i = 0; i < n_blocks; i++) mi_free(blocks[i]);
  mi_collect(true);
  CHECK_EQ(waiting(NULL), 0);
  CHECK_EQ(page_count(), 0);
}

// All blocks of an owner's page, one by one.
static void check_batches(size_t size) {
  pthread_t  owner = owner_begin(size, 1);
  mi_page_t* page = _mi_page_of(blocks[0]);
  mi_free(blocks[0]);
  mi_collect(true);
  n_blocks = page->capacity;
  owner_run(&allocate);
  page = _mi_page_of(blocks[0]);
  size_t limit = _mi_size_class_info[page->cls].outbox_limit;
  CHECK(limit >= 1 && limit <= 32 && (limit == 1 || limit * size <= 4 * KiB));
  CHECK(limit == 32 || (limit + 1) * size > 4 * KiB);
  size_t n = 0, n_early = 0;
  for (size_t i = 0; i < n_blocks && _mi_page_of(blocks[i]) == page; i++) {
    size_t chained = on_chain(page), waited = waiting(page);
    mi_free(blocks[i]);
    n++;
    CHECK_EQ(waiting(page) + on_chain(page), n);
    bool is_pushed = on_chain(page) == chained + limit && waiting(page) == 0; // one push for each batch
    bool waits = on_chain(page) == chained && waiting(page) == waited + 1 && waited + 1 < limit;
    n_early += !(is_pushed || waits);
  }
  CHECK_FOR(n_early <= 1, "%zu", n_early); // where the machine is busy, a look at what is idle may come in between
  for (size_t i = n; i < n_blocks; i++) mi_free(blocks[i]);
  CHECK_EQ(_mi_page_word_state(word_of(page)), MI_PAGE_OWNED);
  mi_collect(true);
  CHECK_EQ(waiting(NULL), 0);
  CHECK_EQ(on_chain(page), n);
  int64_t n_pages = page_count();
  owner_run(&allocate);
  CHECK_EQ(page_count(), n_pages);
  for (size_t i = 0; i < n_blocks; i++) *(size_t*)blocks[i] = i;
  for (size_t i = 0; i < n_blocks; i++) CHECK_EQ(*(size_t*)blocks[i], i); // each of them once
  owner_end(owner);
  free_all();
}

// A block of each of many pages: a batch that another page needs the place of is closed.
static void check_bound(void) {
  pthread_t owner = owner_begin(2 * KiB, 3000);
  size_t    n = 0, n_open = 0;
  for (size_t i = 0; i < n_blocks; i += 29, n++) {
    mi_free(blocks[i]);
    blocks[i] = NULL;
    n_open = waiting(NULL);
    CHECK_FOR(n_open <= MI_OUTBOX_SIZE, "%zu after %zu", n_open, n);
  }
  CHECK(n > 3 * MI_OUTBOX_SIZE && n_open > MI_OUTBOX_SIZE / 4);
  owner_end(owner);
  free_all();
}

// The owner has ended and left a full page: it is taken by the push that makes enough of it free, and given back by the last.
static void check_claim(void) {
  pthread_t  owner = owner_begin(64, 1);
  mi_page_t* page = _mi_page_of(blocks[0]);
  size_t     capacity = page->capacity, claim_at = _mi_size_class_info[page->cls].claim_at;
  mi_free(blocks[0]);
  mi_collect(true);
  n_blocks = 3 * capacity;
  owner_run(&allocate);
  owner_end(owner);
  int64_t n_pages = page_count();
  page = _mi_page_of(blocks[capacity]);
  CHECK_EQ(_mi_page_word_state(word_of(page)), MI_PAGE_PARKED);
  size_t n = 0;
  for (size_t i = 0; i < n_blocks; i++) {
    if (_mi_page_of(blocks[i]) != page) continue;
    mi_free(blocks[i]);
    blocks[i] = NULL;
    n++;
    if (n == capacity) break; // from here on the page may be another's
    size_t n_pushed = n - waiting(page);
    CHECK_FOR(_mi_page_word_state(word_of(page)) == (n_pushed < claim_at ? MI_PAGE_PARKED : MI_PAGE_SHARED),
              "%zu pushed, %zu to claim it", n_pushed, claim_at);
    if (n_pushed >= claim_at) CHECK_EQ(on_chain(page), n_pushed);
  }
  CHECK_EQ(n, capacity);
  mi_collect(true);
  CHECK_EQ(page_count(), n_pages - 1);
  free_all();
}

static void check_heap(void) {
  heap = mi_heap_new();
  pthread_t  owner = owner_begin(64, 100);
  mi_page_t* page = _mi_page_of(blocks[0]);
  for (size_t i = 0; i < 50; i++) {
    CHECK(_mi_page_of(blocks[i]) == page);
    mi_free(blocks[i]);
    CHECK_EQ(waiting(NULL), 0);
    CHECK_EQ(on_chain(page), i + 1);
  }
  owner_end(owner);
  mi_heap_destroy(heap);
  heap = NULL;
  CHECK_EQ(page_count(), 0);
}

static void make_no_round(bool wake) {
  (void)wake;
}

static void* free_each(void* is_late) {
  enum { few_slices = 32 };
  if (is_late != NULL) _mi_thread_release(true); // from here on it has no theap
  mi_option_set(mi_option_purge_delay, 0);       // now, so that no thread of ours was started
  for (size_t i = 0; i < n_blocks; i++) mi_free(blocks[i]);
  CHECK_FOR(_mi_chunk_purgeable() <= few_slices, "%zu slices stay", _mi_chunk_purgeable());
  mi_option_set(mi_option_purge_delay, -1);
  return is_late;
}

static void check_given_back(bool is_late) {
  pthread_t owner = owner_begin(16000, 2000), other;
  owner_end(owner);
  _mi_event_register(&make_no_round);
  pthread_create(&other, NULL, &free_each, is_late ? &other : NULL);
  pthread_join(other, NULL);
  mi_collect(true);
  CHECK_EQ(page_count(), 0);
}

int main(void) {
  watchdog(60);
  if (MI_HARDENED) {
    test_skip("the outbox", "freed blocks wait in the quarantine first");
    return skip_code;
  }
  mi_option_set(mi_option_purge_delay, -1); // no thread of ours that takes back what is idle
  pthread_barrier_init(&barrier, NULL, 2);
  mi_free(mi_malloc(1));
  mi_collect(true);
  const size_t sizes[] = {16, 64, 256, 1024, 4096, 32 * KiB};
  for (size_t i = 0; i < COUNT_OF(sizes); i++) check_batches(sizes[i]);
  check_bound();
  check_claim();
  check_heap();
  check_given_back(false);
  check_given_back(true);
  return check_result();
}
