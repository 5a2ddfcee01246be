// Proves: a block that is freed twice in a gap page is reported when its thread is outside of its theap, so that who listens may
// allocate and free, whether the second free is the thread's own or another's (GP6); a drain that outlives its page's being made
// a gap page leaves it one, and its blocks are gaps there (GP3); blocks are kept whole when no request has gone past the gaps for
// long (GP7); freed ones are joined by requests, a bounded number by each (GP8); what others have freed is not in use for the
// statistics, wherever it waits.
#include <errno.h>
#include <pthread.h>

#include "../check.h"
#include "../modes/support.h"
#include "heap/bin.h"
#include "heap/drain.h"
#include "heap/gaps.h"
#include "heap/pool.h"
#include "heap/thread.h"
#include "mimalloc-stats.h"
#include "mimalloc.h"
#include "support/stat.h"

enum { n_blocks = 4 * 1024, size = 64, n_kept = 3 };

static void*      blocks[n_blocks];
static void*      kept[n_kept]; // those of the gap page that are not free, next to each other
static mi_page_t* page;

static int64_t page_count(void) {
  return mi_load_relaxed(&_mi_stat_live.pages.current);
}

static void run_in_thread(void* (*f)(void*), void* arg) {
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, NULL, f, arg), 0);
  pthread_join(thread, NULL);
}

// ---- a gap page -----------------------------------------------------------------------------------------------------

static bool is_kept(const void* p) {
  for (size_t i = 0; i < n_kept; i++) {
    if (p == kept[i]) return true;
  }
  return false;
}

// Frees all blocks but a few in the middle of a page.
static void leave_some(void) {
  for (size_t i = 0; i < n_blocks; i++) blocks[i] = mi_malloc(size);
  page = _mi_page_of(blocks[n_blocks / 2]);
  for (size_t i = 0; i < n_kept; i++) kept[i] = _mi_page_start(page) + (100 + i) * size;
  for (size_t i = 0; i < n_blocks; i++) {
    if (!is_kept(blocks[i])) mi_free(blocks[i]);
  }
}

static mi_theap_t* enter(void) {
  mi_theap_t* theap = _mi_theap_default;
  _mi_presence_enter(theap);
  return theap;
}

static void make_gap_page(void) {
  leave_some();
  mi_theap_t* theap = enter();
  _mi_drain_end_all(theap);
  _mi_outbox_return_bin(theap, page->cls);
  CHECK(_mi_gaps_make(theap, page));
  _mi_presence_leave(theap);
  CHECK(_mi_gaps_is(page) && _mi_gaps_is_valid(page));
  CHECK_EQ(_mi_page_used(page), n_kept);
}

static void check_all_is_free(void) {
  CHECK(mi_heap_check(NULL));
  mi_collect(true);
  CHECK_EQ(page_count(), 0);
}

// ---- double frees ---------------------------------------------------------------------------------------------------

static size_t n_reports;

static void use_allocator(void) {
  static void* some[2000];
  for (size_t i = 0; i < COUNT_OF(some); i++) some[i] = mi_malloc(i % 500);
  for (size_t i = 0; i < COUNT_OF(some); i++) mi_free(some[i]);
}

static void on_error(int err, void* arg) {
  CHECK_EQ(err, EAGAIN);
  CHECK(arg == kept);
  CHECK_EQ(mi_load_relaxed(&_mi_theap_default->presence), MI_THEAP_OUTSIDE);
  n_reports++;
  use_allocator();
  CHECK_EQ(mi_load_relaxed(&_mi_theap_default->presence), MI_THEAP_OUTSIDE);
}

static void check_own(void) {
  make_gap_page();
  n_reports = 0;
  mi_free(kept[0]);
  CHECK_EQ(n_reports, 0);
  mi_free(hidden_pointer(kept[0]));
  CHECK_EQ(n_reports, 1);
  CHECK(_mi_gaps_is_valid(page));
  for (size_t i = 1; i < n_kept; i++) mi_free(kept[i]);
  CHECK_EQ(n_reports, 1);
  check_all_is_free();
}

