// Proves: guarded mode can be switched at run time, for all threads; one block in so many is guarded; guarded blocks are
// blocks like all others to every function; what they cost is bounded; threads, heaps and forks come and go under it.
#include "../check.h"
#include <mimalloc-stats.h>
#include <mimalloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include "base/mode.h"
#include "support.h"

// As in src/heap/guard.h.
enum { live_max = 4096, freed_max = 256 };

static int64_t guarded_count(void) {
  mi_stats_t stats;
  mi_stats_header_init(&stats);
  mi_stats_get(&stats);
  return stats.malloc_guarded_count.total;
}

static void set_rate(long rate) {
  mi_option_set(mi_option_guarded_sample_rate, rate);
}

// How many guarded blocks were made since the last call.  A block does not tell: in builds with padding each has exactly
// the size that was asked for.
static int64_t newly_guarded(void) {
  static int64_t last;
  int64_t        now = guarded_count(), n = now - last;
  last = now;
  return n;
}

enum { odd_size = 1001 };

static bool next_is_guarded(void) {
  newly_guarded();
  mi_free(mi_malloc(odd_size));
  return newly_guarded() == 1;
}

// Of a guarded block; one of no bytes has one in builds without padding.
static size_t usable(size_t size) {
  return size == 0 && !MI_PADDING ? 1 : size;
}

// ---- every kind of block --------------------------------------------------------------------------------------------

static void check_block(void* p, size_t size, size_t align, size_t offset, bool zero, const char* what) {
  CHECK_FOR(p != NULL, "%s(%zu)", what, size);
  if (p == NULL) return;
  CHECK_FOR(mi_usable_size(p) == usable(size), "%s(%zu): %zu usable", what, size, mi_usable_size(p));
  CHECK_FOR(is_aligned((char*)p + offset, align), "%s(%zu): %p, align %zu, offset %zu", what, size, p, align, offset);
  CHECK_FOR(!zero || is_zero(p, 0, size), "%s(%zu): not zero", what, size);
  CHECK(mi_is_in_heap_region(p) && mi_check_owned(p));
  pattern_fill(p, 0, size, size);
}

static void check_sizes(size_t max) {
  rng_t rng = rng_make(max);
  for (int i = 0; i < 300; i++) {
    size_t size = rng_size(&rng, max);
    size_t align = (size_t)1 << rng_below(&rng, 18);
    size_t offset = rng_below(&rng, size + 1);
    void*  p = mi_malloc(size);
    check_block(p, size, mi_option_get(mi_option_guarded_precise) ? 1 : 16, 0, false, "malloc");
    void* z = mi_calloc(size, 1);
    check_block(z, size, 1, 0, true, "calloc");
    void* a = mi_malloc_aligned(size, align);
    check_block(a, size, align, 0, false, "malloc_aligned");
    void* o = mi_zalloc_aligned_at(size, align, offset);
    check_block(o, size, align, offset, true, "zalloc_aligned_at");
    size_t more = rng_size(&rng, max);
    p = mi_realloc(p, more);
    check_block(p, more, 1, 0, false, "realloc");
    z = mi_rezalloc(z, more);
    CHECK_EQ(mi_usable_size(z), usable(more));
    CHECK_EQ(pattern_check(z, size < more ? size : more, size), size < more ? size : more);
    CHECK(size >= more || is_zero(z, size, more));
    a = mi_realloc_aligned(a, more, align);
    CHECK(is_aligned(a, align) && mi_usable_size(a) == usable(more));
    CHECK_EQ(pattern_check(a, size < more ? size : more, size), size < more ? size : more);
    CHECK_EQ(pattern_check(o, size, size), size);
    mi_free(p);
    mi_free(z);
    mi_free(a);
    mi_free(o);
  }
}

