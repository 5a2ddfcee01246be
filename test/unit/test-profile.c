// Proves: the profile's tables have bounds: with more blocks in use than they hold the mean distance is doubled, and estimates stay
// right, also of more blocks than a word has room for with their parts; stacks that are too many are counted together.  A profile that was ended is over, whatever other threads do.  Distances are
// exponentially distributed, and probabilities those of the exponential function.
#include <pthread.h>
#include <sched.h>
#include "../check.h"
#include "../modes/support.h"
#include "heap/event.h"
#include "heap/profile.h"
#include "mimalloc-profile.h"
#include "support/chance.h"

static void check_chance(void) {
  static const struct {
    size_t size;
    double wanted;
  } known[] = {{1, 1.90734681382e-06},   {1000, 0.00190553079934}, {100000, 0.173648344725},
               {524288, 0.632120558829}, {5242880, 0.99995460007}, {50000000, 1}};
  for (size_t i = 0; i < COUNT_OF(known); i++) {
    double got = _mi_chance_of_size(known[i].size, 524288), error = got / known[i].wanted - 1;
    CHECK_FOR(error > -1e-8 && error < 1e-8, "%zu: %.12f", known[i].size, got);
  }
  enum { n = 200000, mean = 1000 };
  rng_t  rng = rng_make(5);
  double sum = 0;
  size_t n_above = 0;
  for (size_t i = 0; i < n; i++) {
    int64_t distance = _mi_chance_distance(rng_next(&rng), mean);
    CHECK(distance >= 1 && distance < 64 * mean);
    sum += (double)distance;
    n_above += (distance > 2 * mean);
  }
  CHECK_FOR(sum / n > 985 && sum / n < 1015, "mean %.1f", sum / n);
  CHECK_FOR(n_above > n * 0.1305 && n_above < n * 0.1405, "%zu of %d above two means, not %.0f", n_above, n,
            n * 0.1353);
}

static double live_bytes(void) {
  double sum = 0;
  for (uint32_t i = 0; i < _mi_profile_n_stacks(); i++) {
    const mi_profile_stack_t* stack = _mi_profile_stack(i);
    if (stack != NULL) sum += (double)mi_load_relaxed(&((mi_profile_stack_t*)stack)->live);
  }
  return sum;
}

enum { n_blocks = 200000, size = 200 };

static void check_blocks(void) {
  static void*        blocks[n_blocks];
  mi_profile_counts_t counts;
  _mi_profile_limit(1000);
  CHECK_EQ(mi_profile_start(1000), 0);
  for (size_t i = 0; i < n_blocks; i++) blocks[i] = mi_malloc(size);
  _mi_profile_counts(&counts);
  CHECK_FOR(counts.n_blocks <= 1000 && counts.n_blocks_max <= 1000 && counts.n_blocks > 300, "%zu blocks",
            counts.n_blocks);
  CHECK_FOR(counts.mean >= 32000 && counts.mean <= 256000, "mean %zu", counts.mean); // 40 MB in 300 to 1000 samples
  CHECK_FOR(counts.n_dropped < 20, "%zu dropped", counts.n_dropped);
  CHECK_FOR(counts.n_samples < 10000, "%zu samples", counts.n_samples);
  double live = live_bytes(), wanted = (double)n_blocks * size;
  CHECK_FOR(live > wanted * 0.7 && live < wanted * 1.3, "%.0f bytes in use, not %.0f", live, wanted);
  for (size_t i = 0; i < n_blocks; i++) mi_free(blocks[i]);
  _mi_profile_counts(&counts);
  CHECK_EQ(counts.n_blocks, 0);
  CHECK_EQ(live_bytes(), 0);
  _mi_profile_limit(SIZE_MAX);
  mi_profile_stop();
}

static mi_noinline void* allocate_odd(unsigned path, int depth);

// Two functions, and no tail calls: each path has its own stack.
static mi_noinline void* allocate_by(unsigned path, int depth) {
  if (depth == 0) return mi_malloc(1000);
  void* volatile p = (path & 1 ? allocate_odd(path >> 1, depth - 1) : allocate_by(path >> 1, depth - 1));
  return p;
}

