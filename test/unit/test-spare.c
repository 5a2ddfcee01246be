// Proves: empty pages wait for the next requests of their class (spare.h), whichever thread emptied them, no more of them than are
// asked for (EP2); rounds (EP4), mi_collect, large blocks and requests of other classes get them back; nobody takes them for pages
// in use (EP1).
#include <pthread.h>
#include <sched.h>
#include "../check.h"
#include "../modes/support.h"
#include "arena/purge.h"
#include "heap/background.h"
#include "heap/event.h"
#include "heap/spare.h"
#include "heap/trim.h"
#include "mimalloc.h"
#include "support/stat.h"

enum { n_blocks = 512 };

static bool const   may_wait = !MI_HARDENED && !MI_TRACK;
static void*        blocks[n_blocks];
static bool         is_own; // the thread that allocates frees, too
static const size_t sizes[] = {1000, 8000, 30000};

static int64_t n_pages(void) {
  return mi_load_relaxed(&_mi_stat_live.pages.current);
}

// Slices that wait; what else counts as kept is what bins have grown by (grow.h).
static size_t n_waiting(void) {
  return _mi_purge_n_backed() - _mi_chunk_purgeable() - _mi_theap_default->grown.n_slices;
}

static void malloc_all(size_t size) {
  for (size_t i = 0; i < n_blocks; i++) blocks[i] = mi_malloc(size);
}

static void* free_all(void* arg) {
  for (size_t i = 0; i < n_blocks; i++) mi_free(blocks[i]);
  return arg;
}

static void run(void* (*function)(void*)) {
  if (is_own) {
    function(NULL);
    return;
  }
  pthread_t thread;
  pthread_create(&thread, NULL, function, NULL);
  pthread_join(thread, NULL);
}

// What waited and goes was given back once: when it became empty.
static void check_numbers(size_t size) {
  malloc_all(size);
  run(&free_all);
  size_t          n = n_waiting();
  mi_stat_count_t pages = _mi_stat_read(&_mi_stat_live.pages), bytes = _mi_stat_read(&_mi_stat_live.page_committed);
  _mi_spare_drop_all();
  mi_stat_count_t pages_after = _mi_stat_read(&_mi_stat_live.pages);
  mi_stat_count_t bytes_after = _mi_stat_read(&_mi_stat_live.page_committed);
  CHECK(n > 0 && n_waiting() == 0);
  CHECK(pages_after.current == pages.current && pages_after.total == pages.total && pages_after.peak == pages.peak);
  CHECK(bytes_after.current == bytes.current && bytes_after.total == bytes.total && bytes_after.peak == bytes.peak);
}

// The next requests use what waits.
static void check_reuse(size_t size) {
  mi_collect(true);
  int64_t before = n_pages();
  malloc_all(size);
  run(&free_all);
  size_t n = n_waiting();
  CHECK_FOR(n > 0, "of %zu bytes no page waits", size);
  malloc_all(size);
  CHECK_FOR(n_waiting() <= n / 4, "%zu bytes: %zu slices wait, then %zu", size, n, n_waiting());
  run(&free_all);
  mi_collect(true);
  CHECK_EQ(n_waiting(), 0);
  CHECK(n_pages() <= before + 2);
}

// EP4: memory that was not backed is not taken for one class while as much waits for another.
static void check_relief(void) {
  enum { n = 256 };
  void* others[n];
  malloc_all(8000);
  run(&free_all);
  mi_collect(false); // all that waits goes, and stays backed
  malloc_all(8000);
  run(&free_all);
  _mi_purge_to(0);
  size_t n_before = n_waiting();
  for (size_t i = 0; i < n; i++) others[i] = mi_malloc(4000);
  CHECK_FOR(n_before > 0 && n_waiting() + n / 32 <= n_before, "%zu, then %zu wait", n_before, n_waiting());
  for (size_t i = 0; i < n; i++) mi_free(others[i]);
  mi_collect(true);
}

// EP4: before a large block is made, in any case.
static void check_large(void) {
  mi_free(mi_malloc(16 * MI_MiB)); // enough is free and backed
  malloc_all(30000);
  run(&free_all);
  _mi_trim_for_run(_mi_theap_default); // the page of blocks in a bin would wait only then
  size_t n_before = n_waiting();
  void*  large = mi_malloc(5 * MI_MiB);
  CHECK_FOR(n_before > 0 && n_waiting() + mi_min(n_before, 5 * MI_MiB / MI_SLICE_SIZE) <= n_before,
            "%zu, then %zu wait", n_before, n_waiting());
  mi_free(large);
  mi_collect(true);
}

// EP4: what one class of large blocks after the other needs is the same memory, although enough is free and backed.
static void check_classes(void) {
  static const size_t all[] = {70 * KiB, 80 * KiB, 100 * KiB, 120 * KiB, 160 * KiB, 200 * KiB, 250 * KiB};
  enum { n = 32 };
  size_t n_most = 0;
  mi_free(mi_malloc(16 * MI_MiB));
  for (size_t round = 0; round < 2; round++) {
    for (size_t i = 0; i < COUNT_OF(all); i++) {
      for (size_t j = 0; j < n; j++) blocks[j] = mi_malloc(all[i]);
      for (size_t j = 0; j < n; j++) mi_free(blocks[j]);
      n_most = mi_max(n_most, n_waiting());
    }
  }
  size_t largest = n * all[COUNT_OF(all) - 1] / MI_SLICE_SIZE;
  CHECK_FOR(n_most > 0 && n_most <= 2 * largest, "%zu slices wait, at most %zu were in use", n_most, largest);
  mi_collect(true);
}

