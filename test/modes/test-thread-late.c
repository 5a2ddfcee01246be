// Proves: what the program's destructors of thread-specific data free and allocate, in all passes and whichever key came first,
// goes back, and no thread leaves a theap behind; neither do detached threads that never allocate, which libc takes down when
// all destructors have run: their number does not show in memory, in the count of threads, or in the time that a thread takes.
#define _GNU_SOURCE
#include "../check.h"
#include <limits.h>
#include <mimalloc-stats.h>
#include <mimalloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include "tasks.h"
#if defined(__has_include)
  #if __has_include(<threads.h>)
    #include <threads.h>
    #define TEST_HAS_C11_THREADS 1
  #endif
#endif
#if !defined(TEST_HAS_C11_THREADS)
  #define TEST_HAS_C11_THREADS 0
#endif

// ThreadSanitizer takes a thread down in the last pass, and then must not be called any more.
enum { n_keys = 4, n_blocks = 2000, n_at_once = 6, passes = TEST_TSAN ? 2 : PTHREAD_DESTRUCTOR_ITERATIONS };
enum { n_bursts = 100, n_in_burst = 200, settle_seconds = 40 };

typedef struct pile_s {
  void*    blocks[n_blocks];
  unsigned n_passes;
} pile_t;

static pthread_key_t keys[n_keys];
static atomic_size_t n_calls, n_wrong, n_running;
static atomic_bool   is_over;
static size_t        n_others; // threads of a sanitizer

// ---- destructors ----------------------------------------------------------------------------------------------------------

static size_t pile_size(size_t i) {
  return 16 + (i * 37) % 3000;
}

static void pile_fill(pile_t* pile) {
  for (size_t i = 0; i < n_blocks; i++) {
    pile->blocks[i] = mi_malloc(pile_size(i));
    if (pile->blocks[i] == NULL) atomic_fetch_add(&n_wrong, 1);
    else memset(pile->blocks[i], 5, pile_size(i));
  }
}

static void pile_empty(pile_t* pile) {
  for (size_t i = 0; i < n_blocks; i++) mi_free(pile->blocks[i]);
}

static void destroy(void* value) {
  pile_t* pile = (pile_t*)value;
  atomic_fetch_add(&n_calls, 1);
  pile_empty(pile);
  mi_free(memset(mi_malloc(3 * MiB), 5, 3 * MiB));
  if (++pile->n_passes == passes) {
    mi_free(pile);
    return;
  }
  pile_fill(pile);
  for (size_t i = 0; i < n_keys; i++) {
    if (pthread_getspecific(keys[i]) != NULL) continue;
    pthread_setspecific(keys[i], pile);
    return;
  }
  atomic_fetch_add(&n_wrong, 1);
}

// Two keys before the library can have made its own.
__attribute__((constructor(101))) static void make_early_keys(void) {
  pthread_key_create(&keys[0], &destroy);
  pthread_key_create(&keys[1], &destroy);
}

static void* leave_piles(void* arg) {
  for (size_t i = 0; i < n_keys; i++) {
    pile_t* pile = (pile_t*)mi_malloc(sizeof(pile_t));
    pile->n_passes = 0;
    pile_fill(pile);
    pthread_setspecific(keys[i], pile);
  }
  return arg;
}

