// Proves: the list of a heap's pages, their heap links and the theaps of its threads are right from its beginning to its
// end, whoever ends it; a thread whose default heap was ended goes on with the main heap; what a thread remembers of a heap
// is not taken for another at the same address; heaps and theaps are used again, so that their number is bounded by what
// there was at a time; subprocesses.
#include "../check.h"
#include "../modes/support.h"
#include "../sink.h"
#include "mimalloc-stats.h"
#include "mimalloc.h"
#include "base/mode.h"
#include "heap/pool.h"
#include "heap/thread.h"
#include "support/stat.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <sys/wait.h>

#if TEST_TSAN
const char* __tsan_default_options(void);
const char* __tsan_default_options(void) {
  return "die_after_fork=0";
}
#endif

static int64_t page_count(void) {
  return mi_load_relaxed(&_mi_stat_live.pages.current);
}

static size_t theap_count(void) {
  size_t n = 0;
  for (mi_theap_t* theap = _mi_registry_first(); theap != NULL; theap = theap->next) n++;
  return n;
}

static mi_heap_t* owner_of(const void* p) {
  return mi_load_relaxed(&_mi_page_heap_link(_mi_page_of(p))->heap);
}

static void ignore_error(int err, void* arg) {
  (void)err;
  (void)arg;
}

static void run_thread(void* (*body)(void*), void* arg) {
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, NULL, body, arg), 0);
  pthread_join(thread, NULL);
}

// ---- pages ----------------------------------------------------------------------------------------------------------

enum { n_sizes = 8 };
static const size_t sizes[n_sizes] = {8, 100, 1000, 5000, 20000, 100000, 500000, 3000000};

static bool is_listed(const mi_heap_t* heap, const mi_page_t* page) {
  for (const mi_page_t* p = heap->pages; p != NULL; p = _mi_page_heap_link(p)->next) {
    if (p == page) return true;
  }
  return false;
}

static void check_pages(void) {
  void*      blocks[n_sizes];
  mi_heap_t* heap = mi_heap_new();
  mi_heap_t* other = mi_heap_new();
  CHECK_EQ(heap->n_pages, 0);
  for (size_t i = 0; i < n_sizes; i++) {
    blocks[i] = mi_heap_malloc(heap, sizes[i]);
    CHECK_FOR(_mi_page_has(_mi_page_of(blocks[i]), MI_PAGE_IN_HEAP), "size %zu", sizes[i]);
    CHECK_FOR(owner_of(blocks[i]) == heap && is_listed(heap, _mi_page_of(blocks[i])), "size %zu", sizes[i]);
    CHECK_EQ(heap->n_pages, i + 1);
  }
  void* p = mi_heap_malloc(other, 8);
  CHECK(owner_of(p) == other && other->n_pages == 1);
  mi_free(blocks[3]);
  mi_free(blocks[7]);
  mi_heap_collect(heap, false);
  CHECK_EQ(heap->n_pages, n_sizes - 2);
  CHECK(is_listed(heap, _mi_page_of(blocks[0])) && is_listed(heap, _mi_page_of(blocks[6])));
  for (size_t i = 0; i < n_sizes; i++) {
    if (i != 3 && i != 7) mi_free(blocks[i]);
  }
  mi_heap_collect(heap, false);
  CHECK(heap->n_pages == 0 && heap->pages == NULL);
  CHECK(mi_heap_check(NULL));
  mi_heap_destroy(heap);
  mi_heap_destroy(other);
  mi_collect(true);
  CHECK_EQ(page_count(), 0);
}

// ---- deleting -------------------------------------------------------------------------------------------------------

typedef struct share_s {
  mi_heap_t*        heap;
  void*             blocks[n_sizes];
  pthread_barrier_t barrier;
} share_t;

static void* fill(void* arg) {
  share_t* s = (share_t*)arg;
  for (size_t i = 0; i < n_sizes; i++) {
    s->blocks[i] = mi_heap_malloc(s->heap, sizes[i]);
    pattern_fill(s->blocks[i], 0, sizes[i], i);
  }
  return NULL;
}

