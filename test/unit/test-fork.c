// Proves: a child that is forked while other threads allocate and free has all blocks with their contents, never gets one of them
// anew, and can free them; what it cannot use of its parent's pages (F2) is no more than these, and does not grow.  What was kept by a
// thread that has ended is given back once, what the child keeps counts, and limits count what there is.  The thread that forks holds the locks of the heaps that
// it makes meanwhile, too.  No lock is counted as held afterwards.
#include <pthread.h>
#include <sys/wait.h>
#include "../check.h"
#include "../modes/support.h"
#include "arena/chunk.h"
#include "arena/purge.h"
#include "arena/purge_keep.h"
#include "counted.h"
#include "heap/event.h"
#include "heap/fork.h"
#include "heap/heap.h"
#include "heap/large.h"
#include "heap/registry.h"
#include "mimalloc-limit.h"
#include "mimalloc.h"
#include "prim/lock.h"
#include "support/stat.h"

enum { n_threads = 3, n_slots = 200, n_forks = 16 };

static void*  slots[n_threads][n_slots]; // NULL, or a block that its thread does not touch any more
static size_t sizes[n_threads][n_slots];
static size_t ready, is_over;

static uint64_t key_of(size_t thread, size_t slot) {
  return 1000 * thread + slot;
}

// Whatever the moment of a fork, a slot is that of a block which is in use, and filled.
static void* churn(void* arg) {
  size_t me = (size_t)(uintptr_t)arg;
  rng_t  r = rng_make(me + 1);
  for (size_t n = 0; !__atomic_load_n(&is_over, __ATOMIC_RELAXED); n++) {
    size_t i = rng_below(&r, n_slots);
    void*  p = __atomic_exchange_n(&slots[me][i], NULL, __ATOMIC_ACQ_REL);
    mi_free(p);
    if (p == NULL) {
      sizes[me][i] = rng_below(&r, 20) == 0 ? 600 * KiB : rng_size(&r, 16 * KiB) + 1;
      p = mi_malloc(sizes[me][i]);
      pattern_fill(p, 0, sizes[me][i], key_of(me, i));
      __atomic_store_n(&slots[me][i], p, __ATOMIC_RELEASE);
    }
    if (n == 1000) __atomic_add_fetch(&ready, 1, __ATOMIC_RELEASE);
  }
  return NULL;
}

static void check_slots(void) {
  for (size_t t = 0; t < n_threads; t++) {
    for (size_t i = 0; i < n_slots; i++) {
      if (slots[t][i] == NULL) continue;
      CHECK_FOR(pattern_check(slots[t][i], sizes[t][i], key_of(t, i)) == sizes[t][i], "thread %zu, slot %zu", t, i);
    }
  }
}

static int64_t page_count(void) {
  return mi_load_relaxed(&_mi_stat_live.pages.current);
}

// Blocks of the child's own, among those that it has from its parent.
static void work(rng_t* r) {
  enum { n = 3000 };
  static void* own[n];
  for (size_t i = 0; i < n; i++) {
    own[i] = mi_malloc(rng_size(r, 16 * KiB) + 1);
    memset(own[i], 0xEE, mi_usable_size(own[i]));
  }
  check_slots();
  for (size_t i = 0; i < n; i++) mi_free(own[i]);
  mi_collect(true);
}

// Theaps that are in use, of this thread and of none that the child lacks.
static void check_theap_count(void) {
  int64_t n_live = 0;
  for (const mi_theap_t* theap = _mi_registry_first(); theap != NULL; theap = theap->next)
    n_live += _mi_theap_is_live(theap);
  CHECK_EQ(n_live, 1);
  CHECK_EQ(mi_load_relaxed(&_mi_stat_live.theaps.current), n_live);
  CHECK_EQ(mi_load_relaxed(&_mi_stat_live.threads.current), 1);
}

static void check_child(void) {
  rng_t   r = rng_make(7);
  int64_t n_before = page_count();
  check_theap_count();
  check_slots();
  work(&r);
  CHECK_FOR(page_count() <= n_before, "%lld pages, then %lld", (long long)n_before, (long long)page_count());
  for (size_t t = 0; t < n_threads; t++) {
    for (size_t i = 0; i < n_slots; i++) {
      mi_free(slots[t][i]);
      slots[t][i] = NULL;
    }
  }
  mi_collect(true);
  int64_t n_left = page_count(), n_bytes = mi_load_relaxed(&_mi_stat_live.malloc_huge.current);
  CHECK_FOR(n_left <= n_before, "%lld pages, then %lld", (long long)n_before, (long long)n_left);
  CHECK_FOR(n_bytes <= n_threads * (int64_t)MiB, "%lld bytes of large blocks are left", (long long)n_bytes);
  for (int i = 0; i < 3; i++) work(&r);
  CHECK_FOR(page_count() <= n_left, "%lld pages, then %lld", (long long)n_left, (long long)page_count());
  CHECK(mi_heap_check(NULL));
}

