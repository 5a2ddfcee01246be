// Proves: heaps that many threads use, and that come and go meanwhile, at addresses that are used again: no block changes
// that nobody wrote to, every block belongs to the heap that it came from, or to the main heap when that was deleted;
// threads end, are started, and collect at any time; at the end all structures are whole and the memory has gone back.
//
//   test-heaps [threads [scale [iterations]]]      (the seed is MI_TEST_SEED)
//
// A place has a heap at a time, and a lock: whoever allocates from the heap has it for reading, whoever ends the heap for
// writing, as the interface demands.  Freeing, resizing and collecting take no lock.
#include "../check.h"
#include <mimalloc-stats.h>
#include <mimalloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include "../modes/support.h"

enum { n_places = 8, n_slots = 400, n_kept_max = 600, max_threads = 64 };

// Blocks of a place whose heap is deleted go from thread to thread; those of one whose heap is destroyed stay in the
// place, so that nobody has one when they go.
typedef struct place_s {
  pthread_rwlock_t lock;
  mi_heap_t*       heap;
  uint64_t         life; // of the heap: counts those that were here
  bool             is_destroyed;
  _Atomic(void*)   blocks[n_slots];
} place_t;

static place_t        places[n_places];
static _Atomic(void*) slots[n_slots];
static atomic_bool    must_stop;
static atomic_size_t  n_wrong, n_refused, n_ended, n_moved;
static size_t         n_threads = 6, scale = 100, n_iterations = 6;
static uint64_t       seed;

// In front of the pattern of each block.
typedef struct header_s {
  uint64_t size, cookie, place, life;
} header_t;

static uint64_t cookie_of(const void* p, const header_t* h) {
  return mix64((uint64_t)(uintptr_t)p ^ h->size << 40 ^ h->place << 32 ^ h->life ^ seed);
}

static void block_write(void* p, size_t size, size_t place, uint64_t life) {
  header_t h = {size, 0, place, life};
  h.cookie = cookie_of(p, &h);
  memcpy(p, &h, sizeof(h));
  pattern_fill((char*)p + sizeof(h), 0, size - sizeof(h), h.cookie);
}

static void report(const char* what, const void* p) {
  if (atomic_fetch_add(&n_wrong, 1) < 20) printf("%s: %p\n", what, p);
}

// Checks a block that was written at `was`, up to `limit`.
static header_t block_check(const void* p, const void* was, size_t limit) {
  header_t h;
  memcpy(&h, p, sizeof(h));
  if (h.cookie != cookie_of(was, &h)) {
    report("wrong header", p);
    h.size = 0;
    return h;
  }
  size_t length = ((size_t)h.size < limit ? (size_t)h.size : limit) - sizeof(h);
  if (pattern_check((const char*)p + sizeof(h), length, h.cookie) != length) report("wrong contents", p);
  return h;
}

// Whose is it?  The caller has the place for reading.
static void owner_check(const void* p, const place_t* place, const header_t* h) {
  mi_heap_t* owner = mi_heap_of(p);
  mi_heap_t* expected = (place->life == h->life ? place->heap : mi_heap_main());
  if (owner != expected) report(expected == mi_heap_main() ? "not the main heap's" : "not its heap's", p);
  if (!mi_heap_contains(expected, p)) report("not contained", p);
}

static size_t pick_size(rng_t* rng) {
  size_t kind = rng_below(rng, 1000), size;
  if (kind < 850) size = rng_size(rng, 600);
  else if (kind < 985) size = rng_size(rng, 16 * KiB);
  else if (kind < 998) size = rng_size(rng, 300 * KiB);
  else size = 520 * KiB + rng_size(rng, 2 * MiB);
  return size < sizeof(header_t) ? sizeof(header_t) : size;
}

// The caller has the place for reading.
static void* block_get(rng_t* rng, size_t index) {
  place_t* place = &places[index];
  size_t   size = pick_size(rng);
  void*    p;
  switch (rng_below(rng, 6)) {
    case 0:
      p = mi_heap_calloc(place->heap, 1, size);
      if (p != NULL && !is_zero(p, 0, size)) report("calloc is not zero", p);
      break;
    case 1: p = mi_heap_malloc_aligned(place->heap, size, (size_t)16 << rng_below(rng, 9)); break;
    case 2: {
      mi_heap_t* before = mi_heap_set_default(place->heap);
      p = mi_malloc(size);
      if (mi_heap_set_default(before) != place->heap) report("another default", p);
      break;
    }
    default: p = mi_heap_malloc(place->heap, size); break;
  }
  if (p == NULL) {
    atomic_fetch_add(&n_refused, 1);
    return NULL;
  }
  block_write(p, size, index, place->life);
  return p;
}

static void block_put(void* p) {
  if (p == NULL) return;
  block_check(p, p, SIZE_MAX);
  memset(p, 0xEF, sizeof(header_t)); // whoever still believes in it will notice
  mi_free(p);
}