static void check_blocks(void) {
  set_rate(1);
  for (int precise = 0; precise <= 1; precise++) {
    mi_option_set(mi_option_guarded_precise, precise);
    check_sizes(200);
    check_sizes(10000);
    check_sizes(500 * KiB);
  }
  mi_option_set(mi_option_guarded_precise, 0);
  // A block of the heap's size limit, and one beyond what can be guarded: that is an ordinary one.
  newly_guarded();
  void* p = mi_malloc(100 * MiB + 1);
  CHECK_EQ(newly_guarded(), 1);
  CHECK_EQ(mi_usable_size(p), 100 * MiB + 1);
  mi_free(p);
  set_rate(0);
}

// What a block keeps while it moves, and what happens to interior pointers.
static int last_code;

static void keep_code(int code, void* arg) {
  (void)arg;
  last_code = code;
}

static void check_errors(void) {
  mi_register_error(&keep_code, NULL);
  set_rate(1);
  char* p = (char*)mi_malloc(1000);
  last_code = 0;
  mi_free(hidden_pointer(p + 8));
  CHECK_EQ(last_code, EINVAL);
  last_code = 0;
  mi_free(p);
  CHECK_EQ(last_code, 0);
  mi_free(hidden_pointer(p));
  CHECK_EQ(last_code, EAGAIN);
  // In every order, also long after.
  void* others[100];
  for (size_t i = 0; i < COUNT_OF(others); i++) others[i] = mi_malloc(10 * i);
  for (size_t i = 0; i < COUNT_OF(others); i++) mi_free(others[i]);
  last_code = 0;
  mi_free(hidden_pointer(p));
  CHECK_EQ(last_code, EAGAIN);
  // What was written next to a block, on either side.
  static const ptrdiff_t at[] = {-1, -50, 100, 111};
  for (size_t i = 0; i < COUNT_OF(at); i++) {
    p = (char*)hidden_pointer(mi_malloc(100));
    p[at[i]] = 0;
    last_code = 0;
    mi_free(p);
    CHECK_FOR(last_code == EFAULT, "at %td: %d", at[i], last_code);
  }
  // malloc(0) is a block of its own; that the program may write nothing there is between it and its bytes.
  p = (char*)mi_malloc(0);
  p = (char*)mi_realloc(p, 0);
  last_code = 0;
  mi_free(p);
  CHECK_EQ(last_code, 0);
  // Who frees it may say that it has no bytes.
  mi_free_size(mi_malloc(0), 0);
  mi_free_size(mi_calloc(0, 1), 0);
  mi_free_size_aligned(mi_malloc_aligned(0, 64), 0, 64);
  CHECK_EQ(last_code, 0);
  set_rate(0);
  mi_register_error(NULL, NULL);
}

// ---- which blocks ---------------------------------------------------------------------------------------------------

static void check_switch(void) {
  mi_free(mi_malloc(odd_size)); // its bin has blocks
  CHECK(!next_is_guarded());
  for (int i = 0; i < 3; i++) {
    set_rate(1);
    CHECK_FOR(next_is_guarded(), "round %d, on", i);
    CHECK(next_is_guarded());
    mi_collect(true);
    CHECK_FOR(next_is_guarded(), "round %d, after collect", i);
    set_rate(0);
    CHECK_FOR(!next_is_guarded(), "round %d, off", i);
  }
  if (MI_HARDENED) return; // what is freed waits
  // When it is off, blocks go back to bins: what was freed last comes first.
  void* p = mi_malloc(odd_size);
  mi_free(p);
  CHECK(mi_malloc(odd_size) == p);
  mi_free(p);
}

// n blocks, lone or many at a time; how many of them were guarded.
static size_t count_sampled(size_t n, size_t n_live, size_t size) {
  static void* blocks[1000];
  int64_t      before = guarded_count();
  for (size_t i = 0; i < n; i++) {
    void** slot = &blocks[i % n_live];
    mi_free(*slot);
    *slot = mi_malloc(size + i % 50);
  }
  int64_t after = guarded_count();
  for (size_t i = 0; i < n_live; i++) {
    mi_free(blocks[i]);
    blocks[i] = NULL;
  }
  return (size_t)(after - before);
}