static void check_is_mains(const void* p) {
  CHECK(mi_heap_of(p) == &_mi_heap_main && mi_heap_contains(NULL, p));
}

static void check_and_free(share_t* s) {
  for (size_t i = 0; i < n_sizes; i++) {
    check_is_mains(s->blocks[i]);
    CHECK_FOR(pattern_check(s->blocks[i], sizes[i], i) == sizes[i], "size %zu", sizes[i]);
    mi_free(s->blocks[i]);
  }
}

// With pages OWNED by the thread itself, SHARED by one that is gone, and PARKED (one block a page).
static void check_delete(void) {
  share_t mine, theirs;
  mine.heap = theirs.heap = mi_heap_new();
  fill(&mine);
  run_thread(&fill, &theirs);
  CHECK(mi_heap_check(NULL));
  mi_heap_t* heap = mine.heap;
  mi_heap_delete(heap);
  CHECK(!_mi_heap_is_live(heap) && heap->pages == NULL && heap->n_pages == 0 && heap->theaps == NULL);
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) CHECK(mi_load_relaxed(&heap->pool.first[cls]) == NULL);
  CHECK(_mi_theap_backing()->in_thread.next == NULL);
  CHECK(mi_heap_check(NULL));
  check_and_free(&mine);
  check_and_free(&theirs);
  mi_collect(true);
  CHECK_EQ(page_count(), 0);
}

// The same, destroyed: nothing is left of it in the counters.
static void check_destroy(void) {
  share_t mine, theirs;
  int64_t n_shared = _mi_pool_count().current;
  int64_t n_huge = mi_load_relaxed(&_mi_stat_live.malloc_huge.current);
  mine.heap = theirs.heap = mi_heap_new();
  fill(&mine);
  run_thread(&fill, &theirs);
  CHECK(_mi_pool_count().current > n_shared);
  mi_heap_destroy(mine.heap);
  CHECK_EQ(page_count(), 0);
  CHECK_EQ(_mi_pool_count().current, n_shared);
  CHECK_EQ(mi_load_relaxed(&_mi_stat_live.malloc_huge.current), n_huge);
  CHECK(mine.heap->pages == NULL && mine.heap->theaps == NULL && _mi_theap_backing()->in_thread.next == NULL);
  CHECK(mi_heap_check(NULL));
}

// ---- a thread whose heap is ended by another ------------------------------------------------------------------------

static void* use_while_ended(void* arg) {
  share_t* s = (share_t*)arg;
  mi_free(mi_malloc(1));
  mi_theap_t* backing = _mi_theap_backing();
  CHECK(mi_heap_set_default(s->heap) == &_mi_heap_main);
  s->blocks[0] = mi_malloc(100);
  CHECK(mi_heap_of(s->blocks[0]) == s->heap);
  pthread_barrier_wait(&s->barrier);
  pthread_barrier_wait(&s->barrier);
  // s->heap is another one by now.
  CHECK(_mi_theap_backing() == backing);
  CHECK(mi_heap_get_default() == &_mi_heap_main);
  for (size_t i = 1; i < n_sizes; i++) {
    s->blocks[i] = mi_malloc(sizes[i]);
    CHECK_FOR(mi_heap_of(s->blocks[i]) == &_mi_heap_main, "size %zu", sizes[i]);
    memset(s->blocks[i], 1, sizes[i]);
  }
  mi_collect(false);
  CHECK(_mi_theap_default == backing && backing->in_thread.next == NULL);
  for (size_t i = 1; i < n_sizes; i++) mi_free(s->blocks[i]);
  pthread_barrier_wait(&s->barrier);
  return NULL;
}