static void run_leaving(size_t n) {
  pthread_t threads[n_at_once];
  for (size_t k = 0; k < n; k++) {
    for (size_t i = 0; i < n_at_once; i++) CHECK_EQ(pthread_create(&threads[i], NULL, &leave_piles, NULL), 0);
    for (size_t i = 0; i < n_at_once; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
  }
}

// ---- what is left -----------------------------------------------------------------------------------------------------------

static int64_t live_theaps(void) {
  mi_stats_t_decl(stats);
#if MI_API_LEVEL >= 3
  return mi_stats_get(&stats) ? stats.theaps.current : -1;
#else
  return mi_stats_get(&stats) ? 0 : -1; // they are not counted there
#endif
}

static int64_t live_threads(void) {
  mi_stats_t_decl(stats);
  return mi_stats_get(&stats) ? stats.threads.current : -1;
}

static bool goes_back(const char* what, size_t base, size_t bound) {
  double end = now_seconds() + settle_seconds;
  while (rss_is_meaningful() && minus(rss_now(), base) > bound && now_seconds() < end) sleep_ms(20);
  return rss_within(what, minus(rss_now(), base), bound);
}

static void* sleep_until_told(void* arg) {
  while (!atomic_load(&is_over)) sleep_ms(5);
  return arg;
}

// While another thread lives, the library's does; without one it is the frees that give back.
static void check_destructors(size_t base) {
  size_t    n = (TEST_SANITIZED ? 4 : 30);
  pthread_t sleeper;
  CHECK_EQ(pthread_create(&sleeper, NULL, &sleep_until_told, NULL), 0);
  run_leaving(2);
  int64_t theaps = live_theaps(), threads = live_threads();
  atomic_store(&n_calls, 0);
  run_leaving(n);
  CHECK_EQ(atomic_load(&n_calls), n * n_at_once * n_keys * passes);
  CHECK_EQ(atomic_load(&n_wrong), 0);
  CHECK(goes_back("freed by destructors", base, 8 * MiB));
  CHECK_EQ(live_theaps(), theaps);
  CHECK_EQ(live_threads(), threads);
  atomic_store(&is_over, true);
  CHECK_EQ(pthread_join(sleeper, NULL), 0);
  run_leaving(n);
  CHECK(goes_back("and when no thread is left", base, 16 * MiB));
}

// ---- detached threads ---------------------------------------------------------------------------------------------------------

static void* wait_for_end(void* arg) {
  atomic_fetch_add(&n_running, 1);
  while (!atomic_load(&is_over)) sleep_ms(1);
  return arg;
}

// With stacks that libc does not keep, so that each thread takes its own down.
static void run_burst(void) {
  pthread_t      thread;
  pthread_attr_t attr;
  pthread_attr_init(&attr);
  pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  atomic_store(&is_over, false);
  atomic_store(&n_running, 0);
  size_t n = 0; // fewer if the system has a limit
  while (n < n_in_burst && pthread_create(&thread, &attr, &wait_for_end, NULL) == 0) n++;
  while (atomic_load(&n_running) < n) sleep_ms(1);
  atomic_store(&is_over, true);
  while (task_count() > n_others + 2) sleep_ms(1); // the library's may be there, too
  pthread_attr_destroy(&attr);
}

// The time of the processor that they take.
static double run_bursts(size_t n) {
  double cpu = cpu_seconds();
  for (size_t i = 0; i < n; i++) run_burst();
  return cpu_seconds() - cpu;
}

static void check_detached(size_t base) {
  size_t n = (TEST_SANITIZED ? 2 : n_bursts);
  run_bursts(2);
  int64_t threads = live_threads();
  double  first = run_bursts(n / 2), second = run_bursts(n / 2);
  printf("%zu detached threads: %.2f s of the processor, then %.2f s\n", n * n_in_burst, first, second);
  CHECK(goes_back("detached threads", base, 16 * MiB));
  CHECK_FOR(second < 3 * first + 0.5, "%.2f s, then %.2f s", first, second);
  CHECK_EQ(live_threads(), threads);
}

// ---- a first allocation in a destructor -------------------------------------------------------------------------------------

#if TEST_HAS_C11_THREADS && !TEST_SANITIZED // which do not know such threads

// Of a thread that the library has not seen start, and in the pass of destructors of which it cannot tell whether it is the first.
static void allocate_once(void* arg) {
  mi_free(memset(mi_malloc(100), 5, 100));
  (void)arg;
}

static int end_with_first(void* key) {
  return pthread_setspecific(*(pthread_key_t*)key, key);
}

static void check_first_in_destructor(size_t base) {
  enum { n = 4000 };
  pthread_key_t key;
  thrd_t        thread;
  int64_t       threads = live_threads();
  CHECK_EQ(pthread_key_create(&key, &allocate_once), 0);
  for (int i = 0; i < n; i++) {
    CHECK_EQ(thrd_create(&thread, &end_with_first, &key), thrd_success);
    CHECK_EQ(thrd_join(thread, NULL), thrd_success);
  }
  CHECK(goes_back("threads that first allocate in a destructor", base, 16 * MiB));
  CHECK_FOR(live_threads() <= threads + 8, "%d threads", (int)live_threads()); // some until the next ones come
}

#else

static void check_first_in_destructor(size_t base) {
  (void)base;
  test_skip("a first allocation in a destructor", "no threads of C11, or a sanitizer");
}

#endif

int main(int argc, char** argv) {
  test_seed(argc, argv);
  watchdog(250);
  if (MI_API_LEVEL >= 3) mi_option_set(mi_option_purge_delay, 100); // at level 3 it is a second
  mi_free(mi_malloc(10));
  n_others = minus(task_count(), 1);
  CHECK_EQ(pthread_key_create(&keys[2], &destroy), 0);
  CHECK_EQ(pthread_key_create(&keys[3], &destroy), 0);
  size_t base = rss_now();
  check_destructors(base);
  check_detached(base);
  check_first_in_destructor(base);
  return check_result();
}