// ---- what nobody keeps --------------------------------------------------------------------------------------------------

static mi_theap_t* ended_theap;

static void* end_at_once(void* arg) {
  mi_free(mi_malloc(64));
  ended_theap = _mi_theap_backing();
  return arg;
}

// A block that is pushed to a thread's set just as that ends, as kept by a theap that no thread has.
static void push_to_ended(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, &end_at_once, NULL);
  pthread_join(thread, NULL);
  mi_page_t* page = _mi_page_of(mi_malloc(MiB));
  CHECK(page != NULL);
  if (page == NULL) return;
  mi_store_release(&page->word, _mi_page_word_make(MI_PAGE_CLAIMED, 0, NULL));
  _mi_stat_decrease(&_mi_stat_live.malloc_huge, (int64_t)(page->n_slices * MI_SLICE_SIZE));
  CHECK(_mi_kept_push(&ended_theap->kept, page) == NULL && _mi_kept_any(&ended_theap->kept));
}

// The child gives it back, and then it is not kept any more.
static void check_kept_by_nobody(void) {
  push_to_ended();
  pid_t child = fork();
  if (child == 0) {
    CHECK(!_mi_kept_any(&ended_theap->kept));
    _mi_large_drop_unused(ended_theap);
    mi_free(mi_malloc(MiB));
    CHECK(mi_heap_check(NULL));
    _exit(check_result());
  }
  int status = -1;
  CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
  _mi_large_drop_kept(ended_theap);
  CHECK(!_mi_kept_any(&ended_theap->kept));
}

// A thread that is lost was about to count a block that had come into its set, another one what it may keep: what the child keeps counts
// as free all the same.
static void check_lent_by_nobody(void) {
  mi_free(mi_malloc(MiB));
  const mi_kept_t* kept = &_mi_theap_backing()->kept;
  size_t           n_kept = mi_load_relaxed(&((mi_kept_t*)kept)->n_allowed) - kept->n_room;
  CHECK(n_kept >= MiB / MI_SLICE_SIZE);
  _mi_purge_lend(n_kept / 2);
  CHECK(_mi_purge_keep(3));
  pid_t child = fork();
  if (child == 0) {
    CHECK_EQ(_mi_purge_n_backed() - _mi_chunk_purgeable(), n_kept);
    _exit(check_result());
  }
  int status = -1;
  CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
  _mi_purge_unlend(n_kept / 2);
  _mi_purge_unkeep(3);
}

// ---- what counts towards limits ------------------------------------------------------------------------------------------

static void* map_and_unmap(void* arg) {
  while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) mi_free(mi_malloc_aligned(MiB, 64 * MiB));
  return arg;
}

// Threads that are lost count a block with a mapping of its own before it is there, and until it is gone.
static void check_counted(void) {
  pthread_t mappers[n_threads];
  __atomic_store_n(&is_over, 0, __ATOMIC_RELAXED);
  for (size_t t = 0; t < n_threads; t++) pthread_create(&mappers[t], NULL, &map_and_unmap, NULL);
  for (size_t k = 0; k < n_forks; k++) {
    sleep_ms(1);
    pid_t child = fork();
    if (child == 0) {
      CHECK_EQ(mi_limit_used(), counted_bytes());
      _exit(check_result());
    }
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
  }
  __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
  for (size_t t = 0; t < n_threads; t++) pthread_join(mappers[t], NULL);
  CHECK_EQ(mi_limit_used(), counted_bytes());
}

// ---- what was just being noted ------------------------------------------------------------------------------------------

static int answered;

static void note_answer(int value) {
  answered = value;
}

// Threads that are lost were about to count what they had noted: that a limit was crossed, that a signal asks, that they sample.
static void check_notes(void) {
  uint32_t n_before = mi_load_relaxed(&_mi_event_pending);
  _mi_event_on_request(&note_answer);
  _mi_event_set_limit(true);
  _mi_event_request(1);
  mi_fetch_sub_relaxed(&_mi_event_pending, MI_EVENT_LIMIT + MI_EVENT_REQUEST + 1);
  pid_t child = fork();
  if (child == 0) {
    CHECK_EQ(mi_load_relaxed(&_mi_event_pending) % MI_EVENT_ORPHANS, n_before);
    CHECK(_mi_event_is_limit());
    _mi_event_set_limit(false);
    _mi_event_set_limit(true);
    CHECK(_mi_event_is_limit());
    _mi_event_set_limit(false);
    _mi_event_request(2);
    _mi_event_answer();
    CHECK_EQ(answered, 2);
    _mi_fork_adopt_orphans();
    CHECK_EQ(mi_load_relaxed(&_mi_event_pending), n_before);
    _exit(check_result());
  }
  mi_fetch_add_relaxed(&_mi_event_pending, MI_EVENT_LIMIT + MI_EVENT_REQUEST + 1);
  int status = -1;
  CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
  _mi_event_answer();
  _mi_event_set_limit(false);
}

