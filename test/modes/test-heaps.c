// Proves: whatever heap is a thread's default, each block goes back to where it came from; a heap that ends while it is a
// default, of this thread or of another, leaves the main heap; threads use heaps in the destructors of their thread-specific
// data, before and after their own part of the allocator is gone; a thread may end just when its heaps do.
#include "../check.h"
#include <mimalloc-stats.h>
#include <mimalloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include "base/mode.h"
#include "support.h"

enum { n_sizes = 7, libc_bytes = 16 * 1024 }; // what libc may have for itself, where we serve it
static const size_t sizes[n_sizes] = {8, 60, 500, 4000, 30000, 400000, 2000000};

static int64_t used_in(mi_heap_t* heap) {
  mi_stats_t_decl(stats);
  CHECK(mi_heap_stats_get(heap, &stats));
  return stats.malloc_requested.current;
}

static void run(void* (*body)(void*), void* arg) {
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, NULL, body, arg), 0);
  pthread_join(thread, NULL);
}

// ---- the default heap -----------------------------------------------------------------------------------------------

static void* get(mi_heap_t* heap, size_t i) {
  void* p = (heap == NULL ? mi_malloc(sizes[i]) : mi_heap_malloc(heap, sizes[i]));
  CHECK(p != NULL);
  memset(p, (int)i, sizes[i]);
  return p;
}

// Blocks of the main heap are freed while another heap is the default, and the other way round.
static void check_switching(void) {
  mi_heap_t* main_heap = mi_heap_main();
  mi_heap_t* heap = mi_heap_new();
  void *     of_main[n_sizes], *of_heap[n_sizes];
  CHECK(mi_heap_get_default() == main_heap && mi_heap_get_backing() == main_heap);
  int64_t before = used_in(main_heap);
  for (int round = 0; round < 50; round++) {
    for (size_t i = 0; i < n_sizes; i++) of_main[i] = get(NULL, i);
    CHECK(mi_heap_set_default(heap) == main_heap && mi_heap_get_default() == heap);
    CHECK(mi_heap_set_default(NULL) == NULL && mi_heap_get_default() == heap);
    for (size_t i = 0; i < n_sizes; i++) {
      of_heap[i] = get(NULL, i);
      CHECK(mi_heap_of(of_heap[i]) == heap && mi_heap_of(of_main[i]) == main_heap);
    }
    for (size_t i = 0; i < n_sizes; i++) mi_free(of_main[i]);
    for (size_t i = 0; i < n_sizes; i++) {
      of_main[i] = get(main_heap, i);
      CHECK(mi_heap_of(of_main[i]) == main_heap);
      of_heap[i] = mi_realloc(of_heap[i], 2 * sizes[i] + 1);
      CHECK(mi_heap_of(of_heap[i]) == heap);
      of_main[i] = mi_heap_realloc(main_heap, of_main[i], 2 * sizes[i] + 1);
      CHECK(mi_heap_of(of_main[i]) == main_heap);
    }
    CHECK(mi_heap_set_default(main_heap) == heap);
    for (size_t i = 0; i < n_sizes; i++) {
      mi_free(of_heap[i]);
      mi_free(of_main[i]);
    }
    CHECK_EQ(used_in(heap), 0);
  }
  CHECK(used_in(main_heap) - before <= libc_bytes);
  CHECK(mi_heap_check(NULL));
  mi_heap_destroy(heap);
}

// A block that a resize finds in another heap than the one it is asked for moves there.
static void check_moving(void) {
  mi_heap_t* heap = mi_heap_new();
  for (size_t i = 0; i < n_sizes; i++) {
    void* p = get(NULL, i);
    void* q = mi_heap_realloc(heap, p, sizes[i]);
    CHECK_FOR(q != p && mi_heap_of(q) == heap && *(char*)q == (char)i, "size %zu", sizes[i]);
    bool may_move = (MI_HARDENED && sizes[i] >= 256 * KiB); // guarded blocks do
    p = mi_heap_realloc(heap, q, sizes[i]);
    CHECK_FOR((p == q || may_move) && mi_heap_of(p) == heap, "size %zu", sizes[i]);
    q = p;
    p = mi_heap_realloc_aligned(NULL, q, sizes[i], 64);
    CHECK_FOR(p != q && mi_heap_of(p) == mi_heap_main() && is_aligned(p, 64), "size %zu", sizes[i]);
    mi_free(p);
  }
  CHECK_EQ(used_in(heap), 0);
  mi_heap_destroy(heap);
}

static void check_end_of_default(bool destroy) {
  mi_heap_t* heap = mi_heap_new();
  void*      p[n_sizes];
  mi_heap_set_default(heap);
  for (size_t i = 0; i < n_sizes; i++) p[i] = get(NULL, i);
  if (destroy) mi_heap_destroy(heap);
  else mi_heap_delete(heap);
  CHECK(mi_heap_get_default() == mi_heap_main());
  for (size_t i = 0; i < n_sizes; i++) {
    if (!destroy) {
      CHECK(mi_heap_of(p[i]) == mi_heap_main() && ((char*)p[i])[sizes[i] - 1] == (char)i);
      mi_free(p[i]);
    }
    p[i] = get(NULL, i);
    CHECK(mi_heap_of(p[i]) == mi_heap_main());
  }
  for (size_t i = 0; i < n_sizes; i++) mi_free(p[i]);
  CHECK(mi_heap_check(NULL));
}

