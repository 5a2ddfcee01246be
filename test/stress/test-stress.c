// Proves: threads that allocate, resize, free, and hand each other their blocks never see a byte change that they did
// not write; blocks outlive the threads that made them; at the end the memory has gone back.
//
//   test-stress [threads [scale [iterations]]]      (the seed is MI_TEST_SEED)
//
// The program itself is free of data races: a block changes hands only through an atomic exchange of its pointer, so
// ThreadSanitizer needs no suppressions, and whatever it reports is the allocator's.
#include "../check.h"
#include <mimalloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include "../modes/support.h"

enum { n_slots = 1000, max_threads = 256, retained_percent = 50 };

static _Atomic(void*) slots[n_slots];
static atomic_size_t  n_wrong, n_refused;
static size_t         n_threads = 8, scale = 200, n_iterations = 40;
static uint64_t       seed;

// A block carries its size and a key made of its address and size in front of a pattern; a block that was copied,
// overwritten or handed out twice cannot look right.
typedef struct header_s {
  uint64_t size, cookie;
} header_t;

static uint64_t cookie_of(const void* p, size_t size) {
  return mix64((uint64_t)(uintptr_t)p ^ (uint64_t)size << 48 ^ seed);
}

static void block_write(void* p, size_t size) {
  header_t h = {size, cookie_of(p, size)};
  memcpy(p, &h, sizeof(h));
  pattern_fill((char*)p + sizeof(h), 0, size - sizeof(h), h.cookie);
}

static void report(const char* what, const void* p) {
  if (atomic_fetch_add(&n_wrong, 1) < 20) printf("%s: %p\n", what, p);
}

// Checks the header, and the contents up to `limit`, as they were written when the block was at `was`.
static size_t block_check(const void* p, const void* was, size_t limit) {
  header_t h;
  memcpy(&h, p, sizeof(h));
  if (h.cookie != cookie_of(was, (size_t)h.size)) {
    report("wrong header", p);
    return 0;
  }
  size_t size = (size_t)h.size < limit ? (size_t)h.size : limit;
  size_t length = size - sizeof(h);
  if (mi_usable_size(p) < size) report("wrong usable size", p);
  if (pattern_check((const char*)p + sizeof(h), length, h.cookie) != length) report("wrong contents", p);
  return (size_t)h.size;
}

static size_t pick_size(rng_t* rng) {
  size_t kind = rng_below(rng, 1000), size;
  if (kind < 800) size = rng_size(rng, 512);
  else if (kind < 980) size = rng_size(rng, 16 * KiB);
  else if (kind < 998) size = rng_size(rng, 256 * KiB);
  else size = rng_size(rng, 3 * MiB);
  return size < sizeof(header_t) ? sizeof(header_t) : size;
}

static void* block_get(rng_t* rng) {
  size_t size = pick_size(rng);
  void*  p;
  switch (rng_below(rng, 5)) {
    case 0:
      p = mi_calloc(1, size);
      if (p != NULL && !is_zero(p, 0, size)) report("calloc is not zero", p);
      break;
    case 1: p = mi_malloc_aligned(size, (size_t)16 << rng_below(rng, 9)); break;
    default: p = mi_malloc(size);
  }
  if (p == NULL) atomic_fetch_add(&n_refused, 1);
  else block_write(p, size);
  return p;
}

static void block_put(void* p) {
  if (p == NULL) return;
  size_t size = block_check(p, p, SIZE_MAX);
  memset(p, 0xEF, size < 64 ? size : 64); // whoever still believes in it will notice
  mi_free(p);
}

static void* block_resize(rng_t* rng, void* p) {
  size_t size = pick_size(rng);
  size_t old_size = block_check(p, p, SIZE_MAX);
  void*  q = mi_realloc(p, size);
  if (q == NULL) {
    atomic_fetch_add(&n_refused, 1);
    return p;
  }
  block_check(q, p, size < old_size ? size : old_size);
  block_write(q, size);
  return q;
}