static void check_ended_by_another(bool destroy) {
  share_t   s;
  pthread_t thread;
  s.heap = mi_heap_new();
  pthread_barrier_init(&s.barrier, NULL, 2);
  pthread_create(&thread, NULL, &use_while_ended, &s);
  pthread_barrier_wait(&s.barrier);
  mi_heap_t* ended = s.heap;
  if (destroy) mi_heap_destroy(s.heap);
  else mi_heap_delete(s.heap);
  CHECK(mi_heap_check(NULL));
  s.heap = mi_heap_new();
  CHECK(s.heap != ended); // Q8: not before the other thread has let go of its theap
  void* p = mi_heap_malloc(s.heap, 100);
  pthread_barrier_wait(&s.barrier);
  pthread_barrier_wait(&s.barrier);
  CHECK(mi_heap_of(p) == s.heap);
  mi_heap_t* third = mi_heap_new();
  CHECK(third == ended);
  mi_heap_destroy(third);
  mi_heap_destroy(s.heap);
  pthread_join(thread, NULL);
  pthread_barrier_destroy(&s.barrier);
  if (!destroy) {
    check_is_mains(s.blocks[0]);
    mi_free(s.blocks[0]);
  }
  CHECK(mi_heap_check(NULL));
  mi_collect(true);
  CHECK_EQ(page_count(), 0);
}

static atomic_int turn; // of what threads do in turn

static void wait_for(int expected) {
  for (int n = 0; atomic_load(&turn) != expected; n++) {
    if (n % 1000 == 999) sched_yield();
  }
}

// ---- frees that wait while the heap is deleted -----------------------------------------------------------------------

static void* delete_it(void* heap) {
  mi_heap_delete((mi_heap_t*)heap);
  return NULL;
}

static void* free_it(void* block) {
  mi_free(mi_malloc(1));
  atomic_store(&turn, 1);
  wait_for(2);
  mi_free(block);
  return NULL;
}

// Q2: the free waits for the lock of the heap; by the time it has it, the page is the main heap's.
static void check_waiting_free(size_t size) {
  share_t   s;
  pthread_t deleter, freer;
  s.heap = mi_heap_new();
  run_thread(&fill, &s); // one block each in pages that are SHARED or large
  size_t which = 0;
  while (sizes[which] != size) which++;
  atomic_store(&turn, 0);
  pthread_create(&freer, NULL, &free_it, s.blocks[which]);
  wait_for(1);
  _mi_lock_acquire(&s.heap->lock);
  pthread_create(&deleter, NULL, &delete_it, s.heap);
  sleep_ms(20);
  atomic_store(&turn, 2);
  sleep_ms(20);
  _mi_lock_release(&s.heap->lock);
  pthread_join(deleter, NULL);
  pthread_join(freer, NULL);
  CHECK(s.heap->n_pages == 0 && s.heap->pages == NULL);
  CHECK(mi_load_relaxed(&s.heap->pool.first[_mi_size_class_of(mi_min(size, MI_CLASS_SIZE_MAX))]) == NULL);
  CHECK(mi_heap_check(NULL));
  CHECK(MI_HARDENED || _mi_page_of(s.blocks[which]) == NULL); // where it waits, so does its page
  for (size_t i = 0; i < n_sizes; i++) {
    if (i != which) mi_free(s.blocks[i]);
  }
  mi_collect(true);
  CHECK_EQ(page_count(), 0);
}

// ---- ids ------------------------------------------------------------------------------------------------------------

