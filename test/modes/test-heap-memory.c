// Proves: heaps and their users may come and go for ever: memory stays flat over many heaps in turn, many threads that use
// one heap, and many heaps at a time; when they are gone all is as it was.  The end of a heap costs as much as it has pages,
// not blocks; in checked builds, where each block is marked as free, it costs no more than to free them.
#include "../check.h"
#include <mimalloc-stats.h>
#include <mimalloc.h>
#include <pthread.h>
#include "base/mode.h"
#include "support.h"

static int64_t pages_now(void) {
  mi_stats_t_decl(stats);
  mi_collect(true);
  CHECK(mi_stats_get(&stats));
  return stats.pages.current;
}

static size_t rss_settled(void) {
  mi_collect(true);
  return rss_now();
}

// What is done so often is done for so many seconds at most: beside 50 busy processes each wait for another thread takes 20 ms.
// The first part of it, from which on memory is to stay flat, is always done.
enum { seconds_max = 30 };

// ---- heaps in turn --------------------------------------------------------------------------------------------------

static void use(mi_heap_t* heap, size_t i, bool must_free) {
  void* p[6];
  for (size_t k = 0; k < COUNT_OF(p); k++) {
    size_t size = (size_t)16 << ((i + k) % 10);
    p[k] = mi_heap_malloc(heap, size);
    memset(p[k], 1, size);
  }
  if (i % 50 == 0) p[0] = mi_heap_realloc(heap, p[0], 700 * KiB);
  if (!must_free) return;
  for (size_t k = 0; k < COUNT_OF(p); k++) mi_free(p[k]);
}

static void* use_in_thread(void* heap) {
  use((mi_heap_t*)heap, 1, true);
  return NULL;
}

static void cycle(size_t i, bool destroy, bool has_thread) {
  mi_heap_t* heap = mi_heap_new();
  use(heap, i, !destroy);
  if (has_thread) {
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, &use_in_thread, heap), 0);
    use(heap, i, !destroy);
    pthread_join(thread, NULL);
  }
  if (destroy) mi_heap_destroy(heap);
  else mi_heap_delete(heap);
}

static void check_cycles(const char* what, size_t n, bool destroy, bool has_thread) {
  int64_t n_pages = 0;
  size_t  early = 0;
  double  end = now_seconds() + seconds_max * (double)test_scale();
  n = (TEST_SANITIZED ? n / 20 : n) * test_scale();
  for (size_t i = 0; i < n; i++) {
    if (i == n / 10) {
      early = rss_settled();
      n_pages = pages_now();
    }
    if (i > n / 10 && now_seconds() > end) break;
    cycle(i, destroy, has_thread);
  }
  CHECK_FOR(pages_now() <= n_pages, "%s: %lld pages, then %lld", what, (long long)n_pages, (long long)pages_now());
  CHECK(rss_within(what, minus(rss_settled(), early), 1 * MiB));
}

// ---- threads in turn ------------------------------------------------------------------------------------------------

// Each leaves a block in the heap, and frees one of an earlier thread.
static void* left[1000];

static void* short_life(void* arg) {
  mi_heap_t* heap = (mi_heap_t*)arg;
  for (size_t i = 0; i < 20; i++) mi_free(mi_heap_malloc(heap, 16 * i + 1));
  static size_t next; // there is one such thread at a time
  void**        place = &left[next++ % COUNT_OF(left)];
  mi_free(*place);
  *place = mi_heap_malloc(heap, 64 + next % 500);
  return NULL;
}

static void check_threads(void) {
  mi_heap_t* heap = mi_heap_new();
  size_t     n = (TEST_SANITIZED ? 2000 : 20000) * test_scale(), early = 0;
  double     end = now_seconds() + seconds_max * (double)test_scale();
  for (size_t i = 0; i < n && (i <= n / 16 || now_seconds() < end); i++) {
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, &short_life, heap), 0);
    pthread_join(thread, NULL);
    if (i == n / 16) early = rss_settled(); // each place in `left` has had a block
  }
  CHECK(rss_within("threads that use a heap", minus(rss_settled(), early), 1 * MiB));
  CHECK(mi_heap_check(heap));
  mi_heap_destroy(heap);
}

// ---- heaps at a time ------------------------------------------------------------------------------------------------

enum { n_heaps = 2000 };
static mi_heap_t* heaps[n_heaps];

static void* use_all(void* arg) {
  (void)arg;
  for (size_t i = 0; i < n_heaps; i++) mi_free(mi_heap_malloc(heaps[i], 100));
  return NULL;
}

static size_t grown(size_t* last) {
  size_t now = rss_settled(), before = *last;
  *last = now;
  return minus(now, before);
}