// One thread's life: a growing set of blocks of its own, some resized, some swapped with the shared slots, half of them
// freed on the way and the rest left behind in the slots or freed at the end.
static void* live(void* arg) {
  rng_t rng = rng_make((uint64_t)(uintptr_t)arg * 7919 + seed);
  enum { max_kept = 4000 };
  void** kept = (void**)mi_calloc(max_kept, sizeof(void*));
  size_t n_kept = 0;
  if (kept == NULL) {
    atomic_fetch_add(&n_refused, 1);
    return NULL;
  }
  for (size_t n = 0; n < 50 * scale; n++) {
    size_t action = rng_below(&rng, 100);
    if (action < 50) {
      void* p = block_get(&rng);
      if (p != NULL && n_kept < max_kept) kept[n_kept++] = p;
      else block_put(p);
    }
    else if (action < 60 && n_kept > 0) {
      size_t i = rng_below(&rng, n_kept);
      kept[i] = block_resize(&rng, kept[i]);
    }
    else if (action < 80 && n_kept > 0) {
      size_t i = rng_below(&rng, n_kept);
      block_put(kept[i]);
      kept[i] = kept[--n_kept];
    }
    else {
      void* mine = n_kept > 0 && rng_below(&rng, 2) == 0 ? kept[--n_kept] : NULL;
      void* theirs = atomic_exchange(&slots[rng_below(&rng, n_slots)], mine);
      if (theirs != NULL && n_kept < max_kept && rng_below(&rng, 2) == 0) kept[n_kept++] = theirs;
      else block_put(theirs);
    }
  }
  while (n_kept > 0) {
    void* p = kept[--n_kept];
    if (rng_below(&rng, 100) < retained_percent) p = atomic_exchange(&slots[rng_below(&rng, n_slots)], p);
    block_put(p);
  }
  mi_free(kept);
  return NULL;
}

static void run_threads(size_t iteration) {
  pthread_t threads[max_threads];
  for (size_t i = 0; i < n_threads; i++) {
    CHECK_EQ(pthread_create(&threads[i], NULL, &live, (void*)(uintptr_t)(iteration * n_threads + i + 1)), 0);
  }
  for (size_t i = 0; i < n_threads; i++) pthread_join(threads[i], NULL);
}

int main(int argc, char** argv) {
  seed = test_seed(0, NULL);
  if (TEST_SANITIZED) n_iterations /= 8;
  n_iterations *= test_scale();
  if (argc > 1) n_threads = (size_t)strtoull(argv[1], NULL, 0);
  if (argc > 2) scale = (size_t)strtoull(argv[2], NULL, 0);
  if (argc > 3) n_iterations = (size_t)strtoull(argv[3], NULL, 0);
  if (n_threads < 1) n_threads = 1;
  if (n_threads > max_threads) n_threads = max_threads;
  printf("threads %zu, scale %zu, iterations %zu\n", n_threads, scale, n_iterations);

  size_t before = rss_now(), after_one = 0;
  for (size_t i = 0; i < n_iterations; i++) {
    run_threads(i);
    if (i == n_iterations / 4) after_one = rss_peak();
    for (size_t k = 0; k < n_slots && i % 4 == 3; k++) block_put(atomic_exchange(&slots[k], NULL));
  }
  // A leak of even a few blocks per thread would show between a quarter of the run and its end.
  CHECK(rss_within("peak resident", minus(rss_peak(), before), 2 * minus(after_one, before) + 32 * MiB));
  for (size_t k = 0; k < n_slots; k++) block_put(atomic_exchange(&slots[k], NULL));
  mi_collect(true);
  CHECK(rss_within("resident at the end", minus(rss_now(), before), 8 * MiB + n_threads * 256 * KiB));
  CHECK(atomic_load(&n_wrong) == 0);
  CHECK(atomic_load(&n_refused) == 0);
  return check_result();
}
