// Proves: what is done with heaps and by threads costs the same however many of them there are: starting and ending a thread
// while others live, using a heap that many threads use, using many heaps in a thread, ending heaps, the oldest first, and
// visiting all; for each of them, visiting the blocks of threads that live, and checking them and blocks of the main heap.
#include "../check.h"
#include <mimalloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include "base/mode.h"
#include "support.h"

enum {
  is_slow = (TEST_SANITIZED || MI_CHECKED),
  growth = 8,
  n_heaps = (is_slow ? 500 : 1000), // and so many times more
  n_threads = (is_slow ? 50 : 250),
  n_tries = 5
};

static mi_heap_t* heaps[growth * n_heaps];
static size_t     n_visited;

static double cpu_now(void) {
  return clock_seconds(CLOCK_THREAD_CPUTIME_ID);
}

// `cost` are the seconds of one operation among n.  A busy machine may disturb one try, not all.
static double least_cost(double (*cost)(size_t n), size_t n, double enough) {
  double least = 1e9;
  for (int i = 0; i < n_tries && least >= enough; i++) {
    double seconds = cost(n);
    if (seconds < least) least = seconds;
  }
  return least;
}

// Memory that lies further apart costs a few misses of the cache more: what is proportional would cost 8 times as much.
static void check_growth(const char* what, double (*cost)(size_t n), size_t n) {
  double few = least_cost(cost, n, 0);
  double most = 5 * few + 1e-6;
  double many = least_cost(cost, growth * n, most);
  printf("%s: %.3f us among %zu, %.3f us among %zu\n", what, few * 1e6, n, many * 1e6, growth * n);
  if (!TEST_SANITIZED) CHECK_FOR(many < most, "%s", what);
}

// ---- heaps ----------------------------------------------------------------------------------------------------------

static void make_heaps(size_t n) {
  for (size_t i = 0; i < n; i++) heaps[i] = mi_heap_new();
}

static void end_heaps(size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (i % 2 == 0) mi_heap_destroy(heaps[i]);
    else mi_heap_delete(heaps[i]);
  }
}

static double cost_of_ending(size_t n) {
  make_heaps(n);
  for (size_t i = 0; i < n; i++) mi_free(mi_heap_malloc(heaps[i], 64));
  double start = cpu_now();
  end_heaps(n);
  return (cpu_now() - start) / (double)n;
}

static bool count_heap(mi_heap_t* heap, void* arg) {
  (void)arg;
  n_visited += (heap != NULL);
  return true;
}

static double cost_of_visiting(size_t n) {
  make_heaps(n);
  n_visited = 0;
  double start = cpu_now();
  for (int i = 0; i < 10; i++) mi_subproc_visit_heaps(mi_subproc_main(), &count_heap, NULL);
  double seconds = cpu_now() - start;
  CHECK(n_visited >= 10 * n);
  end_heaps(n);
  return seconds / (double)(10 * n);
}

// The first heaps, every eighth, while the thread has all.
static double cost_of_using(size_t n) {
  enum { n_used = 16, n_rounds = 2000 };
  void* p[n_used];
  make_heaps(n);
  for (size_t i = 0; i < n; i++) mi_free(mi_heap_malloc(heaps[i], 64));
  double start = cpu_now();
  for (size_t round = 0; round < n_rounds; round++) {
    for (size_t i = 0; i < n_used; i++) p[i] = mi_heap_zalloc(heaps[8 * i], 64);
    for (size_t i = 0; i < n_used; i++) mi_free(p[i]);
  }
  double seconds = cpu_now() - start;
  end_heaps(n);
  return seconds / (n_used * n_rounds);
}

// As many blocks of the main heap as there are heaps, in half as many pages.
static double cost_of_checking_main(size_t n) {
  void** blocks = (void**)mi_malloc(n * sizeof(void*));
  make_heaps(n);
  for (size_t i = 0; i < n; i++) {
    mi_free(mi_heap_malloc(heaps[i], 64));
    blocks[i] = mi_malloc(200 * KiB);
  }
  double start = cpu_now();
  CHECK(mi_heap_check(mi_heap_main()));
  double seconds = cpu_now() - start;
  for (size_t i = 0; i < n; i++) mi_free(blocks[i]);
  mi_free(blocks);
  end_heaps(n);
  return seconds / (double)n;
}

// ---- more heaps than a thread's cache has places ----------------------------------------------------------------------

typedef struct far_s {
  size_t            n, stride;
  double            seconds; // of malloc and free
  pthread_barrier_t barrier;
} far_t;

static void* use_far_heaps(void* arg) {
  enum { n_rounds = 200000, n_max = 64 };
  far_t* far = (far_t*)arg;
  void*  p[n_max];
  pthread_barrier_wait(&far->barrier);
  double start = cpu_now();
  for (size_t round = 0; round < n_rounds / far->n; round++) {
    for (size_t k = 0; k < far->n; k++) p[k] = mi_heap_malloc(heaps[k * far->stride], 64);
    for (size_t k = 0; k < far->n; k++) mi_free(p[k]);
  }
  double seconds = (cpu_now() - start) / n_rounds;
  if (pthread_barrier_wait(&far->barrier) == PTHREAD_BARRIER_SERIAL_THREAD) far->seconds = seconds;
  return NULL;
}

// With two threads, each with theaps of its own.
static double seconds_in_heaps(size_t n, size_t stride) {
  far_t     far;
  pthread_t other;
  memset(&far, 0, sizeof(far));
  far.n = n;
  far.stride = stride;
  pthread_barrier_init(&far.barrier, NULL, 2);
  pthread_create(&other, NULL, &use_far_heaps, &far);
  use_far_heaps(&far);
  pthread_join(other, NULL);
  pthread_barrier_destroy(&far.barrier);
  return far.seconds;
}