static void check_rate(size_t rate, size_t n, size_t n_live) {
  set_rate((long)rate);
  size_t got = count_sampled(n, n_live, 24);
  set_rate(0);
  double wanted = (double)n / (double)rate;
  CHECK_FOR((double)got > wanted * 0.8 && (double)got < wanted * 1.2, "rate %zu, %zu live: %zu of %zu", rate, n_live,
            got, n);
}

static void check_rates(void) {
  size_t n = TEST_SANITIZED ? 100000 : 1000000;
  check_rate(100, n, 1);
  check_rate(100, n, 1000);
  check_rate(10, n / 10, 100);
  check_rate(999, 2 * n, 100);
  check_rate(2, 10000, 10);
}

// The gaps between sampled blocks are not all the same, and the seed decides on them.
enum { n_gaps = 200 };

static void measure_gaps(long seed, size_t* out) {
  mi_option_set(mi_option_guarded_sample_seed, seed);
  set_rate(50);
  for (size_t i = 0; i < n_gaps; i++) {
    out[i] = 1;
    while (!next_is_guarded()) out[i]++;
  }
  set_rate(0);
}

static void check_seed(void) {
  static size_t first[n_gaps], again[n_gaps], other[n_gaps];
  size_t        least = SIZE_MAX, most = 0;
  measure_gaps(4711, first);
  measure_gaps(4711, again);
  measure_gaps(4712, other);
  CHECK(memcmp(first, again, sizeof(first)) == 0);
  CHECK(memcmp(first, other, sizeof(first)) != 0);
  for (size_t i = 0; i < n_gaps; i++) {
    least = first[i] < least ? first[i] : least;
    most = first[i] > most ? first[i] : most;
  }
  CHECK_FOR(least >= 1 && least < 10 && most > 90 && most < 100, "gaps from %zu to %zu", least, most);
  mi_option_set(mi_option_guarded_sample_seed, 0);
  measure_gaps(0, first);
  measure_gaps(0, again);
  CHECK(memcmp(first, again, sizeof(first)) != 0);
}

// Rates of 1000 and more, for so long: some blocks, but no more than one in so many, nor than time allows.  `n_live` blocks
// at a time, each replaced by one of another size if `mixed`, all at once if `bulk`.
static void check_production(double seconds, size_t n_live, bool mixed, bool bulk) {
  static void* blocks[10000];
  rng_t        rng = rng_make(n_live);
  set_rate(1000);
  int64_t before = guarded_count();
  double  start = now_seconds(), now = start;
  size_t  n = 0;
  for (; now < start + seconds; now = now_seconds()) {
    for (size_t i = 0; bulk && i < n_live; i++) {
      mi_free(blocks[i]);
      blocks[i] = NULL;
    }
    for (size_t i = 0; i < (bulk ? n_live : 1000); i++, n++) {
      void** slot = &blocks[n % n_live];
      mi_free(*slot);
      *slot = mi_malloc(8 + (mixed ? rng_below(&rng, 500) : n % 500));
    }
  }
  int64_t got = guarded_count() - before;
  for (size_t i = 0; i < n_live; i++) {
    mi_free(blocks[i]);
    blocks[i] = NULL;
  }
  set_rate(0);
  printf("%zu live: %lld of %zu in %.1f seconds\n", n_live, (long long)got, n, now - start);
  CHECK_FOR(got >= 5 || TEST_TSAN, "%zu live: %lld of %zu", n_live, (long long)got, n);
  CHECK_FOR((double)got <= (double)n / 1000 * 1.2, "%zu live: %lld of %zu", n_live, (long long)got, n);
  // A block takes a microsecond at least, and 400 times as long passes until the next.
  CHECK_FOR((double)got < 2500 * (now - start) + 10, "%lld in %.2f seconds", (long long)got, now - start);
}

