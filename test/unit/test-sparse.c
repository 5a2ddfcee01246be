// Proves: what ended threads leave in pages that hold little serves requests for blocks of other sizes before pages are made (SP3,
// SP4), and none of these blocks are lost: when all are free no page is left.  What others free there waits for no longer than until
// each page has had its turn.  However many pages a thread has, each malloc looks at a bounded number of them (SP5).
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include "../check.h"
#include "../modes/support.h"
#include "heap/background.h"
#include "heap/gaps.h"
#include "heap/heap_stats.h"
#include "heap/presence.h"
#include "heap/sparse.h"
#include "heap/thread.h"
#include "mimalloc.h"
#include "support/stat.h"

enum { n_left_all = 48 * 1024, left_size = 1024, left_every = 16, taken_size = 208, n_taken_all = 60 * 1024 };

static void* left[n_left_all]; // NULL: free
static void* taken[n_taken_all];

static int64_t page_count(void) {
  return mi_load_relaxed(&_mi_stat_live.pages.current);
}

// 48 MiB, of which a sixteenth stays: more than 32 MiB of pages that nobody has (SP4).
static void* leave(void* arg) {
  for (size_t i = 0; i < n_left_all; i++) left[i] = mi_malloc(left_size);
  for (size_t i = 0; i < n_left_all; i++) {
    if (i % left_every == 0) continue;
    mi_free(left[i]);
    left[i] = NULL;
  }
  return arg;
}

// All that lies in gap pages.
static void* free_taken(void* arg) {
  for (size_t i = 0; i < n_taken_all; i++) {
    if (!_mi_gaps_is(_mi_page_of(taken[i]))) continue;
    mi_free(taken[i]);
    taken[i] = NULL;
  }
  return arg;
}

static size_t waiting(const mi_gaps_t* gaps) {
  size_t n = 0;
  for (const mi_gap_map_t* map = gaps->first; map != NULL; map = map->next) n += _mi_gaps_chain(map->page).count;
  return n;
}

// Another thread frees into pages of this one, which looks at one page at a time.
static void check_turns(void) {
  mi_theap_t* theap = _mi_thread_theap();
  pthread_t   thread;
  pthread_create(&thread, NULL, &free_taken, NULL);
  pthread_join(thread, NULL);
  CHECK_FOR(theap->gaps->n_pages > 64, "%zu pages", theap->gaps->n_pages);
  CHECK_FOR(waiting(theap->gaps) > n_taken_all / 4, "%zu blocks wait", waiting(theap->gaps));
  _mi_presence_enter(theap);
  for (size_t n = theap->gaps->n_pages; n > 0; n--) _mi_gaps_collect(theap, 1);
  _mi_presence_leave(theap);
  CHECK_EQ(waiting(theap->gaps), 0);
}

static void check_shared(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, &leave, NULL);
  pthread_join(thread, NULL);
  int64_t n_pages = page_count();
  size_t  n_in_gaps = 0;
  CHECK_FOR(n_pages >= 512, "%lld", (long long)n_pages);
  for (size_t i = 0; i < n_taken_all; i++) {
    taken[i] = mi_malloc(taken_size);
    n_in_gaps += _mi_gaps_is(_mi_page_of(taken[i]));
  }
  CHECK_FOR(n_in_gaps > n_taken_all / 2, "%zu of %d blocks are in gap pages", n_in_gaps, n_taken_all);
  // Without gaps they would take 200 pages more.
  CHECK_FOR(page_count() <= n_pages + 64, "%lld pages, then %lld", (long long)n_pages, (long long)page_count());
  check_turns();
  for (size_t i = 0; i < n_left_all; i++) mi_free(left[i]);
  for (size_t i = 0; i < n_taken_all; i++) mi_free(taken[i]);
  mi_collect(true);
  CHECK_EQ(page_count(), 0);
}

// ---- how much one call does -----------------------------------------------------------------------------------------------

enum {
  n_many_pages = 5000,
  n_per_page = MI_SLICE_SIZE / left_size,
  n_many = n_many_pages * n_per_page,
  n_large = 4096
};

static void* many[n_many];
static void* large[n_large];