// EP4, EP2: after a round in which none was used all go, and after another nothing is wanted.
static void check_rounds(size_t size) {
  malloc_all(size);
  run(&free_all);
  _mi_spare_drop_unused();
  _mi_spare_drop_unused();
  CHECK_EQ(n_waiting(), 0);
  malloc_all(size);
  _mi_spare_drop_unused();
  _mi_spare_drop_unused();
  run(&free_all);
  CHECK_EQ(n_waiting(), 0);
}

static size_t n_calls;

static void count_call(bool wake) {
  (void)wake;
  n_calls++;
}

enum { n_theirs = 8, n_beside = 16 }; // so far apart are blocks of different pages

static void* theirs[n_theirs * n_beside];

static void* malloc_theirs(void* arg) {
  for (size_t i = 0; i < COUNT_OF(theirs); i++) theirs[i] = mi_malloc(16000);
  return arg;
}

// Does a free that is not taken by a bin, of a block of another thread, look whether memory is to go back to the system?
static bool free_looks(void) {
  static size_t n_freed;
  _mi_theap_default->trim.n_slow_frees = 0; // it does not look for other reasons
  n_calls = 0;
  mi_free(theirs[n_freed]);
  theirs[n_freed] = NULL;
  n_freed += n_beside;
  return n_calls > 0;
}

// Allocates until a page was made, and if so wanted one of memory that is zero; forgets what was given back for pages before it.
static bool make_page(void** list, bool wants_zero) {
  const mi_class_state_t* state = &_mi_theap_default->classes[_mi_size_class_of(4000 + MI_PADDING_SIZE)];
  for (int tries = 0; tries < 5000; tries++) {
    size_t before = state->n_pages;
    _mi_theap_default->has_deleted = false;
    void** p = (void**)mi_malloc(4000);
    *p = *list;
    *list = p;
    if (state->n_pages > before && (!wants_zero || _mi_page_has(_mi_page_of(p), MI_PAGE_IS_ZERO))) return true;
  }
  return false;
}

static void free_list(void* list) {
  for (void* next; list != NULL; list = next) {
    next = *(void**)list;
    mi_free(list);
  }
}

// What malloc gives back for the page that it makes, before or after it is made, is seen by the next free that no bin
// takes, which may have to return it to the system; and none looks in vain.
static void check_looks(void) {
  void*     list = NULL;
  size_t    n_before;
  pthread_t thread;
  pthread_create(&thread, NULL, &malloc_theirs, NULL);
  pthread_join(thread, NULL);
  _mi_event_register(&count_call);
  mi_store_relaxed(&_mi_event_wanted, true);
  mi_collect(true);
  free_looks();
  CHECK(make_page(&list, true) && n_waiting() == 0);
  CHECK(!free_looks());
  for (int is_after = 0; is_after < 2; is_after++) {
    void* other = mi_malloc(16 * MI_MiB);
    malloc_all(8000);
    run(&free_all);
    mi_collect(false); // all that waits goes, and stays backed
    malloc_all(8000);
    run(&free_all);
    if (!is_after) _mi_spare_relieve(n_waiting() - 1); // one waits, which goes before
    if (!is_after) mi_free(other);
    _mi_purge_to(0);
    if (is_after) mi_free(other); // enough is free and backed, but not where pages are
    free_looks();
    n_before = n_waiting();
    CHECK(n_before > 0 && make_page(&list, is_after) && n_waiting() < n_before);
    CHECK_FOR(free_looks(), "after %d", is_after);
  }
  free_list(list);
  for (size_t i = 0; i < COUNT_OF(theirs); i++) mi_free(theirs[i]);
  mi_store_relaxed(&_mi_event_wanted, false);
  mi_collect(true);
}

// Full pages are parked only if there is another thread.
static pthread_mutex_t is_over = PTHREAD_MUTEX_INITIALIZER;
static size_t          n_others;

static void* wait_until_over(void* arg) {
  mi_free(mi_malloc(1));
  __atomic_store_n(&n_others, 1, __ATOMIC_RELEASE);
  pthread_mutex_lock(&is_over);
  pthread_mutex_unlock(&is_over);
  return arg;
}

// EP1, EP3
static void check_valid(size_t size) {
  malloc_all(size);
  run(&free_all);
  CHECK(mi_heap_check(NULL));
  mi_collect(true);
}

// Rounds are those of check_rounds: the thread that makes them waits.  With this lock mi_heap_check would wait, too.
static void check_all(void) {
  _mi_background_lock();
  for (size_t i = 0; i < COUNT_OF(sizes); i++) check_reuse(sizes[i]);
  for (size_t i = 0; i < COUNT_OF(sizes); i++) check_numbers(sizes[i]);
  check_relief();
  check_large();
  check_classes();
  for (size_t i = 0; i < COUNT_OF(sizes); i++) check_rounds(sizes[i]);
  _mi_background_unlock();
  for (size_t i = 0; i < COUNT_OF(sizes); i++) check_valid(sizes[i]);
}

int main(int argc, char** argv) {
  watchdog(120);
  test_seed(argc, argv);
  mi_option_set(mi_option_purge_delay, -1);
  mi_free(mi_malloc(1));
  if (!may_wait) {
    test_skip("pages that wait", "in this build none does");
    return skip_code;
  }
  pthread_t other;
  pthread_mutex_lock(&is_over);
  pthread_create(&other, NULL, &wait_until_over, NULL);
  while (__atomic_load_n(&n_others, __ATOMIC_ACQUIRE) == 0) sched_yield();
  check_all();
  is_own = true;
  check_all();
  check_looks();
  pthread_mutex_unlock(&is_over);
  pthread_join(other, NULL);
  return check_result();
}