static void check_bounds(void) {
  mi_option_set(mi_option_guarded_min, 100);
  mi_option_set(mi_option_guarded_max, 200);
  set_rate(1);
  for (size_t size = 1; size < 400; size += 3) {
    int64_t before = guarded_count();
    mi_free(mi_malloc(size));
    bool guarded = guarded_count() > before;
    CHECK_FOR(guarded == (size >= 100 && size <= 200), "size %zu", size);
  }
  // Only what may be guarded counts.
  set_rate(20);
  int64_t before = guarded_count();
  for (int i = 0; i < 20000; i++) {
    mi_free(mi_malloc(50));
    mi_free(mi_malloc(150));
  }
  int64_t got = guarded_count() - before;
  CHECK_FOR(got > 800 && got < 1200, "%lld of 20000", (long long)got);
  mi_option_set(mi_option_guarded_min, 1000000);
  mi_option_set(mi_option_guarded_max, 2000000);
  set_rate(1);
  before = guarded_count();
  mi_free(mi_malloc(999999)); // hardened builds guard each large block
  CHECK_EQ(guarded_count(), before + MI_HARDENED);
  mi_free(mi_malloc(1000000));
  CHECK_EQ(guarded_count(), before + 1 + MI_HARDENED);
  set_rate(0);
  mi_option_set(mi_option_guarded_min, 0);
  mi_option_set(mi_option_guarded_max, 1 << 30);
}

// ---- heaps ----------------------------------------------------------------------------------------------------------

static void check_heaps(void) {
  set_rate(1);
  newly_guarded();
  mi_heap_t* heap = mi_heap_new();
  void*      p = mi_heap_malloc(heap, odd_size);
  void*      q = mi_heap_zalloc(heap, 3 * odd_size);
  void*      a = mi_heap_malloc_aligned(heap, odd_size, 128);
  void*      m = mi_malloc(odd_size);
  CHECK_EQ(newly_guarded(), 4);
  CHECK(mi_heap_contains(heap, p) && mi_heap_contains(heap, q) && mi_heap_contains(heap, a));
  CHECK(!mi_heap_contains(heap, m) && mi_heap_contains(mi_heap_main(), m));
  pattern_fill(p, 0, odd_size, 1);
  mi_free(q);
  CHECK(!mi_heap_contains(heap, q)); // it is nobody's
  // Its blocks live on in the main heap.
  mi_heap_delete(heap);
  CHECK(mi_heap_contains(mi_heap_main(), p));
  CHECK_EQ(pattern_check(p, odd_size, 1), odd_size);
  mi_free(p);
  mi_free(a);
  // Destroyed ones are freed, and stay known as such.
  mi_register_error(&keep_code, NULL);
  for (int i = 0; i < 20; i++) {
    heap = mi_heap_new();
    mi_heap_set_default(heap);
    for (size_t k = 0; k < 50; k++) p = mi_malloc(odd_size + k);
    CHECK(mi_heap_contains(heap, p));
    mi_heap_destroy(heap);
    last_code = 0;
    mi_free(hidden_pointer(p));
    CHECK_EQ(last_code, EAGAIN);
    CHECK(mi_heap_contains(mi_heap_main(), m = mi_realloc(m, odd_size + (size_t)i)));
  }
  mi_register_error(NULL, NULL);
  mi_free(m);
  set_rate(0);
  CHECK(!next_is_guarded());
}