// A page in which gaps are too small for what is asked for later, and one that has too little room to become a gap page.
static bool goes_of_loose(const void* p) {
  return (uintptr_t)p % MI_SLICE_SIZE / left_size % 4 != 0;
}

static bool goes_of_full(const void* p) {
  return (uintptr_t)p % MI_SLICE_SIZE / left_size % 8 == 0;
}

// The first half of the pages is loose, so that they are at the front of the queue.
static void fill_many(mi_heap_t* heap, size_t n) {
  for (size_t i = 0; i < n; i++) many[i] = mi_heap_malloc(heap, left_size);
  for (size_t i = 0; i < n; i++) {
    if (!(i < n / 2 ? goes_of_loose(many[i]) : goes_of_full(many[i]))) continue;
    mi_free(many[i]);
    many[i] = NULL;
  }
}

static size_t n_gap_pages(const mi_theap_t* theap) {
  return theap->gaps == NULL ? 0 : theap->gaps->n_pages;
}

// The most pages that one malloc looks at, and makes gap pages of.
static void ask(mi_theap_t* theap, mi_heap_t* heap, uint64_t* most_looks, size_t* most_made) {
  *most_looks = 0;
  *most_made = 0;
  for (size_t i = 0; i < n_large; i++) {
    uint64_t looks = mi_load_relaxed(&theap->counts[MI_COUNT_SEARCHED]);
    size_t   made = n_gap_pages(theap);
    large[i] = mi_heap_malloc(heap, 8000);
    looks = mi_load_relaxed(&theap->counts[MI_COUNT_SEARCHED]) - looks;
    made = n_gap_pages(theap) - made;
    if (looks > *most_looks) *most_looks = looks;
    if (made > *most_made) *most_made = made;
  }
}

static void free_many(void) {
  for (size_t i = 0; i < n_many; i++) mi_free(many[i]);
  for (size_t i = 0; i < n_large; i++) mi_free(large[i]);
  memset(many, 0, sizeof(many));
  mi_collect(true);
  CHECK_EQ(page_count(), 0);
}

static void check_bounded(void) {
  mi_theap_t* theap = _mi_thread_theap();
  uint64_t    most_looks;
  size_t      most_made;
  fill_many(mi_heap_main(), n_many);
  ask(theap, mi_heap_main(), &most_looks, &most_made);
  CHECK_FOR(n_gap_pages(theap) > n_many_pages * 2 / 5, "%zu gap pages", n_gap_pages(theap)); // those at the front, too
  CHECK_FOR(most_looks > 4000 && most_looks <= 4096 + 2048 + 16, "%zu pages were looked at", (size_t)most_looks);
  CHECK_FOR(most_made > 0 && most_made <= 512, "%zu became gap pages", most_made);
  free_many();
}

// ---- pages that others empty ---------------------------------------------------------------------------------------------

enum { n_turns = 500, n_turn = 64 * n_per_page };

static pthread_barrier_t barrier;

static void* free_turns(void* arg) {
  mi_free(mi_malloc(1)); // it has a theap, so that full pages are parked
  for (int turn = 0; turn < n_turns; turn++) {
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    for (size_t i = 0; i < n_turn; i++) mi_free(many[i]);
    mi_collect(false);
    pthread_barrier_wait(&barrier);
  }
  return arg;
}

// A thread whose blocks another one frees has as many pages as there are, however many it has made, and looks at them as ever.
static void check_emptied_by_others(void) {
  mi_theap_t* theap = _mi_thread_theap();
  pthread_t   thread;
  uint64_t    most_looks;
  size_t      most_made, cls = _mi_size_class_of(left_size);
  pthread_barrier_init(&barrier, NULL, 2);
  CHECK_EQ(pthread_create(&thread, NULL, &free_turns, NULL), 0);
  for (int turn = 0; turn < n_turns; turn++) {
    pthread_barrier_wait(&barrier);
    for (size_t k = 0; k < n_turn; k++) many[k] = mi_malloc(left_size);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
  }
  pthread_join(thread, NULL);
  _mi_queue_note_left(theap);
  CHECK_FOR(theap->classes[cls].n_pages <= 2 * n_turn / n_per_page, "%u pages", theap->classes[cls].n_pages);
  _mi_background_lock(); // no rounds: a thread that gets little processor time would share these pages after two (trim.h)
  fill_many(mi_heap_main(), n_many / 4);
  ask(theap, mi_heap_main(), &most_looks, &most_made);
  CHECK(n_gap_pages(theap) > 0 || !MI_GAPS);
  _mi_background_unlock();
  free_many();
}