// Q5: a handle that was remembered with the id does not match a younger heap at the same address.
static void check_ids(void) {
  mi_heap_t* heap = mi_heap_new();
  mi_free(mi_heap_malloc(heap, 100));
  mi_theap_t*       backing = _mi_theap_backing();
  mi_theap_cached_t old = *_mi_heap_cached(backing, heap);
  uint64_t          id = mi_load_relaxed(&heap->id);
  CHECK(old.id == id && old.theap->heap == heap);
  mi_heap_destroy(heap);
  CHECK_EQ(mi_load_relaxed(&heap->id), 0);
  for (int i = 0; i < 3 * MI_THEAP_CACHE_SIZE; i++) {
    mi_heap_t* younger = mi_heap_new();
    CHECK(younger == heap && mi_load_relaxed(&younger->id) > id);
    *_mi_heap_cached(backing, younger) = old;
    CHECK(_mi_directory_find(&backing->directory, id) == NULL);
    void* p = mi_heap_malloc(younger, 100);
    CHECK(mi_heap_of(p) == younger);
    CHECK(_mi_heap_cached(backing, younger)->id == mi_load_relaxed(&younger->id));
    CHECK(mi_heap_check(NULL));
    mi_heap_destroy(younger);
  }
  // A heap that is gone has id 0, and so have entries that are empty.
  memset(backing->cache, 0, sizeof(backing->cache));
  mi_register_error(&ignore_error, NULL);
  CHECK(mi_heap_malloc(heap, 100) == NULL && errno == ENOMEM);
  mi_register_error(NULL, NULL);
}

// ---- the end of a heap in the hook of a malloc from it ---------------------------------------------------------------

static mi_heap_t* hooked_heap;
static bool       hook_destroys;

static void end_in_hook(bool force, unsigned long long heartbeat, void* arg) {
  (void)force;
  (void)heartbeat;
  (void)arg;
  mi_heap_t* heap = hooked_heap;
  hooked_heap = NULL;
  if (heap == NULL) return;
  if (hook_destroys) mi_heap_destroy(heap);
  else mi_heap_delete(heap);
}

static void check_end_in_hook(bool destroy) {
  enum { n_blocks = 300, size = 200000 }; // most mallocs are slow
  static void* blocks[n_blocks];
  size_t       n = 0, n_ended = 0;
  hook_destroys = destroy;
  hooked_heap = mi_heap_new();
  CHECK(mi_heap_set_default(hooked_heap) == &_mi_heap_main);
  mi_register_deferred_free(&end_in_hook, NULL);
  for (; hooked_heap != NULL && n < n_blocks; n++) {
    n_ended = n;
    blocks[n] = mi_malloc(size);
  }
  mi_register_deferred_free(NULL, NULL);
  CHECK(n < n_blocks && mi_heap_get_default() == &_mi_heap_main);
  check_is_mains(blocks[n - 1]);
  CHECK(mi_heap_check(NULL));
  for (size_t i = (destroy ? n_ended : 0); i < n; i++) mi_free(blocks[i]);
  mi_collect(true);
  CHECK_EQ(page_count(), 0);
}

// ---- many heaps in a thread -----------------------------------------------------------------------------------------

// What is found in bins takes no lock, however many heaps the thread uses: it would wait for ever.
static void check_without_lock(void) {
  enum { n_heaps = 64 };
  mi_heap_t* heaps[n_heaps];
  void*      p[n_heaps];
  for (size_t i = 0; i < n_heaps; i++) {
    heaps[i] = mi_heap_new();
    mi_free(mi_heap_malloc(heaps[i], 64));
  }
  _mi_lock_acquire(&_mi_registry_lock);
  for (size_t round = 0; round < 10; round++) {
    for (size_t i = 0; i < n_heaps; i++) p[i] = mi_heap_malloc(heaps[i], 64);
    for (size_t i = 0; i < n_heaps; i++) mi_free(p[i]);
  }
  _mi_lock_release(&_mi_registry_lock);
  for (size_t i = 0; i < n_heaps; i++) {
    CHECK(mi_heap_of(p[i]) == heaps[i]);
    mi_heap_destroy(heaps[i]);
  }
}

// ---- visits ---------------------------------------------------------------------------------------------------------

enum { n_visited_heaps = 60, n_nested = 20 };
static mi_heap_t* visited_heaps[n_visited_heaps];
static uint64_t   visited_id;
static size_t     n_visited;
static jmp_buf    visit_left;