static void* free_in_thread(void* p) {
  mi_free(p);
  return NULL;
}

// It comes by the chain of the page, which the thread takes in a slow path; the next slow free reports it.
static void check_of_others(void) {
  make_gap_page();
  n_reports = 0;
  mi_free(kept[0]);
  mi_free(kept[1]);
  run_in_thread(&free_in_thread, hidden_pointer(kept[1])); // in the middle of a gap
  mi_theap_t* theap = enter();
  _mi_gaps_collect(theap, 1000);
  CHECK_EQ(n_reports, 0);
  _mi_presence_leave(theap);
  mi_free(kept[2]);
  CHECK_EQ(n_reports, 1);
  check_all_is_free();
}

// A block that is twice in one batch may be linked to itself: who follows the links comes to an end, and the page is as its bits say.
static void* free_twice(void* p) {
  mi_free(mi_malloc(1)); // a thread that has not allocated has no outbox
  mi_free(kept[1]);
  mi_free(p);
  mi_free(hidden_pointer(p));
  return NULL;
}

static void check_batch(void) {
  make_gap_page();
  n_reports = 0;
  run_in_thread(&free_twice, kept[0]);
  mi_theap_t* theap = enter();
  _mi_gaps_collect(theap, 1000);
  CHECK(_mi_gaps_is_valid(page) && _mi_page_used(page) == 2); // the first one is lost
  _mi_presence_leave(theap);
  mi_free(kept[2]);
  CHECK_EQ(n_reports, 1);
  mi_free(kept[1]);
  check_all_is_free();
}

static void* make_in_thread(void* arg) {
  make_gap_page();
  return arg;
}

static void check_shared_batch(void) {
  run_in_thread(&make_in_thread, NULL);
  n_reports = 0;
  mi_theap_t* theap = enter();
  CHECK(_mi_pool_adopt(MI_POOL_GAPS, theap) == page && page->free == NULL);
  page->free = (mi_block_t*)kept[0];
  _mi_block_set_next(page->free, page->free);
  CHECK(_mi_gaps_adopt(theap, page));
  CHECK(_mi_gaps_is_valid(page) && _mi_page_used(page) == 2);
  _mi_presence_leave(theap);
  for (size_t i = 1; i < n_kept; i++) mi_free(kept[i]);
  CHECK_EQ(n_reports, 1);
  check_all_is_free();
}

// ---- drains ---------------------------------------------------------------------------------------------------------

// A drain that has `block` of the page, as if its thread had been stopped since the page was of one class.
static mi_drain_t* drain_late(mi_theap_t* theap, mi_block_t* block) {
  mi_drain_t* drain = _mi_theap_drain(theap, page->cls);
  _mi_block_set_next(block, NULL);
  drain->page = page;
  drain->last = drain->bin.head = block;
  drain->bin.slots = 10;
  drain->book.total = drain->bin.slots + 1;
  return drain;
}

static void check_gap_page_stays(size_t n_used) {
  CHECK(_mi_gaps_is_valid(page));
  CHECK_EQ(mi_load_relaxed(&page->bin_offset), MI_NO_SLOTS_OFFSET);
  CHECK_EQ(_mi_page_used(page), n_used);
}

static void check_drain(void) {
  make_gap_page();
  mi_theap_t* theap = enter();
  mi_drain_t* drain = drain_late(theap, (mi_block_t*)kept[0]);
  CHECK_EQ(_mi_drain_end(theap, drain), 0);
  CHECK(drain->page == NULL && drain->bin.head == NULL);
  check_gap_page_stays(n_kept - 1);
  drain_late(theap, (mi_block_t*)kept[1]);
  _mi_bin_close_all(theap); // as a round does
  _mi_drain_take_all(theap);
  CHECK(drain->page == NULL);
  check_gap_page_stays(n_kept - 2);
  _mi_bin_settle_all(theap);
  _mi_presence_leave(theap);
  mi_free(kept[2]);
  check_all_is_free();
}

// ---- blocks that are kept ----------------------------------------------------------------------------------------------