static void check_many(void) {
  pthread_t thread;
  size_t    rss = rss_settled();
  for (size_t i = 0; i < n_heaps; i++) heaps[i] = mi_heap_new();
  size_t unused = grown(&rss);
  for (size_t i = 0; i < n_heaps; i++) (void)!mi_heap_malloc(heaps[i], 100);
  size_t used = grown(&rss);
  pthread_create(&thread, NULL, &use_all, NULL);
  pthread_join(thread, NULL);
  size_t by_another = grown(&rss);
  printf("bytes a heap: %zu unused, %zu more with a block, %zu more with another thread\n", unused / n_heaps,
         used / n_heaps, by_another / n_heaps);
  CHECK(rss_within("2000 heaps", unused + used + by_another, n_heaps * 33 * KiB));
  CHECK(mi_heap_check(NULL));
  for (size_t i = 0; i < n_heaps; i++) mi_heap_destroy(heaps[i]);
}

// ---- what the end of a heap costs -------------------------------------------------------------------------------------

// Sizes of blocks, and how many of the big ones a page has; in hardened builds a page is an OS page shorter, if it is not one
// of those that ask for huge OS pages.
enum { n_rounds = 7, n_small = 1000000, small_size = 16, big_size = 1664, n_per_page = MI_HARDENED ? 36 : 39 };

static int64_t n_pages_of_heap;

// The least of some rounds, and of those before.
static double destroy_seconds(size_t size, size_t n, double least) {
  for (int round = 0; round < n_rounds; round++) {
    mi_heap_t* heap = mi_heap_new();
    for (size_t i = 0; i < n; i++) (void)!mi_heap_malloc(heap, size - MI_PADDING_SIZE);
    mi_stats_t_decl(stats);
    CHECK(mi_heap_stats_get(heap, &stats));
    n_pages_of_heap = stats.pages.current;
    double start = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
    mi_heap_destroy(heap);
    double seconds = clock_seconds(CLOCK_THREAD_CPUTIME_ID) - start;
    if (seconds < least) least = seconds;
  }
  return least;
}

// Processes beside this one take caches away and may double any time: so the bound is far below 100 times as much, and there are some
// tries.
static double cost_allowed(double big) {
  return 8 * big + 20e-6;
}

// The same heap, its blocks freed one by one.
static double free_seconds(size_t size, size_t n) {
  void** blocks = (void**)mi_malloc(n * sizeof(void*));
  double least = 1e9;
  for (int round = 0; round < n_rounds; round++) {
    mi_heap_t* heap = mi_heap_new();
    for (size_t i = 0; i < n; i++) blocks[i] = mi_heap_malloc(heap, size - MI_PADDING_SIZE);
    double start = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
    for (size_t i = 0; i < n; i++) mi_free(blocks[i]);
    double seconds = clock_seconds(CLOCK_THREAD_CPUTIME_ID) - start;
    if (seconds < least) least = seconds;
    mi_heap_destroy(heap);
  }
  mi_free(blocks);
  return least;
}

static void check_marking_cost(void) {
  double destroyed = destroy_seconds(small_size, n_small, 1e9), freed = free_seconds(small_size, n_small);
  printf("%d blocks of %d bytes: destroyed %.0f us, freed %.0f us\n", n_small, small_size, destroyed * 1e6,
         freed * 1e6);
  if (!TEST_SANITIZED) CHECK_FOR(destroyed <= freed, "%.0f us, %.0f us", destroyed * 1e6, freed * 1e6);
}

static void check_cost(void) {
  double  small = 1e9, big = 1e9;
  int64_t n_pages = 0;
  for (int tries = 0; tries == 0 || (tries < 5 && small > cost_allowed(big)); tries++) {
    small = destroy_seconds(small_size, n_small, small);
    n_pages = n_pages_of_heap;
    big = destroy_seconds(big_size, (size_t)n_pages * n_per_page, big);
  }
  printf("destroy: %d blocks of %d bytes %.1f us, %lld of %d bytes %.1f us, %lld pages, %.0f ns a page\n", n_small,
         small_size, small * 1e6, (long long)n_pages * n_per_page, big_size, big * 1e6, (long long)n_pages,
         small * 1e9 / (double)n_pages);
  CHECK_EQ(n_pages_of_heap, n_pages);
  if (TEST_SANITIZED) return;
  CHECK_FOR(small <= cost_allowed(big), "%.1f us for blocks 100 times as many as those of %.1f us", small * 1e6,
            big * 1e6);
}

int main(void) {
  watchdog(250);
  int64_t n_pages = pages_now();
  size_t  rss = rss_settled();
  if (MI_CHECKED) check_marking_cost();
  else check_cost();
  check_cycles("heaps destroyed", 100000, true, false);
  check_cycles("heaps deleted", 100000, false, false);
  check_cycles("heaps of two threads destroyed", 3000, true, true);
  check_cycles("heaps of two threads deleted", 3000, false, true);
  check_threads();
  check_many();
  CHECK(mi_heap_check(NULL));
  CHECK_FOR(pages_now() <= n_pages + 3, "%lld pages, then %lld", (long long)n_pages, (long long)pages_now());
  // Heaps, theaps, heap links and the descriptors of slices stay for the next, and 1/16 of what was freed.
  const size_t theap = (MI_HARDENED ? 25 : 23) * KiB / 2;
  CHECK(rss_within("at the end", minus(rss_settled(), rss), 2 * n_heaps * theap + 6 * MiB));
  return check_result();
}