// A heap begins anew, also where another one was.
static void check_heaps_in_turn(void) {
  enum { n_heaps = 30, n_blocks = 600, rate = 3 };
  set_rate(rate);
  int64_t before = guarded_count();
  for (size_t i = 0; i < n_heaps; i++) {
    static void* kept[n_blocks];
    mi_heap_t*   heap = mi_heap_new();
    for (size_t k = 0; k < n_blocks; k++) {
      kept[k] = mi_heap_malloc(heap, odd_size);
      if (k % 4 != 0) mi_free(kept[k]);
    }
    if (i % 2 == 0) {
      mi_heap_destroy(heap);
      continue;
    }
    mi_heap_delete(heap);
    for (size_t k = 0; k < n_blocks; k += 4) mi_free(kept[k]);
  }
  int64_t got = guarded_count() - before, wanted = n_heaps * n_blocks / rate;
  set_rate(0);
  CHECK_FOR(got > wanted * 8 / 10 && got < wanted * 12 / 10, "%lld guarded, not about %lld", (long long)got,
            (long long)wanted);
}

static void* not_guarded_elsewhere(void* arg) {
  CHECK(!next_is_guarded());
  mi_free(mi_heap_malloc((mi_heap_t*)arg, odd_size));
  CHECK_EQ(newly_guarded(), 0);
  return NULL;
}

// The setting of one heap for one thread.
static void check_own_settings(void) {
  pthread_t  thread;
  mi_heap_t* heap = mi_heap_new();
  mi_heap_guarded_set_sample_rate(heap, 1, 0);
  mi_heap_guarded_set_size_bound(heap, 500, 2000);
  for (size_t size = 101; size < 4000; size += 400) {
    newly_guarded();
    mi_free(mi_heap_malloc(heap, size));
    CHECK_FOR(newly_guarded() == (size >= 500 && size <= 2000), "size %zu", size);
    mi_free(mi_malloc(size));
    CHECK_FOR(newly_guarded() == 0, "size %zu", size);
  }
  pthread_create(&thread, NULL, &not_guarded_elsewhere, heap);
  pthread_join(thread, NULL);
  // It overrides the options.
  set_rate(1);
  mi_heap_guarded_set_sample_rate(heap, 0, 0);
  newly_guarded();
  mi_free(mi_heap_malloc(heap, odd_size));
  CHECK(newly_guarded() == 0 && next_is_guarded());
  set_rate(0);
  mi_heap_delete(heap);
  // Of the main heap, which NULL means too.
  mi_heap_guarded_set_sample_rate(NULL, 1, 0);
  CHECK(next_is_guarded());
  mi_heap_guarded_set_sample_rate(mi_heap_main(), 0, 0);
  CHECK(!next_is_guarded());
}

static void* check_own_settings_of_thread(void* arg) {
  (void)arg;
  check_own_settings();
  return NULL;
}

// ---- what it costs --------------------------------------------------------------------------------------------------

static void check_memory(void) {
  static void* blocks[3 * live_max];
  size_t       rss = rss_now(), mappings = mapping_count();
  set_rate(1);
  int64_t before = guarded_count();
  for (size_t i = 0; i < COUNT_OF(blocks); i++) blocks[i] = mi_malloc(32);
  int64_t got = guarded_count() - before;
  CHECK_FOR(got >= live_max - 16 && got <= live_max, "%lld guarded", (long long)got);
  CHECK(!next_is_guarded());
  // An OS page and a record each, the page tables that lie so wide apart need, and what is not guarded.
  CHECK(rss_within("guarded blocks", minus(rss_now(), rss), live_max * (4 * KiB + 1 * KiB) + 2 * MiB));
  size_t more = minus(mapping_count(), mappings);
  CHECK_FOR(more <= 3 * live_max || mappings == 0, "%zu mappings more", more);
  mi_free(blocks[0]); // there is room for another
  newly_guarded();
  blocks[0] = mi_malloc(odd_size);
  CHECK_EQ(newly_guarded(), 1);
  for (size_t i = 0; i < COUNT_OF(blocks); i++) mi_free(blocks[i]);
  more = minus(mapping_count(), mappings);
  CHECK_FOR(more <= 3 * freed_max || mappings == 0, "%zu mappings when freed", more);
  // Freed blocks, however many and large, keep nothing but address space, and of that not much.
  for (size_t i = 0; i < 20000 / (TEST_SANITIZED ? 20 : 1); i++) {
    char* p = (char*)mi_malloc(32 + (i % 100 == 0 ? 2 * MiB : 0));
    p[0] = 1;
    p[mi_usable_size(p) - 1] = 1;
    mi_free(p);
  }
  set_rate(0);
  mi_collect(true);
  CHECK(rss_within("after 20000 blocks", minus(rss_now(), rss), 4 * MiB));
  more = minus(mapping_count(), mappings);
  CHECK_FOR(more <= 3 * freed_max || mappings == 0, "%zu mappings at the end", more);
}

