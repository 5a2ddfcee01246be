// Proves: a thread that ends after little work leaves its theap, with bins and pages, to the next thread that starts (WA4); one that
// did more does not, and no more than a bounded number of slices is left (WA3); rounds, mi_collect and visits of what ended threads
// left take it back (WA1); the blocks that such a thread has left behind can be freed and are visited; the child of a fork goes on.
// That memory was freed is said without the lock of the registry.
#include "heap/warm.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../check.h"
#include "../modes/support.h"
#include "arena/purge.h"
#include "heap/event.h"
#include "heap/idle.h"
#include "heap/registry.h"
#include "mimalloc.h"

enum { n_threads = 64, n_left = 10, size = 200 };

static bool const may_leave = !MI_HARDENED && !MI_TRACK;

static pthread_barrier_t barrier;
static void*             left[n_left]; // by the last thread that ran alone

// What a thread does: it leaves some blocks behind, and so many free ones of so many sizes in its bins and pages.
typedef struct task_s {
  size_t      n_blocks, n_sizes;
  bool        waits; // for all others
  mi_theap_t* theap; // which it had
  bool        was_warm;
  void*       left[n_left];
} task_t;

static void* run(void* arg) {
  task_t* task = (task_t*)arg;
  void**  blocks = (void**)calloc(task->n_blocks + 1, sizeof(void*)); // of libc
  for (size_t i = 0; i < n_left; i++) task->left[i] = mi_malloc(size);
  task->theap = _mi_theap_default;
  task->was_warm = (task->theap->bins[_mi_size_class_of(64 + MI_PADDING_SIZE)].head != NULL);
  for (size_t k = 0; k < task->n_sizes; k++) {
    for (size_t i = 0; i < task->n_blocks; i++) blocks[i] = mi_malloc(64 << k);
    for (size_t i = 0; i < task->n_blocks; i++) mi_free(blocks[i]);
  }
  free(blocks);
  if (task->waits) pthread_barrier_wait(&barrier);
  return NULL;
}

static task_t run_one(size_t n_blocks, size_t n_sizes) {
  task_t    task = {.n_blocks = n_blocks, .n_sizes = n_sizes};
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, NULL, &run, &task), 0);
  pthread_join(thread, NULL);
  memcpy(left, task.left, sizeof(left));
  return task;
}

static size_t free_left(void) {
  size_t n = 0;
  for (size_t i = 0; i < n_left; i++) {
    n += left[i] != NULL;
    mi_free(left[i]);
    left[i] = NULL;
  }
  return n;
}

static size_t n_warm_slices(void) {
  size_t n = 0;
  for (const mi_theap_t* theap = _mi_registry_first(); theap != NULL; theap = theap->next) n += theap->warm.n_slices;
  return n;
}

static bool is_empty(const mi_theap_t* theap) {
  bool is_empty = !_mi_theap_is_live(theap);
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    const mi_class_state_t* state = &theap->classes[cls];
    if (theap->bins[cls].head != NULL || state->queue.first != NULL || state->full.first != NULL) is_empty = false;
  }
  return is_empty;
}

static void check_next(void) {
  task_t first = run_one(20, 3);
  free_left();
  CHECK_EQ(n_warm_slices() > 0, may_leave);
  task_t next = run_one(20, 3);
  CHECK_EQ(next.theap == first.theap, may_leave);
  CHECK_EQ(next.was_warm, may_leave);
  CHECK_EQ(free_left(), n_left);
  CHECK(mi_heap_check(NULL));
  mi_collect(true);
  CHECK_EQ(n_warm_slices(), 0);
  CHECK(is_empty(first.theap));
  CHECK(mi_heap_check(NULL));
}

// Without rounds nothing would take back what is left.
static void check_without_thread(void) {
  _mi_purge_set_has_thread(false);
  task_t task = run_one(20, 3);
  CHECK(is_empty(task.theap));
  CHECK_EQ(n_warm_slices(), 0);
  free_left();
  _mi_purge_set_has_thread(true);
}

// WA3: so many pages of one class in use.
typedef struct hoard_s {
  size_t      n_pages;
  mi_theap_t* theap;
  void*       blocks[64 * (MI_WARM_MORE + 2)];
} hoard_t;

static void* run_hoard(void* arg) {
  hoard_t* hoard = (hoard_t*)arg;
  hoard->blocks[0] = mi_malloc(1000);
  size_t n = hoard->n_pages * _mi_page_of(hoard->blocks[0])->capacity;
  CHECK(n <= COUNT_OF(hoard->blocks));
  for (size_t i = 1; i < n; i++) hoard->blocks[i] = mi_malloc(1000);
  hoard->theap = _mi_theap_default;
  return NULL;
}

// One page of each class is not counted.
static void check_more(size_t n_pages) {
  static hoard_t hoard;
  pthread_t      thread;
  bool           is_left = (may_leave && n_pages <= 1 + MI_WARM_MORE);
  hoard = (hoard_t){.n_pages = n_pages};
  CHECK_EQ(pthread_create(&thread, NULL, &run_hoard, &hoard), 0);
  pthread_join(thread, NULL);
  CHECK_EQ(hoard.theap->warm.n_slices > 0, is_left);
  CHECK_EQ(n_warm_slices() > 0, is_left);
  CHECK_EQ(is_empty(hoard.theap), !is_left);
  for (size_t i = 0; i < COUNT_OF(hoard.blocks); i++) mi_free(hoard.blocks[i]);
  mi_collect(true);
}