static void keep_least(double* least, double seconds) {
  if (seconds < *least) *least = seconds;
}

// In turns, until a machine that is busy for a while has left time enough for each.
static void check_far_heaps(void) {
  double few = 1e9, same = 1e9, many = 1e9;
  bool   is_alike = false;
  make_heaps(500);
  for (int i = 0; i < n_tries || (!is_alike && i < 20 * n_tries); i++) {
    keep_least(&few, seconds_in_heaps(4, 1));
    keep_least(&same, seconds_in_heaps(16, 8));
    keep_least(&many, seconds_in_heaps(64, 1));
    is_alike = (same < 2.2 * few + 5e-9 && many < 2.2 * few + 5e-9);
  }
  printf("malloc and free in 4 heaps %.1f ns, in every 8th %.1f ns, in 64 heaps %.1f ns\n", few * 1e9, same * 1e9,
         many * 1e9);
  if (!is_slow) CHECK(is_alike);
  end_heaps(500);
}

// ---- threads --------------------------------------------------------------------------------------------------------

static pthread_t       threads[growth * n_threads];
static mi_heap_t*      shared;
static atomic_size_t   n_ready;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t  over = PTHREAD_COND_INITIALIZER;
static bool            is_over;

static void* live(void* arg) {
  void* p[60]; // which its bin has then
  for (size_t i = 0; i < 60; i++) p[i] = mi_malloc(8);
  for (size_t i = 0; i < 60; i++) mi_free(p[i]);
  mi_free(mi_heap_malloc(shared, 8));
  atomic_fetch_add(&n_ready, 1);
  pthread_mutex_lock(&mutex);
  while (!is_over) pthread_cond_wait(&over, &mutex);
  pthread_mutex_unlock(&mutex);
  return arg;
}

// Runs `act`, whose seconds it returns, while n other threads live that have used the shared heap after this one.
static double among_threads(size_t n, double (*act)(void)) {
  pthread_attr_t attr;
  pthread_attr_init(&attr);
  if (!TEST_SANITIZED) pthread_attr_setstacksize(&attr, 64 * KiB);
  shared = mi_heap_new();
  mi_free(mi_heap_malloc(shared, 8));
  is_over = false;
  atomic_store(&n_ready, 0);
  for (size_t i = 0; i < n; i++) CHECK_EQ(pthread_create(&threads[i], &attr, &live, NULL), 0);
  while (atomic_load(&n_ready) < n) sleep_ms(1);
  double seconds = act();
  pthread_mutex_lock(&mutex);
  is_over = true;
  pthread_cond_broadcast(&over);
  pthread_mutex_unlock(&mutex);
  for (size_t i = 0; i < n; i++) pthread_join(threads[i], NULL);
  pthread_attr_destroy(&attr);
  mi_heap_destroy(shared);
  return seconds;
}

static double restart(void) {
  double start = cpu_now();
  for (int i = 0; i < 200; i++) {
    mi_thread_done();
    mi_free(mi_malloc(8));
  }
  return (cpu_now() - start) / 200;
}

static double use_shared(void) {
  double start = cpu_now();
  for (int i = 0; i < 200; i++) mi_free(mi_heap_zalloc(shared, 8));
  return (cpu_now() - start) / 200;
}

static bool count_block(const mi_heap_t* heap, const mi_heap_area_t* area, void* block, size_t size, void* arg) {
  (void)heap, (void)area, (void)size, (void)arg;
  n_visited += (block == NULL);
  return true;
}

static double visit_blocks(void) {
  n_visited = 0;
  double start = cpu_now();
  mi_heap_visit_blocks(mi_heap_main(), true, &count_block, NULL);
  double seconds = cpu_now() - start;
  CHECK(n_visited > 0);
  return seconds;
}

static double check_all(void) {
  double start = cpu_now();
  CHECK(mi_heap_check(NULL));
  return cpu_now() - start;
}

// What threads that wait have in their bins stays there.
static double among_waiting_threads(size_t n, double (*act)(void)) {
  long delay = mi_option_get(mi_option_purge_delay);
  mi_option_set(mi_option_purge_delay, -1);
  double seconds = among_threads(n, act);
  mi_option_set(mi_option_purge_delay, delay);
  return seconds / (double)n;
}

static double cost_of_visiting_blocks(size_t n) {
  return among_waiting_threads(n, &visit_blocks);
}

static double cost_of_checking(size_t n) {
  return among_waiting_threads(n, &check_all);
}

static double cost_of_starting(size_t n) {
  return among_threads(n, &restart);
}

static double cost_of_sharing(size_t n) {
  return among_threads(n, &use_shared);
}

int main(void) {
  watchdog(250);
  if (cpu_error() > 0.001) {
    test_skip("what heaps and threads cost", "the clock of CPU time goes in steps that are longer than that");
    return skip_code;
  }
  check_growth("check of a block of the main heap among heaps", &cost_of_checking_main,
               n_heaps / 4); // first: theaps stay
  check_growth("start and end of a thread", &cost_of_starting, n_threads);
  check_growth("end of a heap", &cost_of_ending, n_heaps);
  check_growth("visit of a heap", &cost_of_visiting, n_heaps);
  check_growth("calloc and free in a heap", &cost_of_using, n_heaps);
  check_growth("calloc and free in a heap of many threads", &cost_of_sharing, n_threads);
  check_growth("visit of the blocks of a thread", &cost_of_visiting_blocks, n_threads);
  check_growth("check of a thread", &cost_of_checking, n_threads);
  check_far_heaps();
  CHECK(mi_heap_check(NULL));
  return check_result();
}