// ---- the default heap of a thread, ended by another ------------------------------------------------------------------

static mi_heap_t*        shared;
static pthread_barrier_t barrier;

static void* wait_with_default(void* arg) {
  bool  is_busy = (arg != NULL);
  void* p[n_sizes];
  mi_heap_set_default(shared);
  void* q = get(NULL, 1);
  mi_free(q);
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier); // it has ended
  if (is_busy) mi_collect(false);
  for (size_t i = 0; i < n_sizes; i++) p[i] = get(NULL, i);
  for (size_t i = 0; i < n_sizes; i++) {
    CHECK(mi_heap_of(p[i]) == mi_heap_main());
    mi_free(p[i]);
  }
  CHECK(mi_heap_get_default() == mi_heap_main());
  return NULL;
}

static void check_end_of_others_default(bool destroy) {
  for (uintptr_t i = 0; i < 200; i++) {
    pthread_t threads[2];
    pthread_barrier_init(&barrier, NULL, 3);
    shared = mi_heap_new();
    void* p = mi_heap_malloc(shared, 100);
    for (size_t k = 0; k < 2; k++) pthread_create(&threads[k], NULL, &wait_with_default, (void*)(i % 2));
    pthread_barrier_wait(&barrier);
    if (destroy) mi_heap_destroy(shared);
    else mi_heap_delete(shared);
    mi_heap_t* younger = mi_heap_new();
    void*      q = mi_heap_malloc(younger, 100);
    pthread_barrier_wait(&barrier);
    for (size_t k = 0; k < 2; k++) pthread_join(threads[k], NULL);
    CHECK(mi_heap_of(q) == younger && used_in(younger) == (int64_t)mi_good_size(100));
    mi_heap_destroy(younger);
    if (!destroy) mi_free(p);
    pthread_barrier_destroy(&barrier);
  }
  CHECK(mi_heap_check(NULL));
}

// ---- thread exit ----------------------------------------------------------------------------------------------------

// ThreadSanitizer takes a thread down in the last round, and then must not be called any more.
// Each exit resizes large blocks, which is slow where those are guarded.
enum { n_keys = 12, n_rounds = TEST_TSAN ? 2 : 4, n_exits = MI_HARDENED ? 30 : 300 };
static pthread_key_t keys[n_keys];
static atomic_size_t n_late, n_bad;

typedef struct late_s {
  void*  of_heap;
  void*  of_main;
  size_t round;
} late_t;

// Runs four times for each key, so also after whatever else is done at the end of a thread.
static void on_exit_of_thread(void* value) {
  late_t* late = (late_t*)value;
  atomic_fetch_add(&n_late, 1);
  for (size_t i = 0; i < n_sizes; i++) {
    void* p = get(shared, i);
    if (mi_heap_of(p) != shared) atomic_fetch_add(&n_bad, 1);
    void* q = mi_heap_realloc(shared, p, sizes[i] * 3);
    if (mi_heap_of(q) != shared) atomic_fetch_add(&n_bad, 1);
    mi_free(q);
  }
  mi_free(late->of_heap);
  mi_free(late->of_main);
  late->of_heap = mi_heap_malloc(shared, 77);
  late->of_main = mi_malloc(77);
  // The thread's default heap is what it was, until the allocator has seen the end of the thread.
  mi_heap_t* of_main = mi_heap_of(late->of_main);
  if (mi_heap_of(late->of_heap) != shared || (of_main != mi_heap_main() && of_main != shared))
    atomic_fetch_add(&n_bad, 1);
  if (++late->round < n_rounds) {
    for (size_t i = 0; i < n_keys; i++) {
      if (pthread_getspecific(keys[i]) == NULL) {
        pthread_setspecific(keys[i], late);
        return;
      }
    }
  }
  mi_free(late->of_heap);
  mi_free(late->of_main);
  mi_free(late);
}

static void* use_until_exit(void* arg) {
  for (size_t i = 0; i < n_keys; i += 3) {
    late_t* late = (late_t*)mi_heap_zalloc((mi_heap_t*)arg, sizeof(late_t));
    late->of_heap = mi_heap_malloc(shared, 50);
    late->of_main = mi_malloc(50);
    pthread_setspecific(keys[i], late);
  }
  if (atomic_load(&n_late) % 32 == 0) mi_heap_set_default(shared);
  return NULL;
}