// Ends the heap itself, or those that follow.
static bool visit_and_end(mi_heap_t* heap, void* arg) {
  (void)arg;
  uint64_t id = mi_load_relaxed(&heap->id);
  CHECK_FOR(id > visited_id, "heap %zu after %zu", (size_t)id, (size_t)visited_id);
  visited_id = id;
  n_visited++;
  for (size_t i = 0; i + 2 < n_visited_heaps; i++) {
    if (visited_heaps[i] != heap) continue;
    if (i % 6 == 0) mi_heap_destroy(visited_heaps[i]);
    if (i % 6 == 2) mi_heap_destroy(visited_heaps[i + 1]);
    if (i % 6 == 2) mi_heap_delete(visited_heaps[i]);
  }
  return true;
}

// More visits at a time than there are cursors.
static bool visit_and_nest(mi_heap_t* heap, void* arg) {
  size_t* depth = (size_t*)arg;
  CHECK(_mi_heap_is_live(heap));
  n_visited++;
  if (*depth < n_nested) {
    ++*depth;
    CHECK(_mi_heap_visit(NULL, &visit_and_nest, arg));
  }
  return true;
}

static bool visit_and_leave(mi_heap_t* heap, void* arg) {
  (void)arg;
  if (heap == visited_heaps[0]) longjmp(visit_left, 1);
  return true;
}

static void check_visits(void) {
  size_t depth = 0;
  for (volatile int i = 0; i < 2; i++) {
    for (size_t k = 0; k < n_visited_heaps; k++) visited_heaps[k] = mi_heap_new();
    n_visited = visited_id = 0;
    CHECK(_mi_heap_visit(NULL, &visit_and_end, NULL));
    CHECK_EQ(n_visited, 1 + n_visited_heaps - n_visited_heaps / 6);
    n_visited = depth = 0;
    CHECK(_mi_heap_visit(NULL, &visit_and_nest, &depth));
    CHECK_EQ(n_visited, (n_nested + 1) * (1 + n_visited_heaps / 2));
    for (size_t k = 0; k < n_visited_heaps; k++) {
      if (k % 6 == 1 || k % 6 > 3) mi_heap_destroy(visited_heaps[k]);
    }
    visited_heaps[0] = mi_heap_new();
    for (volatile int k = 0; k < 40; k++) { // their cursors are left behind
      if (setjmp(visit_left) == 0) _mi_heap_visit(NULL, &visit_and_leave, NULL);
    }
    mi_heap_destroy(visited_heaps[0]);
  }
}

// ---- bounded numbers ------------------------------------------------------------------------------------------------

static void* use_heap(void* arg) {
  mi_free(mi_heap_malloc((mi_heap_t*)arg, 100));
  return NULL;
}

static void check_cycles(bool destroy, bool keep_block) {
  size_t n_theaps = 0;
  for (int i = 0; i < 2000; i++) {
    mi_heap_t* heap = mi_heap_new();
    void*      p = mi_heap_malloc(heap, 100);
    if (i % 20 == 0) run_thread(&use_heap, heap);
    if (!destroy && !keep_block) mi_free(p);
    if (destroy) mi_heap_destroy(heap);
    else mi_heap_delete(heap);
    if (keep_block) mi_free(p);
    if (i == 500) n_theaps = theap_count();
  }
  CHECK_FOR(theap_count() <= n_theaps + 8, "%zu theaps, then %zu", n_theaps, theap_count());
  CHECK(mi_heap_check(NULL));
  mi_collect(true);
  CHECK_EQ(page_count(), 0);
}

enum { n_heaps = 2000 };
static share_t many[n_heaps];

static void* use_many(void* arg) {
  (void)arg;
  for (size_t i = 0; i < n_heaps; i++) many[i].blocks[1] = mi_heap_malloc(many[i].heap, 200);
  for (size_t i = 0; i < n_heaps; i++) {
    CHECK(mi_heap_of(many[i].blocks[0]) == many[i].heap && mi_heap_of(many[i].blocks[1]) == many[i].heap);
    mi_free(many[i].blocks[0]);
  }
  return NULL;
}