static void check_all(void) {
  static task_t tasks[n_threads];
  pthread_t     threads[n_threads];
  size_t        n_warm = 0;
  pthread_barrier_init(&barrier, NULL, n_threads);
  for (size_t i = 0; i < n_threads; i++) {
    tasks[i] = (task_t){.n_blocks = 20, .n_sizes = 8, .waits = true};
    CHECK_EQ(pthread_create(&threads[i], NULL, &run, &tasks[i]), 0);
  }
  for (size_t i = 0; i < n_threads; i++) pthread_join(threads[i], NULL);
  CHECK_FOR(n_warm_slices() <= MI_WARM_SLICES, "%zu slices", n_warm_slices());
  for (size_t i = 0; i < n_threads; i++) {
    if (tasks[i].theap->warm.n_slices > 0) n_warm++;
    else CHECK(is_empty(tasks[i].theap));
  }
  CHECK_EQ(n_warm > 4, may_leave);
  CHECK(n_warm < n_threads);
  CHECK(mi_heap_check(NULL));
  mi_collect(true);
  for (size_t i = 0; i < n_threads; i++) {
    CHECK(is_empty(tasks[i].theap));
    for (size_t k = 0; k < n_left; k++) mi_free(tasks[i].left[k]);
  }
  pthread_barrier_destroy(&barrier);
}

// As from a thread that sleeps.
static void check_rounds(void) {
  task_t task = run_one(20, 3);
  bool   is_idle;
  for (int i = 0; i < 4; i++) {
    _mi_idle_round(&is_idle);
    sleep_ms(20);
  }
  CHECK_EQ(n_warm_slices(), 0);
  CHECK(is_empty(task.theap));
  CHECK_EQ(free_left(), n_left);
  CHECK(mi_heap_check(NULL));
}

// A round has asked for it, or has closed its bins, when the next thread takes it.
static void check_taken_in_rounds(int n_rounds) {
  task_t first = run_one(20, 3);
  bool   is_idle;
  free_left();
  for (int i = 0; i < n_rounds; i++) _mi_idle_round(&is_idle);
  task_t next = run_one(20, 3);
  CHECK_EQ(next.theap == first.theap, may_leave);
  free_left();
  CHECK(mi_heap_check(NULL));
  mi_collect(true);
}

static bool count_block(const mi_heap_t* heap, const mi_heap_area_t* area, void* block, size_t block_size, void* arg) {
  (void)heap, (void)area, (void)block_size;
  for (size_t i = 0; block != NULL && i < n_left; i++) *(size_t*)arg += (block == left[i]);
  return true;
}

static void check_visit(void) {
  size_t n = 0;
  run_one(20, 3);
  CHECK(mi_abandoned_visit_blocks(mi_subproc_main(), -1, true, &count_block, &n));
  CHECK_EQ(n, n_left);
  CHECK_EQ(n_warm_slices(), 0);
  free_left();
}

static void check_fork(void) {
  task_t first = run_one(20, 3);
  pid_t  pid = fork();
  if (pid == 0) {
    task_t next = run_one(20, 3);
    bool   ok = (n_warm_slices() <= MI_WARM_SLICES && next.theap != first.theap && mi_heap_check(NULL));
    free_left();
    mi_collect(true);
    _exit(ok && mi_heap_check(NULL) ? 0 : 1);
  }
  int status = -1;
  CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
  CHECK_EQ(status, 0);
  CHECK_EQ(run_one(20, 3).theap == first.theap, may_leave);
  free_left();
  mi_collect(true);
}

// ---- what it says -----------------------------------------------------------------------------------------------------

static int n_polls, n_polls_locked;

// A round takes that lock.
static void on_poll(bool wake) {
  (void)wake;
  n_polls++;
  if (!_mi_lock_try(&_mi_registry_lock)) n_polls_locked++;
  else _mi_lock_release(&_mi_registry_lock);
}

static void* run_large(void* arg) {
  mi_free(memset(mi_malloc(2 * MiB), 1, 2 * MiB)); // the theap keeps it
  return arg;
}

// Without a thread of the library, and with an observer, whoever frees slices makes a round.
static void check_told(void) {
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, NULL, &run_large, NULL), 0);
  pthread_join(thread, NULL);
  CHECK(n_warm_slices() > 0 || !may_leave);
  _mi_event_register(&on_poll);
  mi_store_relaxed(&_mi_event_wanted, true);
  _mi_warm_end_all();
  mi_store_relaxed(&_mi_event_wanted, false);
  CHECK_EQ(n_warm_slices(), 0);
  CHECK_FOR(n_polls > 0 && n_polls_locked == 0, "%d calls, %d under the lock", n_polls, n_polls_locked);
}

int main(void) {
  watchdog(60);
  mi_option_enable(mi_option_visit_abandoned);
  mi_option_set(mi_option_purge_delay, -1); // rounds are made here
  mi_free(mi_malloc(1));
  _mi_purge_set_has_thread(true); // as if it had
  check_next();
  check_without_thread();
  for (size_t n_pages = MI_WARM_MORE; n_pages <= MI_WARM_MORE + 2; n_pages++) check_more(n_pages);
  check_all();
  check_rounds();
  check_taken_in_rounds(1);
  if (!MI_TSAN) check_taken_in_rounds(2);
  check_visit();
  check_fork();
  check_told();
  return check_result();
}