// A resize may move it to the thread's default heap, that is the main heap; large blocks that grow stay where they are or
// are moved within their heap.
static void* block_resize(rng_t* rng, void* p) {
  header_t h = block_check(p, p, SIZE_MAX);
  if (h.size == 0) return p;
  size_t size = (h.size > 512 * KiB ? (size_t)h.size * 5 / 4 : pick_size(rng));
  if (rng_below(rng, 10) == 0) size = 600 * KiB;
  if (size > 8 * MiB) size = 600 * KiB;
  void* q = mi_realloc(p, size);
  if (q == NULL) {
    atomic_fetch_add(&n_refused, 1);
    return p;
  }
  block_check(q, p, size < h.size ? size : (size_t)h.size);
  if (size > 512 * KiB) atomic_fetch_add(&n_moved, 1);
  // From now on it says nothing about whose it is.
  block_write(q, size, n_places, 0);
  return q;
}

// One step with the blocks of a place that is going to be destroyed: all under the lock.
static void step_destroyed(rng_t* rng, size_t index) {
  place_t* place = &places[index];
  pthread_rwlock_rdlock(&place->lock);
  for (size_t i = 0; i < 20; i++) {
    void* mine = (rng_below(rng, 3) > 0 ? block_get(rng, index) : NULL);
    void* theirs = atomic_exchange(&place->blocks[rng_below(rng, n_slots)], mine);
    if (theirs == NULL) continue;
    header_t h = block_check(theirs, theirs, SIZE_MAX);
    owner_check(theirs, place, &h);
    if (h.life != place->life) report("a block of another life", theirs);
    block_put(theirs);
  }
  pthread_rwlock_unlock(&place->lock);
}

static void* step_deleted(rng_t* rng, size_t index) {
  place_t* place = &places[index];
  pthread_rwlock_rdlock(&place->lock);
  void* p = block_get(rng, index);
  if (p != NULL) {
    header_t h = block_check(p, p, SIZE_MAX);
    owner_check(p, place, &h);
  }
  pthread_rwlock_unlock(&place->lock);
  return p;
}

// Is a block still whose it should be?
static void step_ask(void* p) {
  header_t h;
  memcpy(&h, p, sizeof(h));
  if (h.place >= n_places) return;
  place_t* place = &places[h.place];
  pthread_rwlock_rdlock(&place->lock);
  owner_check(p, place, &h);
  pthread_rwlock_unlock(&place->lock);
}

static void* live(void* arg) {
  rng_t  rng = rng_make((uint64_t)(uintptr_t)arg * 7919 + seed);
  void*  kept[n_kept_max];
  size_t n_kept = 0;
  for (size_t n = 0; n < 20 * scale; n++) {
    size_t index = rng_below(&rng, n_places);
    size_t action = rng_below(&rng, 100);
    if (places[index].is_destroyed) {
      step_destroyed(&rng, index);
    }
    else if (action < 60) {
      for (size_t i = 0; i < 10; i++) {
        void* p = step_deleted(&rng, index);
        if (p != NULL && n_kept < n_kept_max) kept[n_kept++] = p;
        else block_put(p);
      }
    }
    else if (action < 66 && n_kept > 0) {
      size_t i = rng_below(&rng, n_kept);
      kept[i] = block_resize(&rng, kept[i]);
    }
    else if (action < 80 && n_kept > 0) {
      for (size_t i = 0; i < 8 && n_kept > 0; i++) {
        size_t k = rng_below(&rng, n_kept);
        step_ask(kept[k]);
        block_put(kept[k]);
        kept[k] = kept[--n_kept];
      }
    }
    else {
      for (size_t i = 0; i < 8; i++) {
        void* mine = (n_kept > 0 ? kept[--n_kept] : NULL);
        block_put(atomic_exchange(&slots[rng_below(&rng, n_slots)], mine));
      }
    }
    if (action == 99 && n % 4 == 0) mi_collect(n % 16 == 0);
  }
  while (n_kept > 0) {
    void* p = kept[--n_kept];
    if (rng_below(&rng, 2) == 0) p = atomic_exchange(&slots[rng_below(&rng, n_slots)], p);
    block_put(p);
  }
  return NULL;
}

// ---- the life of heaps ----------------------------------------------------------------------------------------------

static void place_begin(place_t* place, rng_t* rng) {
  place->life++;
  place->heap = (rng_below(rng, 2) == 0 ? mi_heap_new() : mi_heap_new_ex(7, true, 0));
  if (place->heap == NULL) {
    atomic_fetch_add(&n_refused, 1);
    abort();
  }
}

// The caller has the place for writing.
static void place_end(place_t* place) {
  if (place->is_destroyed) {
    for (size_t i = 0; i < n_slots; i++) {
      void* p = atomic_exchange(&place->blocks[i], NULL);
      if (p != NULL && i % 4 == 0) block_check(p, p, SIZE_MAX);
    }
    mi_heap_destroy(place->heap);
  }
  else {
    mi_heap_delete(place->heap);
  }
  place->heap = NULL;
}