static pthread_barrier_t all_have_used;

static void* use_heap_with_others(void* arg) {
  use_heap(arg);
  pthread_barrier_wait(&all_have_used);
  return NULL;
}

// The theaps that threads had of a heap, many of which have ended, serve other heaps when it ends.
static void check_theaps_again(void) {
  enum { n_threads = 300 };
  size_t n_first = 0;
  pthread_barrier_init(&all_have_used, NULL, n_threads); // all have theirs at the same time
  for (int i = 0; i < 6; i++) {
    mi_heap_t* heap = mi_heap_new();
    pthread_t  threads[n_threads];
    for (size_t k = 0; k < n_threads; k++) CHECK_EQ(pthread_create(&threads[k], NULL, &use_heap_with_others, heap), 0);
    for (size_t k = 0; k < n_threads; k++) pthread_join(threads[k], NULL);
    if (i % 2 == 0) mi_heap_destroy(heap);
    else mi_heap_delete(heap);
    if (i == 2) n_first = theap_count();
  }
  pthread_barrier_destroy(&all_have_used);
  CHECK_FOR(theap_count() <= n_first + n_threads / 2, "%zu theaps, then %zu", n_first, theap_count());
}

// 2000 heaps at a time, each of two threads.
static void check_many(void) {
  size_t n_theaps = 0;
  for (int round = 0; round < 3; round++) {
    for (size_t i = 0; i < n_heaps; i++) {
      many[i].heap = mi_heap_new();
      CHECK_FOR(many[i].heap != NULL, "heap %zu", i);
      many[i].blocks[0] = mi_heap_malloc(many[i].heap, 100);
    }
    run_thread(&use_many, NULL);
    CHECK(mi_heap_check(NULL));
    for (size_t i = 0; i < n_heaps; i++) mi_heap_destroy(many[i].heap);
    if (round == 0) n_theaps = theap_count();
  }
  CHECK_FOR(theap_count() <= n_theaps + 8, "%zu theaps, then %zu", n_theaps, theap_count());
  mi_collect(true);
  CHECK_EQ(page_count(), 0);
}

// ---- a large block that moves while its heap is deleted -----------------------------------------------------------------

enum { large_size = 640 * 1024 };

static void* fill_large(void* arg) {
  share_t* s = (share_t*)arg;
  for (size_t i = 0; i < 3; i++) s->blocks[i] = mi_heap_malloc(s->heap, large_size);
  return NULL;
}

static void* grow(void* arg) {
  share_t* s = (share_t*)arg;
  mi_free(mi_malloc(1));
  atomic_store(&turn, 1);
  wait_for(2);
  s->blocks[1] = mi_realloc(s->blocks[1], 3 * large_size);
  return NULL;
}

// Its new page is made for the heap that the block belongs to by then: never for that which is gone, and whose memory is
// another heap's by now.
static void check_moving_large(void) {
  share_t   s;
  pthread_t thread, deleter;
  s.heap = mi_heap_new();
  run_thread(&fill_large, &s);
  void* before = s.blocks[1]; // there is no room behind it
  pattern_fill(before, 0, large_size, 1);
  atomic_store(&turn, 0);
  pthread_create(&thread, NULL, &grow, &s);
  wait_for(1);
  _mi_lock_acquire(&s.heap->lock);
  pthread_create(&deleter, NULL, &delete_it, s.heap);
  sleep_ms(20);
  atomic_store(&turn, 2);
  sleep_ms(20); // both wait for the heap, the one that deletes it first
  _mi_lock_release(&s.heap->lock);
  pthread_join(deleter, NULL);
  pthread_join(thread, NULL);
  mi_heap_t* younger = mi_heap_new();
  CHECK(younger == s.heap && s.blocks[1] != before);
  check_is_mains(s.blocks[1]);
  mi_heap_destroy(younger);
  CHECK_EQ(pattern_check(s.blocks[1], large_size, 1), large_size);
  for (size_t i = 0; i < 3; i++) mi_free(s.blocks[i]);
  CHECK(mi_heap_check(NULL));
}