// ---- what cannot be given back ------------------------------------------------------------------------------------------

// Deleted pages whose guards the system will not open are no pages for the child, which must not delete them again.
static void check_closed_pages(void) {
  enum { n = 400 };
  static void* blocks[n];
  for (size_t i = 0; i < n; i++) blocks[i] = mi_malloc(3000);
  int64_t n_before = page_count();
  for (size_t i = 0; i < n; i++) mi_free(blocks[i]);
  _mi_prim_fail_nth(1, true);
  mi_collect(true);
  _mi_prim_fail_nth(0, false);
  int64_t n_after = page_count();
  CHECK_FOR(n_after + 8 < n_before, "%lld pages, then %lld", (long long)n_before, (long long)n_after);
  pid_t child = fork();
  if (child == 0) {
    CHECK_EQ(page_count(), n_after);
    _exit(check_result());
  }
  int status = -1;
  CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

// ---- heaps that are made during a fork ------------------------------------------------------------------------------------

static void* try_lock(void* heap) {
  mi_lock_t* lock = &((mi_heap_t*)heap)->lock;
  if (!_mi_lock_try(lock)) return NULL;
  _mi_lock_release(lock);
  return heap;
}

static bool has_lock(mi_heap_t* heap) {
  pthread_t thread;
  void*     got = NULL;
  CHECK_EQ(pthread_create(&thread, NULL, &try_lock, heap), 0);
  CHECK_EQ(pthread_join(thread, &got), 0);
  return got == NULL;
}

// As a handler of a fork does.
static void check_new_heaps(void) {
  _mi_fork_lock_all();
  mi_heap_t* heap = mi_heap_new();
  CHECK(heap != NULL && has_lock(heap));
  mi_heap_delete(mi_heap_new());
  mi_heap_t* again = mi_heap_new();
  CHECK(again != NULL && has_lock(again));
  _mi_fork_unlock_all();
  CHECK(!has_lock(heap) && !has_lock(again));
  mi_heap_delete(again);
  mi_heap_delete(heap);
}

// With internal checks a lock that nobody holds is not given back.
static void check_lock_of_nobody(void) {
  static mi_lock_t lock;
  int              status = 0;
  if (MI_DEBUG <= 1) return;
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    _mi_lock_release(&lock);
    _exit(0);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status));
}

// ---- handlers that make and end heaps: ------------------------------------------------------------------------

static mi_heap_t *heap_ended, *heap_made;

static void change_heaps(void) {
  mi_heap_delete(heap_ended);
  heap_made = mi_heap_new();
  heap_ended = heap_made;
}

static void do_nothing(void) {}

// Whoever counts locks (prim/lock.h) counts none afterwards.
static void check_locks(void) {
  heap_ended = mi_heap_new();
  CHECK_EQ(pthread_atfork(&change_heaps, &change_heaps, &change_heaps), 0);
  pid_t child = fork();
  CHECK(!_mi_lock_postpone(&do_nothing));
  mi_heap_delete(heap_made);
  heap_ended = mi_heap_new();
  if (child == 0) _exit(check_result());
  int status = -1;
  CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

int main(void) {
  pthread_t threads[n_threads];
  watchdog(120);
  if (TEST_TSAN) {
    test_skip("fork", "the thread sanitizer allows no thread in the child");
    return skip_code;
  }
  mi_option_set(mi_option_purge_delay, -1); // no thread of ours
  for (size_t t = 0; t < n_threads; t++) pthread_create(&threads[t], NULL, &churn, (void*)(uintptr_t)t);
  while (__atomic_load_n(&ready, __ATOMIC_ACQUIRE) < n_threads) sleep_ms(1);
  for (size_t k = 0; k < n_forks; k++) {
    pid_t child = fork();
    if (child == 0) {
      watchdog(60);
      check_child();
      _exit(check_result());
    }
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK_FOR(status == 0, "child %zu: %#x", k, (unsigned)status);
  }
  __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
  for (size_t t = 0; t < n_threads; t++) pthread_join(threads[t], NULL);
  check_slots();
  if (!MI_HARDENED && !MI_TRACK) { // else large blocks are guarded, or nothing is kept
    check_kept_by_nobody();
    check_lent_by_nobody();
  }
  check_counted();
  check_closed_pages();
  check_notes();
  check_locks();
  check_new_heaps();
  check_lock_of_nobody();
  return check_result();
}