// Ends heaps and begins others until it is told to stop.
static void* churn(void* arg) {
  rng_t rng = rng_make((uint64_t)(uintptr_t)arg * 104729 + seed);
  while (!atomic_load(&must_stop)) {
    place_t* place = &places[rng_below(&rng, n_places)];
    pthread_rwlock_wrlock(&place->lock);
    place_end(place);
    place_begin(place, &rng);
    pthread_rwlock_unlock(&place->lock);
    atomic_fetch_add(&n_ended, 1);
    if (rng_below(&rng, 8) == 0) sleep_ms(1);
  }
  return NULL;
}

static void* collect(void* arg) {
  (void)arg;
  for (size_t n = 0; !atomic_load(&must_stop); n++) {
    mi_free(mi_malloc(100));
    mi_collect(n % 8 == 0);
    sleep_ms(1);
  }
  return NULL;
}

static void run(size_t iteration) {
  pthread_t threads[max_threads], others[3];
  atomic_store(&must_stop, false);
  CHECK_EQ(pthread_create(&others[0], NULL, &churn, (void*)(uintptr_t)(2 * iteration)), 0);
  CHECK_EQ(pthread_create(&others[1], NULL, &churn, (void*)(uintptr_t)(2 * iteration + 1)), 0);
  CHECK_EQ(pthread_create(&others[2], NULL, &collect, NULL), 0);
  for (size_t round = 0; round < 3; round++) { // threads end while heaps that they have used live on, and end
    for (size_t i = 0; i < n_threads; i++) {
      uintptr_t number = (iteration * 3 + round) * n_threads + i + 1;
      CHECK_EQ(pthread_create(&threads[i], NULL, &live, (void*)number), 0);
    }
    for (size_t i = 0; i < n_threads; i++) pthread_join(threads[i], NULL);
  }
  atomic_store(&must_stop, true);
  for (size_t i = 0; i < COUNT_OF(others); i++) pthread_join(others[i], NULL);
}

// ---- at the end -----------------------------------------------------------------------------------------------------

static int64_t pages_now(void) {
  mi_stats_t_decl(stats);
  mi_collect(true);
  CHECK(mi_stats_get(&stats));
  return stats.pages.current;
}

// Of libc and libstdc++, where we serve them.  MinGW's threads are a library that allocates each lock and each thread, and its
// blocks are of four classes or more that nobody else has.
#if defined(_WIN32)
enum { n_pages_of_libraries = 10 + MI_USE_CXX };
#else
enum { n_pages_of_libraries = 4 + MI_USE_CXX };
#endif

static int64_t huge_now(void) {
  mi_stats_t_decl(stats);
  CHECK(mi_stats_get(&stats));
  return stats.malloc_huge.current;
}

int main(int argc, char** argv) {
  seed = test_env("MI_TEST_SEED", 20401);
  if (argc > 1) n_threads = strtoul(argv[1], NULL, 0);
  if (argc > 2) scale = strtoul(argv[2], NULL, 0);
  if (argc > 3) n_iterations = strtoul(argv[3], NULL, 0);
  if (n_threads == 0 || n_threads > max_threads) n_threads = max_threads;
  if (TEST_SANITIZED && argc < 3) scale = 20;
  scale *= test_scale();
  printf("threads %zu, scale %zu, iterations %zu, seed %llu\n", n_threads, scale, n_iterations,
         (unsigned long long)seed);
  watchdog(300);
  mi_option_set(mi_option_purge_delay, 1); // the background thread is as busy as it can be
  rng_t rng = rng_make(seed);
  for (size_t i = 0; i < n_places; i++) {
    pthread_rwlock_init(&places[i].lock, NULL);
    places[i].is_destroyed = (i % 2 == 0);
    place_begin(&places[i], &rng);
  }
  CHECK(mi_heap_check(NULL));
  for (size_t i = 0; i < n_iterations && atomic_load(&n_wrong) == 0; i++) {
    run(i);
    CHECK_FOR(mi_heap_check(NULL), "after iteration %zu", i);
  }
  for (size_t i = 0; i < n_slots; i++) block_put(atomic_exchange(&slots[i], NULL));
  CHECK_FOR(mi_heap_check(NULL), "before the heaps end");
  for (size_t i = 0; i < n_places; i++) place_end(&places[i]);
  CHECK_FOR(mi_heap_check(NULL), "at the end");
  printf("%zu heaps ended, %zu large blocks resized\n", atomic_load(&n_ended), atomic_load(&n_moved));
  CHECK(atomic_load(&n_ended) >= 100 && atomic_load(&n_moved) >= 20);
  CHECK_EQ(atomic_load(&n_wrong), 0);
  CHECK_EQ(atomic_load(&n_refused), 0);
  int64_t n_pages = pages_now();
  CHECK_FOR(n_pages <= n_pages_of_libraries, "%lld pages left", (long long)n_pages);
  CHECK_EQ(huge_now(), 0);
  return check_result();
}