// ---- subprocesses ---------------------------------------------------------------------------------------------------

typedef struct sub_s {
  mi_subproc_id_t   id;
  mi_heap_t*        main;
  mi_heap_t*        heap;
  void*             kept[2];
  pthread_barrier_t barrier;
} sub_t;

// A structure at level 3 of the interface, a pointer at the others.
static bool is_same(mi_subproc_id_t a, mi_subproc_id_t b) {
  return memcmp(&a, &b, sizeof(a)) == 0;
}

static void* live_in(void* arg) {
  sub_t* s = (sub_t*)arg;
  mi_subproc_add_current_thread(s->id);
  CHECK(is_same(mi_subproc_current(), s->id));
  s->main = mi_heap_main();
  CHECK(s->main != &_mi_heap_main && mi_heap_get_default() == s->main);
  s->kept[0] = mi_malloc(100);
  CHECK(mi_heap_of(s->kept[0]) == s->main);
  s->heap = mi_heap_new();
  s->kept[1] = mi_heap_malloc(s->heap, 100);
  void* large = mi_malloc(3 * MiB);
  CHECK(mi_heap_of(large) == s->main);
  mi_free(large);
  pthread_barrier_wait(&s->barrier);
  pthread_barrier_wait(&s->barrier);
  return NULL;
}

static bool count_heaps(mi_heap_t* heap, void* arg) {
  CHECK(_mi_heap_is_live(heap));
  ++*(size_t*)arg;
  return true;
}

static bool stop_at_once(mi_heap_t* heap, void* arg) {
  count_heaps(heap, arg);
  return false;
}

static void check_subproc(bool destroy) {
  sub_t     s;
  pthread_t thread;
  size_t    n = 0;
  s.id = mi_subproc_new();
  CHECK(!is_same(s.id, mi_subproc_main()) && is_same(mi_subproc_current(), mi_subproc_main()));
  pthread_barrier_init(&s.barrier, NULL, 2);
  pthread_create(&thread, NULL, &live_in, &s);
  pthread_barrier_wait(&s.barrier);
  CHECK(mi_subproc_visit_heaps(s.id, &count_heaps, &n));
  CHECK_EQ(n, 2);
  CHECK(!mi_subproc_visit_heaps(s.id, &stop_at_once, &n));
  CHECK_EQ(n, 3);
  CHECK(mi_heap_of(s.kept[0]) == s.main && mi_heap_of(s.kept[1]) == s.heap);
  CHECK(mi_heap_check(NULL));
  if (destroy) mi_subproc_destroy(s.id); // it has a thread
  else mi_subproc_delete(s.id);
  CHECK(_mi_heap_is_live(s.main) && _mi_heap_is_live(s.heap));
  pthread_barrier_wait(&s.barrier);
  pthread_join(thread, NULL);
  CHECK(mi_heap_of(s.kept[0]) == s.main && mi_heap_of(s.kept[1]) == s.heap);
  if (!destroy) {
    mi_subproc_delete(s.id); // there is memory in use
    CHECK(_mi_heap_is_live(s.main) && _mi_heap_is_live(s.heap));
    mi_free(s.kept[0]);
    mi_subproc_delete(s.id);
    CHECK(_mi_heap_is_live(s.main) && _mi_heap_is_live(s.heap));
    mi_free(s.kept[1]);
    mi_subproc_delete(s.id);
  }
  else {
    mi_subproc_destroy(s.id);
  }
  CHECK(!_mi_heap_is_live(s.main) && !_mi_heap_is_live(s.heap));
  CHECK(mi_heap_check(NULL));
  mi_collect(true);
  CHECK_EQ(page_count(), 0);
  pthread_barrier_destroy(&s.barrier);
}