static mi_noinline void* allocate_odd(unsigned path, int depth) {
  if (depth == 0) return mi_malloc(2000);
  void* volatile p = (path & 1 ? allocate_odd(path >> 1, depth - 1) : allocate_by(path >> 1, depth - 1));
  return p;
}

// Each stack is found again, whichever others have its hash.
static void check_found_again(void) {
  mi_profile_counts_t first = {0}, again = {0};
  CHECK_EQ(mi_profile_start(1), 0);
  for (volatile int round = 0; round < 2; round++) { // one place of the call
    for (unsigned path = 0; path < 8192; path++) mi_free(allocate_by(path, 13));
    _mi_profile_counts(round == 0 ? &first : &again);
  }
  bool has_stacks = (first.n_stacks > 10); // a static program with musl has no unwinder: all are one
  CHECK(!has_stacks || first.n_stacks >= 8192);
  CHECK(again.n_samples > first.n_samples);
  CHECK_FOR(again.n_stacks < first.n_stacks + 100, "%zu, then %zu", first.n_stacks, again.n_stacks); // of other calls
  mi_profile_stop();
}

// 65536 different stacks, of which there is room for 16383.
static void check_stacks(void) {
  mi_profile_counts_t counts;
  CHECK_EQ(mi_profile_start(1), 0);
  for (unsigned path = 0; path < 65536; path += 3) mi_free(allocate_by(path, 16));
  _mi_profile_counts(&counts);
  printf("%zu stacks, %zu samples of others\n", counts.n_stacks, counts.n_other);
  CHECK(counts.n_stacks <= MI_PROFILE_STACKS);
  CHECK(counts.n_samples >= 65536 / 3);
  CHECK(counts.n_other > 0 || counts.n_stacks < MI_PROFILE_STACKS);
  CHECK_EQ(counts.n_blocks, 0);
  mi_profile_stop();
}

static int64_t n_allocated(void) {
  int64_t sum = 0;
  for (uint32_t i = 0; i < _mi_profile_n_stacks(); i++) {
    const mi_profile_stack_t* stack = _mi_profile_stack(i);
    if (stack != NULL) sum += mi_load_relaxed(&((mi_profile_stack_t*)stack)->n_allocated);
  }
  return sum;
}

// The number of blocks that a stack has allocated only grows, also when that is 10^8 a second for weeks.
static void check_many_blocks(void) {
  size_t  mean = (size_t)1 << (sizeof(void*) > 4 ? 40 : 31);
  size_t  n_samples = (sizeof(void*) > 4 ? 300 : 80000); // of 2^40, or 2^31 blocks
  int64_t last = 0, now = 1;
  void*   p = mi_malloc(MiB);
  CHECK_EQ(mi_profile_start(0), 0);
  for (size_t i = 0; i < n_samples && now > last; i++) {
    last = n_allocated();
    _mi_profile_add(p, 8, 1, mean);
    _mi_profile_remove(_mi_page_of(p));
    now = n_allocated();
  }
  CHECK_FOR(now > last, "%lld, after %lld", (long long)now, (long long)last);
  mi_free(p);
  mi_profile_stop();
}

// However often it is started, changed and stopped: while it is on slow paths look closer, and afterwards none does.
static void check_reasons(void) {
  for (int round = 0; round < 2; round++) {
    mi_profile_stop();
    CHECK_EQ(mi_load_relaxed(&_mi_event_pending), 0);
    for (size_t rate = MiB; rate <= 4 * MiB; rate *= 2) {
      CHECK_EQ(mi_profile_start(rate), 0);
      CHECK(_mi_event_is_sampling());
    }
    mi_profile_stop();
    CHECK_EQ(mi_load_relaxed(&_mi_event_pending), 0);
  }
}

static void* delete_heap(void* heap) {
  mi_heap_delete((mi_heap_t*)heap);
  return NULL;
}

// A thread that begins a profile records its next block, also when its blocks are those of a heap that another one has ended.
static void check_first_block(void) {
  mi_profile_counts_t counts;
  pthread_t           other;
  mi_heap_t*          heap = mi_heap_new();
  mi_heap_t*          before = mi_heap_set_default(heap);
  for (int i = 0; i < 100; i++) mi_free(mi_malloc(size)); // the next one is at hand
  CHECK_EQ(pthread_create(&other, NULL, &delete_heap, heap), 0);
  pthread_join(other, NULL);
  CHECK_EQ(mi_profile_start(1), 0);
  void* p = mi_malloc(size);
  _mi_profile_counts(&counts);
  CHECK_EQ(counts.n_blocks, 1);
  mi_free(p);
  mi_profile_stop();
  mi_heap_set_default(before);
}