static size_t gap_units(void) {
  return _mi_theap_default->gaps->n_free;
}

static bool is_loose(const void* p) {
  return _mi_page_of(p) == page && _mi_gap_map_is_loose(_mi_gap_map_at(page->gap_map), _mi_gap_map_unit(p));
}

// A request for blocks of so many bytes that gaps are asked for.
static void* take(size_t block_size) {
  mi_theap_t* theap = enter();
  mi_chain_t  chain = _mi_gaps_take(theap, _mi_size_class_of(block_size));
  _mi_presence_leave(theap);
  return chain.first;
}

// ---- loose gaps -----------------------------------------------------------------------------------------------------

// Freed blocks are loose, and a request joins them with each other and with what is free around them, and serves itself from that: the
// whole page is one gap but for one block.
static void check_loose(void) {
  make_gap_page();
  size_t n_units = gap_units();
  _mi_theap_default->gaps->n_quiet = 0;
  mi_free(kept[2]);
  mi_free(kept[1]);
  CHECK(is_loose(kept[1]) && is_loose(kept[2]) && !is_loose(kept[0]));
  CHECK_EQ(gap_units(), n_units);
  char* p = (char*)take(16 * KiB);
  CHECK(p != NULL && _mi_page_of(p) == page && !is_loose(kept[1]) && !is_loose(kept[2]));
  CHECK(_mi_gaps_is_valid(page) && mi_heap_check(NULL));
  const mi_gaps_t* gaps = _mi_theap_default->gaps;
  CHECK(gaps->first_loose == NULL && gaps->last_loose == NULL);
  for (mi_block_t *block = (mi_block_t*)(void*)p, *next; block != NULL; block = next) {
    next = _mi_page_next_block(block);
    mi_free(block);
  }
  CHECK(_mi_gaps_is(page));
  mi_free(kept[0]); // the last one: what is loose and what is in lists is the whole page
  CHECK(gaps->first_loose == NULL && gaps->n_pages == 0 && gap_units() == 0);
  check_all_is_free();
}

// A request joins no more than MI_GAP_JOINS and a page's blocks, one in so many of which are freed.
static void check_joins_are_bounded(size_t step) {
  enum { n_pages = 16, n = n_pages * (MI_SLICE_SIZE / 16) };
  static void* all[n];
  for (size_t i = 0; i < n; i++) all[i] = mi_malloc(16);
  mi_theap_t* theap = enter();
  for (size_t i = 0; i < n; i++) {
    if (i % 4 == 0) continue;
    _mi_presence_leave(theap);
    mi_free(all[i]);
    _mi_presence_enter(theap);
  }
  _mi_drain_end_all(theap);
  _mi_outbox_return_bin(theap, _mi_page_of(all[0])->cls);
  for (size_t i = 0; i < n; i += 4) _mi_gaps_make(theap, _mi_page_of(all[i]));
  _mi_presence_leave(theap);
  mi_gaps_t* gaps = theap->gaps;
  CHECK_FOR(gaps->n_pages >= n_pages - 2, "%zu pages", gaps->n_pages);
  gaps->n_quiet = 0;
  for (size_t i = 0; i < n; i += step) mi_free(all[i]);
  size_t n_loose = 0, n_left = 0;
  for (mi_gap_map_t* map = gaps->first_loose; map != NULL; map = map->next_loose) n_loose++;
  CHECK_FOR(n_loose >= n_pages - 2, "%zu pages", n_loose);
  CHECK(take(16 * KiB) == NULL); // no gap is as large
  for (mi_gap_map_t* map = gaps->first_loose; map != NULL; map = map->next_loose) n_left++;
  size_t a_page = MI_SLICE_SIZE / 16 / step;
  CHECK_FOR(n_left < n_loose && n_loose - n_left <= MI_GAP_JOINS / a_page + 3, "%zu and %zu pages", n_loose, n_left);
  for (size_t i = 0; i < n; i += 4) {
    if (i % step != 0) mi_free(all[i]);
  }
  check_all_is_free();
}