// ---- threads --------------------------------------------------------------------------------------------------------

enum { n_workers = 4 };
static atomic_bool    is_over;
static atomic_size_t  n_rounds[n_workers];
static _Atomic(void*) handed[16];

static void* work(void* arg) {
  size_t     index = (size_t)(uintptr_t)arg;
  rng_t      rng = rng_make(index);
  void*      blocks[50] = {NULL};
  size_t     sizes[50] = {0};
  mi_heap_t* heap = (index % 2 == 1 ? mi_heap_new() : NULL);
  for (size_t n = 0; !atomic_load(&is_over) || n < 100; n++) {
    size_t i = rng_below(&rng, COUNT_OF(blocks));
    CHECK_EQ(pattern_check(blocks[i], sizes[i], i), sizes[i]);
    mi_free(blocks[i]);
    sizes[i] = rng_size(&rng, n % 100 == 0 ? 200000 : 3000);
    blocks[i] = (heap != NULL && n % 3 == 0 ? mi_heap_malloc(heap, sizes[i]) : mi_malloc(sizes[i]));
    if (n % 7 == 0) blocks[i] = mi_realloc(blocks[i], sizes[i] = rng_size(&rng, 2000));
    pattern_fill(blocks[i], 0, sizes[i], i);
    mi_free(atomic_exchange(&handed[rng_below(&rng, COUNT_OF(handed))], mi_malloc(rng_below(&rng, 100))));
    if (n % 1000 == 999) mi_collect(n % 2000 == 999);
    atomic_fetch_add(&n_rounds[index], 1);
  }
  for (size_t i = 0; i < COUNT_OF(blocks); i++) mi_free(blocks[i]);
  if (heap != NULL) mi_heap_delete(heap);
  return NULL;
}

static void start_workers(pthread_t* threads, size_t n) {
  atomic_store(&is_over, false);
  for (size_t i = 0; i < n; i++) pthread_create(&threads[i], NULL, &work, (void*)(uintptr_t)i);
}

static void end_workers(pthread_t* threads, size_t n) {
  atomic_store(&is_over, true);
  for (size_t i = 0; i < n; i++) pthread_join(threads[i], NULL);
  for (size_t i = 0; i < COUNT_OF(handed); i++) mi_free(atomic_exchange(&handed[i], NULL));
}

// Until each of them has done so many rounds more.
static void await_rounds(size_t n) {
  for (size_t i = 0; i < n_workers; i++) {
    size_t before = atomic_load(&n_rounds[i]);
    while (atomic_load(&n_rounds[i]) < before + n) sleep_ms(1);
  }
}

// On, off and on again while threads run; each of them notices.
static void check_switch_with_threads(void) {
  static const long rates[] = {1, 0, 5, 1000, 100, 0, 3};
  pthread_t         threads[n_workers];
  start_workers(threads, n_workers);
  for (size_t round = 0; round < 3 * COUNT_OF(rates); round++) {
    long rate = rates[round % COUNT_OF(rates)];
    set_rate(rate);
    await_rounds(100);
    int64_t before = guarded_count();
    await_rounds(1000);
    int64_t got = guarded_count() - before;
    // In hardened builds those of no bytes always are.
    if (rate == 0 && !MI_HARDENED) CHECK_FOR(got == 0, "%lld while off", (long long)got);
    if (rate > 0 && rate < 100) CHECK_FOR(got > 100, "%lld at rate %ld", (long long)got, rate);
  }
  end_workers(threads, n_workers);
  set_rate(0);
}