static void check_thread_exit(void) {
  mi_heap_t* other = mi_heap_new();
  shared = mi_heap_new();
  for (size_t i = 0; i < n_exits; i++) run(&use_until_exit, other);
  printf("%zu calls of destructors\n", atomic_load(&n_late));
  CHECK(atomic_load(&n_late) >= n_exits * n_keys / 3 * n_rounds);
  CHECK_EQ(atomic_load(&n_bad), 0);
  CHECK_EQ(used_in(other), 0);
  CHECK_EQ(used_in(shared), 0);
  CHECK(mi_heap_check(NULL));
  mi_heap_delete(other);
  mi_heap_delete(shared);
  CHECK(mi_heap_check(NULL));
}

// What a thread past its exit has allocated belongs to the heap, and goes or stays with it.
static void* left[300];

static void leave_late(void* value) {
  (void)value;
  for (size_t i = 0; i < COUNT_OF(left); i++) left[i] = mi_heap_malloc(shared, sizes[i % 4]);
}

static pthread_key_t late_key;

static void* leave_at_exit(void* arg) {
  mi_free(mi_heap_malloc(shared, 1));
  mi_thread_done(); // what it has is let go, but for what the destructor gets
  pthread_setspecific(late_key, arg);
  return NULL;
}

static int64_t pages_now(void) {
  mi_stats_t_decl(stats);
  mi_collect(true);
  CHECK(mi_stats_get(&stats));
  return stats.pages.current;
}

static void check_late_blocks(bool destroy) {
  int64_t n_pages = pages_now();
  shared = mi_heap_new();
  run(&leave_at_exit, shared);
  for (size_t i = 0; i < COUNT_OF(left); i++) CHECK(mi_heap_of(left[i]) == shared);
  CHECK(mi_heap_check(NULL));
  if (destroy) {
    mi_heap_destroy(shared);
  }
  else {
    mi_heap_delete(shared);
    for (size_t i = 0; i < COUNT_OF(left); i++) {
      CHECK(mi_heap_of(left[i]) == mi_heap_main());
      mi_free(left[i]);
    }
  }
  CHECK(mi_heap_check(NULL));
  CHECK_FOR(pages_now() <= n_pages, "%lld pages, then %lld", (long long)n_pages, (long long)pages_now());
}

// ---- the end of a thread and of its heaps at the same time -----------------------------------------------------------

enum { n_heaps = 6, n_threads = 3 };
static mi_heap_t*  heaps[n_heaps];
static void*       last[n_threads][n_heaps];
static atomic_int  n_ready;
static atomic_bool may_go;

static void* use_and_go(void* arg) {
  size_t me = (size_t)(uintptr_t)arg;
  for (size_t i = 0; i < n_heaps; i++) {
    for (size_t k = 0; k < 40; k++) mi_free(mi_heap_malloc(heaps[i], sizes[k % 5]));
    last[me][i] = mi_heap_malloc(heaps[i], sizes[(i + me) % n_sizes]);
  }
  atomic_fetch_add(&n_ready, 1);
  for (int n = 0; !atomic_load(&may_go); n++) {
    if (n % 100 == 99) sched_yield();
  }
  for (size_t i = 1; i < n_heaps; i += 2) mi_free(last[me][i]); // of those that are deleted
  return NULL;
}

static void check_exit_races(void) {
  size_t n = (TEST_SANITIZED ? 50 : 300) * test_scale();
  for (size_t round = 0; round < n; round++) {
    pthread_t threads[n_threads];
    for (size_t i = 0; i < n_heaps; i++) heaps[i] = mi_heap_new();
    atomic_store(&n_ready, 0);
    atomic_store(&may_go, false);
    for (uintptr_t i = 0; i < n_threads; i++) pthread_create(&threads[i], NULL, &use_and_go, (void*)i);
    while (atomic_load(&n_ready) < n_threads) sched_yield();
    atomic_store(&may_go, true);
    for (size_t i = 0; i < n_heaps; i++) {
      if (i % 2 == 0) mi_heap_destroy(heaps[i]);
      else mi_heap_delete(heaps[i]);
    }
    for (size_t i = 0; i < n_threads; i++) pthread_join(threads[i], NULL);
    if (round % 100 == 0) CHECK(mi_heap_check(NULL));
  }
  CHECK(mi_heap_check(NULL));
}

int main(void) {
  watchdog(120);
  for (size_t i = 0; i < n_keys; i++) pthread_key_create(&keys[i], &on_exit_of_thread);
  int64_t before = used_in(NULL);
  check_switching();
  check_moving();
  check_end_of_default(false);
  check_end_of_default(true);
  check_end_of_others_default(false);
  check_end_of_others_default(true);
  check_thread_exit();
  pthread_key_create(&late_key, &leave_late);
  check_late_blocks(true);
  check_late_blocks(true); // with a heap at the same address
  check_late_blocks(false);
  check_late_blocks(false);
  check_exit_races();
  mi_collect(true);
  CHECK_FOR(used_in(NULL) - before <= libc_bytes, "%lld bytes", (long long)(used_in(NULL) - before));
  return check_result();
}