// It has no gap pages, so nobody looks for some.
static void check_other_heap(void) {
  mi_heap_t* heap = mi_heap_new();
  uint64_t   most_looks;
  size_t     most_made;
  fill_many(heap, n_many / 16);
  ask(_mi_thread_theap_of(heap), heap, &most_looks, &most_made);
  CHECK_FOR(most_looks < 10, "%zu pages were looked at", (size_t)most_looks);
  CHECK_EQ(most_made, 0);
  free_many();
  mi_heap_destroy(heap);
}

// As many gap pages as maps can be numbered, 4 GiB: nobody looks for more, until one is given back.
static void check_all_maps(void) {
  static size_t maps[UINT16_MAX];
  mi_theap_t*   theap = _mi_thread_theap();
  uint64_t      most_looks;
  size_t        most_made, n_maps = 0;
  while (n_maps < UINT16_MAX && _mi_gap_map_new(&maps[n_maps])) n_maps++;
  CHECK_FOR(n_maps > UINT16_MAX - 64 && n_maps < UINT16_MAX, "%zu maps", n_maps);
  _mi_background_lock(); // as above
  fill_many(mi_heap_main(), n_many);
  ask(theap, mi_heap_main(), &most_looks, &most_made);
  CHECK_FOR(most_looks < 10, "%zu pages were looked at in vain", (size_t)most_looks);
  CHECK_EQ(most_made, 0);
  CHECK(_mi_gap_map_none_left());
  while (n_maps > 0) _mi_gap_map_free(maps[--n_maps]);
  CHECK(!_mi_gap_map_none_left());
  for (size_t i = 0; i < n_large; i++) mi_free(large[i]);
  ask(theap, mi_heap_main(), &most_looks, &most_made);
  CHECK(most_made > 0);
  _mi_background_unlock();
  free_many();
}

// Without memory for a map one page is tried, not each of the many.
static void check_refused_maps(void) {
  static size_t maps[UINT16_MAX];
  mi_theap_t*   theap = _mi_thread_theap();
  size_t        n_maps = 0, most = 0;
  _mi_background_lock(); // as above
  fill_many(mi_heap_main(), n_many);
  memset(large, 0, sizeof(large));
  _mi_prim_fail_nth(1, true);
  while (n_maps < UINT16_MAX && _mi_gap_map_new(&maps[n_maps])) n_maps++;
  CHECK(!_mi_gap_map_none_left());
  _mi_presence_enter(theap);
  for (size_t i = 0; i < 1000; i++) {
    _mi_prim_fail_nth(1, true);
    CHECK(_mi_sparse_take(theap, _mi_size_class_of(8000)).first == NULL);
    size_t n = _mi_prim_fail_nth(1, true);
    if (n > most) most = n;
  }
  _mi_presence_leave(theap);
  _mi_prim_fail_nth(0, false);
  printf("at most %zu requests to the system for one page\n", most);
  CHECK(most > 0 && most < 100);
  while (n_maps > 0) _mi_gap_map_free(maps[--n_maps]);
  _mi_background_unlock();
  free_many();
}

int main(void) {
  watchdog(60);
  mi_option_set(mi_option_purge_delay, -1); // no thread of ours that takes back what is idle
  mi_free(mi_malloc(1));
  mi_collect(true);
  CHECK_EQ(page_count(), 0);
  if (MI_GAPS) {
    if (_mi_prim_machine_memory() >= GiB) check_bounded();
    else test_skip("how much one call does", "the machine has too little memory");
    check_emptied_by_others();
    check_other_heap();
    check_refused_maps();
    check_all_maps();
    check_shared();
  }
  else test_skip("gap pages", "this build has none");
  return check_result();
}