static void check_subproc_numbers(void) {
  size_t n_theaps = 0;
  for (int i = 0; i < 50; i++) {
    check_subproc(i % 2 == 0);
    if (i == 10) n_theaps = theap_count();
  }
  CHECK_FOR(theap_count() <= n_theaps + 8, "%zu theaps, then %zu", n_theaps, theap_count());
}

// In the child of a fork a subprocess has no threads any more, so it can be ended.
static void check_subproc_fork(void) {
  sub_t     s;
  pthread_t thread;
  int       status = -1;
  s.id = mi_subproc_new();
  pthread_barrier_init(&s.barrier, NULL, 2);
  pthread_create(&thread, NULL, &live_in, &s);
  pthread_barrier_wait(&s.barrier);
  pid_t pid = fork();
  if (pid == 0) {
    mi_subproc_destroy(s.id);
    _exit(_mi_heap_is_live(s.main) || _mi_heap_is_live(s.heap) || !mi_heap_check(NULL));
  }
  waitpid(pid, &status, 0);
  CHECK_EQ(status, 0);
  pthread_barrier_wait(&s.barrier);
  pthread_join(thread, NULL);
  mi_subproc_destroy(s.id);
}

// Why a thread is not moved is said, and to the handler of errors if there is no memory.
static void note_error(int err, void* arg) {
  *(int*)arg = err;
}

static void* join_in_vain(void* arg) {
  static sink_t   said;
  mi_subproc_id_t id = *(mi_subproc_id_t*)arg;
  int             error = 0;
  mi_heap_t*      heaps[1000];
  for (size_t i = 0; i < COUNT_OF(heaps); i++) heaps[i] = mi_heap_new();
  mi_register_output(&sink_write, &said);
  mi_register_error(&note_error, &error);
  sink_clear(&said);
  _mi_prim_fail_nth(1, true);
  size_t n = 0;
  do mi_heap_set_default(heaps[n]);
  while (mi_heap_get_default() == heaps[n] && ++n < COUNT_OF(heaps));
  CHECK(n < COUNT_OF(heaps)); // there is no memory for another theap
  error = 0;
  sink_clear(&said);
  mi_subproc_add_current_thread(id);
  _mi_prim_fail_nth(0, false);
  CHECK_EQ(error, ENOMEM);
  CHECK(sink_has(&said, "out of memory") && !sink_has(&said, "once"));
  mi_subproc_destroy(id);
  sink_clear(&said);
  mi_subproc_add_current_thread(id);
  CHECK(sink_has(&said, "has ended"));
  for (size_t i = 0; i < COUNT_OF(heaps); i++) mi_heap_delete(heaps[i]);
  mi_register_error(NULL, NULL);
  mi_register_output(NULL, NULL);
  return NULL;
}

static void check_join_in_vain(void) {
  pthread_t       thread;
  mi_subproc_id_t id = mi_subproc_new();
  CHECK_EQ(pthread_create(&thread, NULL, &join_in_vain, &id), 0);
  pthread_join(thread, NULL);
}

int main(void) {
  watchdog(120);
  mi_option_set(mi_option_purge_delay, -1); // no thread of ours that takes back what is idle
  mi_option_set(mi_option_show_errors, 1);
  mi_free(mi_malloc(1));
  mi_collect(true);
  check_join_in_vain(); // first: there are no theaps that can be used again
  check_pages();
  check_delete();
  check_destroy();
  check_ended_by_another(false);
  check_ended_by_another(true);
  for (int i = 0; i < 5; i++) {
    check_waiting_free(1000);
    check_waiting_free(3000000);
  }
  check_ids();
  check_end_in_hook(false);
  check_end_in_hook(true);
  check_without_lock();
  check_visits();
  check_cycles(true, false);
  check_cycles(false, false);
  check_cycles(false, true);
  check_many();
  check_theaps_again();
  for (int i = 0; i < 5; i++) check_moving_large();
  check_subproc_numbers();
  check_subproc_fork();
  return check_result();
}