// A block of a sleeping thread's bin, and one that another thread frees.
static void* churn(void* arg) {
  rng_t rng = rng_make((uint64_t)(uintptr_t)arg);
  for (int i = 0; i < 40; i++) {
    void* p = mi_malloc(rng_size(&rng, 5000));
    mi_free(atomic_exchange(&handed[rng_below(&rng, COUNT_OF(handed))], p));
  }
  if ((uintptr_t)arg % 3 == 0) mi_thread_done();
  mi_free(mi_malloc(10));
  return NULL;
}

static void check_thread_churn(void) {
  size_t rss = 0;
  set_rate(3);
  int64_t before = guarded_count();
  for (size_t i = 0; i < 1000 / (TEST_SANITIZED ? 10 : 1); i++) {
    pthread_t threads[2];
    for (size_t k = 0; k < 2; k++) pthread_create(&threads[k], NULL, &churn, (void*)(uintptr_t)(2 * i + k));
    for (size_t k = 0; k < 2; k++) pthread_join(threads[k], NULL);
    if (i == 100) rss = rss_now();
  }
  set_rate(0);
  CHECK(guarded_count() > before + 1000);
  if (rss != 0) CHECK(rss_within("growth with 1800 threads", minus(rss_now(), rss), 2 * MiB));
  for (size_t i = 0; i < COUNT_OF(handed); i++) mi_free(atomic_exchange(&handed[i], NULL));
}

// ---- fork -----------------------------------------------------------------------------------------------------------

static int fork_child(void* mine) {
  alarm(60);
  if (pattern_check(mine, odd_size, 3) != odd_size) return 50;
  mi_free(mine);
  for (size_t i = 0; i < 2000; i++) {
    char* p = (char*)mi_malloc(i);
    memset(p, 1, i);
    mi_free(p);
  }
  if (!next_is_guarded()) return 51;
  mi_option_set(mi_option_guarded_sample_rate, 0);
  return next_is_guarded() ? 52 : 7;
}

static void check_fork(void) {
  pthread_t threads[3];
  set_rate(1);
  void* mine = mi_malloc(odd_size);
  pattern_fill(mine, 0, odd_size, 3);
  start_workers(threads, COUNT_OF(threads));
  for (int i = 0; i < 30; i++) {
    int   status = 0;
    pid_t child = fork();
    if (child == 0) _exit(fork_child(mine));
    waitpid(child, &status, 0);
    CHECK_FOR(WIFEXITED(status) && WEXITSTATUS(status) == 7, "child %d: status %x", i, status);
  }
  end_workers(threads, COUNT_OF(threads));
  mi_free(mine);
  set_rate(0);
}

int main(void) {
  pthread_t thread;
  watchdog(600);
  if (MI_TRACK) { // the tool watches every block: none is guarded, whatever is asked for
    set_rate(1);
    for (int i = 0; i < 1000; i++) CHECK(!next_is_guarded());
    return check_result();
  }
  check_switch();
  check_blocks();
  check_errors();
  check_rates();
  check_seed();
  check_production(2, 10000, true, false);
  check_production(2, 10000, false, true);
  check_production(5, 500, false, false); // all that it needs is in bins
  check_bounds();
  check_heaps();
  check_heaps_in_turn();
  // In a thread: what a thread has set for itself cannot be taken back.
  pthread_create(&thread, NULL, &check_own_settings_of_thread, NULL);
  pthread_join(thread, NULL);
  CHECK(!next_is_guarded());
  check_memory();
  check_switch_with_threads();
  check_thread_churn();
  if (!TEST_TSAN) check_fork(); // it does not support fork with threads
  return check_result();
}