// The requested size is reported, though a block that grows gets more.
static void check_grown_block(void) {
  mi_profile_counts_t counts;
  void*               p = mi_malloc(1000);
  CHECK_EQ(mi_profile_start(1), 0);
  p = mi_realloc(p, 1100);
  _mi_profile_counts(&counts);
  CHECK_EQ(counts.n_blocks, 1);
  CHECK_EQ((int64_t)live_bytes(), 1100);
  mi_free(p);
  mi_profile_stop();
}

// A block stays in the profile, as it is, when it cannot be resized.
static void check_refused_resize(size_t size) {
  mi_profile_counts_t counts;
  CHECK_EQ(mi_profile_start(1), 0);
  char*  p = (char*)mi_malloc(size);
  size_t usable = mi_usable_size(p);
  _mi_profile_counts(&counts);
  size_t n_samples = counts.n_samples;
  CHECK(mi_realloc(p, (size_t)PTRDIFF_MAX) == NULL);
  CHECK_EQ(mi_usable_size(p), usable);
  _mi_profile_counts(&counts);
  CHECK_EQ(counts.n_blocks, 1);
  CHECK_EQ(counts.n_samples, n_samples);
  CHECK_EQ((int64_t)live_bytes(), size);
  mi_free(p);
  _mi_profile_counts(&counts);
  CHECK_EQ(counts.n_blocks, 0);
  mi_profile_stop();
}

// ---- while other threads sample ---------------------------------------------------------------------------------------

enum { n_threads = 3, n_kept = 8 };

static size_t is_over, n_turns[n_threads]; // atomically

static void* keep_large(void* arg) {
  size_t me = (size_t)(uintptr_t)arg;
  void*  kept[n_kept] = {NULL};
  for (size_t i = 0; !__atomic_load_n(&is_over, __ATOMIC_RELAXED); i++) {
    mi_free(kept[i % n_kept]);
    kept[i % n_kept] = mi_malloc(600 * KiB);
    __atomic_add_fetch(&n_turns[me], 1, __ATOMIC_RELAXED);
  }
  for (size_t i = 0; i < n_kept; i++) mi_free(kept[i]);
  return NULL;
}

// Whatever a thread was doing is over.
static void let_turn(void) {
  for (size_t me = 0; me < n_threads; me++) {
    size_t first = __atomic_load_n(&n_turns[me], __ATOMIC_RELAXED);
    while (__atomic_load_n(&n_turns[me], __ATOMIC_RELAXED) < first + 10) sched_yield();
  }
}

// No thread that was making room for its sample begins the profile again when that is over.
static void check_over(void) {
  pthread_t           threads[n_threads];
  mi_profile_counts_t at_end, later;
  _mi_profile_limit(4);
  for (size_t i = 0; i < n_threads; i++) pthread_create(&threads[i], NULL, &keep_large, (void*)(uintptr_t)i);
  for (size_t round = 0; round < 300; round++) {
    CHECK_EQ(mi_profile_start(1), 0);
    for (volatile size_t i = 0; i < round * 500; i++) {
    }
    mi_profile_stop();
    let_turn();
    _mi_profile_counts(&at_end);
    let_turn();
    _mi_profile_counts(&later);
    CHECK_FOR(later.n_samples == at_end.n_samples, "%zu samples, then %zu", at_end.n_samples, later.n_samples);
  }
  __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
  for (size_t i = 0; i < n_threads; i++) pthread_join(threads[i], NULL);
  _mi_profile_limit(SIZE_MAX);
}

int main(void) {
  watchdog(300);
  check_chance();
  if (MI_TRACK) return check_result();
  check_reasons();
  check_first_block();
  check_grown_block();
  check_refused_resize(600 * KiB);
  check_refused_resize(40 * MiB);
  check_blocks();
  check_found_again();
  check_stacks();
  check_over();
  check_many_blocks();
  return check_result();
}