// A page some of whose blocks were not made yet is used by its class, and stays what it is.
static void check_new_page_stays(void) {
  void*       p = mi_malloc(size);
  mi_theap_t* theap = enter();
  CHECK(_mi_page_of(p)->extended < _mi_page_of(p)->capacity);
  CHECK(!_mi_gaps_make(theap, _mi_page_of(p)));
  _mi_presence_leave(theap);
  mi_free(p);
  check_all_is_free();
}

static void check_kept(void) {
  enum { n_rounds = 1000 };
  make_gap_page();
  _mi_theap_default->gaps->n_quiet = 0;
  mi_free(kept[0]);
  CHECK(is_loose(kept[0]));
  for (int i = 0; i < n_rounds; i++)
    mi_free(mi_malloc(size)); // each is a block of the gaps at first, and is made a gap again
  size_t n_units = gap_units();
  mi_free(kept[1]);
  CHECK(gap_units() == n_units && !is_loose(kept[1]));
  CHECK(_mi_theap_default->bins[_mi_size_class_of(size)].head == kept[1]);
  mi_free(kept[2]);
  check_all_is_free();
}

// ---- blocks that others have freed ------------------------------------------------------------------------------------

static pthread_barrier_t barrier;

static int64_t n_in_use(void) {
  mi_stats_t_decl(stats);
  CHECK(mi_stats_get(&stats));
  CHECK_EQ(stats.malloc_normal.current, stats.malloc_normal_count.total * size);
  return stats.malloc_normal_count.total;
}

static void* free_and_wait(void* p) {
  mi_free(mi_malloc(1)); // a thread that has not allocated has no outbox
  mi_free(p);
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  return NULL;
}

static void check_last_ones_are_counted(void) {
  for (size_t i = 1; i < n_kept; i++) mi_free(kept[i]);
  CHECK_EQ(n_in_use(), 0);
  check_all_is_free();
}

static void check_owned_is_counted(void) {
  pthread_t thread;
  make_gap_page();
  CHECK_EQ(n_in_use(), n_kept);
  CHECK_EQ(pthread_create(&thread, NULL, &free_and_wait, kept[0]), 0);
  pthread_barrier_wait(&barrier);
  CHECK(_mi_gaps_chain(page).first == NULL); // it is in the outbox
  CHECK_EQ(n_in_use(), n_kept - 1);
  pthread_barrier_wait(&barrier);
  pthread_join(thread, NULL);
  CHECK(_mi_gaps_chain(page).first == kept[0]);
  CHECK_EQ(n_in_use(), n_kept - 1);
  check_last_ones_are_counted();
}

static void check_shared_is_counted(void) {
  run_in_thread(&make_in_thread, NULL);
  CHECK_EQ(_mi_page_word_state(mi_load_relaxed(&page->word)), MI_PAGE_SHARED);
  CHECK_EQ(n_in_use(), n_kept);
  mi_free(kept[0]);
  CHECK_EQ(n_in_use(), n_kept - 1);
  mi_collect(false);
  CHECK(_mi_gaps_chain(page).first == kept[0]);
  CHECK_EQ(n_in_use(), n_kept - 1);
  check_last_ones_are_counted();
}

static void check_counted(void) {
  pthread_barrier_init(&barrier, NULL, 2);
  check_owned_is_counted();
  check_shared_is_counted();
  pthread_barrier_destroy(&barrier);
}

int main(void) {
  watchdog(60);
  if (!MI_GAPS) {
    test_skip("gap pages", "this build has none");
    return skip_code;
  }
  mi_option_set(mi_option_purge_delay, -1); // no thread of ours that takes back what is idle
  mi_free(mi_malloc(1));
  mi_collect(true);
  CHECK_EQ(page_count(), 0);
  mi_register_error(&on_error, kept);
  check_own();
  check_of_others();
  check_batch();
  check_shared_batch();
  check_drain();
  check_loose();
  check_joins_are_bounded(8);  // the pages that each request joins have more
  check_joins_are_bounded(32); // other pages have, too
  check_kept();
  check_new_page_stays();
  check_counted();
  return check_result();
}
