// Proves: every function that allocates from a heap gives a block of that heap (of the main heap for NULL) and does
// otherwise what its relative without a heap does; a resize brings a block of another heap over, with its contents.
#include "../check.h"
#include "heap-entries.h"
#include <pthread.h>

static mi_heap_t* heaps[2];

static bool is_in(mi_heap_t* heap, const void* p) {
  return mi_heap_contains(heap, p) && mi_heap_of(p) == (heap != NULL ? heap : mi_heap_main());
}

// ---- getting --------------------------------------------------------------------------------------------------------

static void check_get(const heap_get_t* g, mi_heap_t* heap, size_t size, size_t alignment, size_t offset) {
  uint8_t* p = (uint8_t*)g->call(heap, size, alignment, offset);
  CHECK_FOR(p != NULL, "%s(%zu, %zu, %zu)", g->name, size, alignment, offset);
  if (p == NULL) return;
  CHECK_FOR(is_in(heap, p), "%s(%zu) is of heap %p, not %p", g->name, size, (void*)mi_heap_of(p), (void*)heap);
  CHECK_FOR(mi_heap_of(p) != heaps[heap != heaps[1]], "%s(%zu)", g->name, size);
  CHECK_FOR(mi_usable_size(p) >= size, "%s(%zu)", g->name, size);
  if (offset == 0) CHECK_FOR(is_aligned(p, size <= 8 ? 8 : 16), "%s(%zu)", g->name, size);
  if ((g->flags & E_ALIGN) != 0) {
    CHECK_FOR(is_aligned(p + offset, alignment), "%s(%zu, %zu, %zu)", g->name, size, alignment, offset);
  }
  if ((g->flags & E_ZERO) != 0) CHECK_FOR(is_zero(p, 0, size), "%s(%zu)", g->name, size);
  memset(p, 0xAB, size);
  mi_free(p);
}

static void check_gets(uint64_t seed) {
  static const size_t sizes[] = {0, 1, 8, 9, 100, 1024, 1025, 10000, 100000, 600000, 3000000};
  rng_t               rng = rng_make(seed);
  for (size_t i = 0; i < COUNT_OF(all_heap_gets); i++) {
    const heap_get_t* g = &all_heap_gets[i];
    for (size_t k = 0; k < 3 * (COUNT_OF(sizes) + 20); k++) {
      mi_heap_t* heap = (k % 3 == 2 ? NULL : heaps[k % 3]);
      size_t     size = (k / 3 < COUNT_OF(sizes) ? sizes[k / 3] : rng_size(&rng, 100 * KiB));
      size_t     alignment = (size_t)16 << rng_below(&rng, 13);
      size_t     offset = (k % 2 == 0 && (g->flags & E_OFFSET) != 0 ? 8 * rng_below(&rng, 30) : 0);
      if (heap_get_allows(g, size, alignment, offset)) check_get(g, heap, size, alignment, offset);
    }
  }
}

// Blocks are apart from each other, from those of another heap, and keep what is written to all that is usable.
static void check_apart(void) {
  enum { n_each = 40 };
  static void*  blocks[COUNT_OF(all_heap_gets)][n_each];
  static size_t usable[COUNT_OF(all_heap_gets)][n_each];
  for (size_t i = 0; i < COUNT_OF(all_heap_gets); i++) {
    for (size_t k = 0; k < n_each; k++) {
      bool is_small = (all_heap_gets[i].flags & E_SMALL) != 0;
      blocks[i][k] = all_heap_gets[i].call(heaps[k % 2], 1 + (is_small ? 12 : 23) * k, 32, 0);
      usable[i][k] = mi_usable_size(blocks[i][k]);
      pattern_fill(blocks[i][k], 0, usable[i][k], i * n_each + k);
    }
  }
  for (size_t i = 0; i < COUNT_OF(all_heap_gets); i++) {
    for (size_t k = 0; k < n_each; k++) {
      size_t good = pattern_check(blocks[i][k], usable[i][k], i * n_each + k);
      CHECK_FOR(good == usable[i][k], "%s, block %zu", all_heap_gets[i].name, k);
      CHECK(is_in(heaps[k % 2], blocks[i][k]));
      mi_free(blocks[i][k]);
    }
  }
}

// NULL is the main heap, also where that is not the default heap.
static void check_null(void) {
  mi_heap_t* before = mi_heap_set_default(heaps[0]);
  for (size_t i = 0; i < COUNT_OF(all_heap_gets); i++) {
    void* p = all_heap_gets[i].call(NULL, 100, 64, 0);
    CHECK_FOR(mi_heap_of(p) == mi_heap_main(), "%s", all_heap_gets[i].name);
    mi_free(p);
  }
  for (size_t i = 0; i < COUNT_OF(all_heap_resizes); i++) {
    void* p = all_heap_resizes[i].call(NULL, mi_heap_zalloc(heaps[1], 100), 1000, 64, 0);
    CHECK_FOR(mi_heap_of(p) == mi_heap_main(), "%s", all_heap_resizes[i].name);
    mi_free(p);
  }
  CHECK(mi_heap_set_default(before) == heaps[0]);
}

static void check_zero_sizes(void) {
  for (size_t i = 0; i < COUNT_OF(all_heap_gets); i++) {
    const heap_get_t* g = &all_heap_gets[i];
    void*             p = g->call(heaps[0], 0, 64, 0);
    void*             q = g->call(heaps[0], 0, 64, 0);
    CHECK_FOR(p != NULL && q != NULL && p != q, "%s", g->name);
    CHECK_FOR(is_in(heaps[0], p), "%s", g->name);
    mi_free(p);
    mi_free(q);
  }
}

// ---- resizing -------------------------------------------------------------------------------------------------------

static void check_resize(const heap_resize_t* r, mi_heap_t* from, mi_heap_t* to, size_t old_size, size_t size) {
  size_t   offset = ((r->flags & E_OFFSET) != 0 ? 40 : 0);
  uint8_t* p = (uint8_t*)mi_heap_zalloc(from, old_size);
  size_t   kept = old_size < size ? old_size : size;
  CHECK(p != NULL);
  pattern_fill(p, 0, old_size, old_size);
  uint8_t* q = (uint8_t*)r->call(to, p, size, 256, offset);
  CHECK_FOR(q != NULL, "%s(%zu to %zu)", r->name, old_size, size);
  if (q == NULL) {
    mi_free(p);
    return;
  }
  CHECK_FOR(is_in(to, q), "%s(%zu to %zu)", r->name, old_size, size);
  CHECK_FOR(mi_usable_size(q) >= size, "%s(%zu to %zu)", r->name, old_size, size);
  CHECK_FOR(pattern_check(q, kept, old_size) == kept, "%s(%zu to %zu)", r->name, old_size, size);
  if ((r->flags & E_ZERO) != 0) CHECK_FOR(is_zero(q, kept, size), "%s(%zu to %zu)", r->name, old_size, size);
  if ((r->flags & E_ALIGN) != 0) CHECK_FOR(is_aligned(q + offset, 256), "%s(%zu to %zu)", r->name, old_size, size);
  memset(q, 0xAB, size);
  mi_free(q);
}

static void check_resizes(void) {
  static const size_t sizes[] = {0, 1, 16, 100, 1024, 5000, 70000, 600000, 5000000};
  for (size_t i = 0; i < COUNT_OF(all_heap_resizes); i++) {
    const heap_resize_t* r = &all_heap_resizes[i];
    for (size_t a = 0; a < COUNT_OF(sizes); a++) {
      for (size_t b = 0; b < COUNT_OF(sizes); b++) {
        check_resize(r, heaps[0], heaps[0], sizes[a], sizes[b]);
        check_resize(r, heaps[0], heaps[1], sizes[a], sizes[b]);
        check_resize(r, NULL, heaps[1], sizes[a], sizes[b]);
        check_resize(r, heaps[1], NULL, sizes[a], sizes[b]);
      }
    }
  }
}

// Within one heap a block stays where it is while at least half of it is used.
static void check_in_place(void) {
  for (size_t size = 16; size <= 8 * MiB; size = size * 5 - 7) {
    void*  p = mi_heap_malloc(heaps[0], size);
    size_t room = room_of(size);
    void*  q = mi_heap_realloc(heaps[0], p, room);
    CHECK_FOR(q == p || may_move(size), "size %zu", size);
    p = mi_heap_realloc(heaps[0], q, room / 2 + 1);
    CHECK_FOR(q == p || may_move(size), "size %zu", size);
    mi_free(p);
  }
}

static void check_reallocf(void) {
  void* p = mi_heap_reallocf(heaps[0], NULL, 100);
  CHECK(is_in(heaps[0], p));
  p = mi_heap_reallocf(heaps[1], p, 1000);
  CHECK(is_in(heaps[1], p));
  // A failure frees: so often that memory would run out if it did not.
  size_t before = rss_now();
  mi_option_disable(mi_option_show_errors);
  for (size_t i = 0; i < 2000; i++) {
    void* q = mi_heap_malloc(heaps[0], 256 * KiB);
    memset(q, 0xAB, 256 * KiB);
    CHECK(mi_heap_reallocf(heaps[0], q, hidden(SIZE_MAX / 2 + 1)) == NULL);
  }
  CHECK(rss_within("after failures of mi_heap_reallocf", minus(rss_now(), before), 32 * MiB));
  mi_free(p);
}

// ---- the rest -------------------------------------------------------------------------------------------------------

static void check_strings(void) {
  for (size_t i = 0; i < 3; i++) {
    mi_heap_t* heap = (i == 2 ? NULL : heaps[i]);
    char*      s = mi_heap_strdup(heap, "hello");
    CHECK(is_in(heap, s) && strcmp(s, "hello") == 0);
    mi_free(s);
    s = mi_heap_strndup(heap, "hello", 3);
    CHECK(is_in(heap, s) && strcmp(s, "hel") == 0);
    mi_free(s);
    s = mi_heap_strndup(heap, "hello", 100);
    CHECK(is_in(heap, s) && strcmp(s, "hello") == 0);
    mi_free(s);
    s = mi_heap_strndup(heap, "hello", 0);
    CHECK(is_in(heap, s) && *s == 0);
    mi_free(s);
    CHECK(mi_heap_strdup(heap, (char*)hidden_pointer(NULL)) == NULL);
    CHECK(mi_heap_strndup(heap, (char*)hidden_pointer(NULL), 3) == NULL);
    if (!TEST_HAS_REALPATH) continue;
    s = mi_heap_realpath(heap, "/dev/../", NULL);
    CHECK(is_in(heap, s) && is_root(s));
    mi_free(s);
    static char path[4096]; // PATH_MAX
    CHECK(mi_heap_realpath(heap, "/dev/../", path) == path && is_root(path));
    errno = 0;
    CHECK(mi_heap_realpath(heap, "/there/is/no/such/file", NULL) == NULL && errno == ENOENT);
  }
}

typedef struct pair_s {
  uint64_t a, b;
} pair_t;

// The order of the arguments is that of the level.
static void check_typed(void) {
  mi_heap_t* heap = heaps[0];
#if MI_API_LEVEL < 3
  pair_t* p = mi_heap_malloc_tp(heap, pair_t);
  pair_t* z = mi_heap_zalloc_tp(heap, pair_t);
  pair_t* c = mi_heap_calloc_tp(heap, pair_t, 10);
  pair_t* n = mi_heap_mallocn_tp(heap, pair_t, 10);
#else
  pair_t* p = mi_heap_malloc_tp(pair_t, heap);
  pair_t* z = mi_heap_zalloc_tp(pair_t, heap);
  pair_t* c = mi_heap_calloc_tp(pair_t, heap, 10);
  pair_t* n = mi_heap_mallocn_tp(pair_t, heap, 10);
#endif
  CHECK(is_in(heap, p) && is_in(heap, z) && is_in(heap, c) && is_in(heap, n));
  CHECK(mi_usable_size(p) >= sizeof(*p) && mi_usable_size(n) >= 10 * sizeof(*n));
  CHECK(is_zero(z, 0, sizeof(*z)) && is_zero(c, 0, 10 * sizeof(*c)));
  n[9].b = 99;
#if MI_API_LEVEL < 3
  n = mi_heap_reallocn_tp(heap, n, pair_t, 100);
  c = mi_heap_recalloc_tp(heap, c, pair_t, 100);
#else
  n = mi_heap_reallocn_tp(pair_t, heap, n, 100);
  c = mi_heap_recalloc_tp(pair_t, heap, c, 100);
#endif
  CHECK(is_in(heap, n) && n[9].b == 99 && mi_usable_size(n) >= 100 * sizeof(*n));
  CHECK(is_in(heap, c) && is_zero(c, 0, 100 * sizeof(*c)));
  mi_free(p);
  mi_free(z);
  mi_free(c);
  mi_free(n);
}

// ---- threads --------------------------------------------------------------------------------------------------------

enum { n_threads = 4, n_slots = 1000, n_steps = 60000 };
static void* slots[n_slots]; // exchanged atomically

static void* share_heaps(void* arg) {
  rng_t rng = rng_make((uint64_t)(uintptr_t)arg);
  for (size_t i = 0; i < n_steps; i++) {
    size_t   size = 16 + rng_size(&rng, 4 * KiB);
    uint8_t* p = (uint8_t*)mi_heap_malloc(heaps[size % 2], size);
    CHECK(p != NULL);
    memcpy(p, &size, sizeof(size));
    p[size - 1] = (uint8_t)size;
    p = (uint8_t*)__atomic_exchange_n(&slots[rng_below(&rng, n_slots)], p, __ATOMIC_ACQ_REL);
    if (p == NULL) continue;
    memcpy(&size, p, sizeof(size));
    CHECK(size >= 16 && size <= 16 + 4 * KiB && (size == 16 || p[size - 1] == (uint8_t)size));
    CHECK(is_in(heaps[size % 2], p));
    mi_free(p);
  }
  return NULL;
}

// Several threads allocate from the same heaps at once, and free what others have allocated.
static void check_threads(uint64_t seed) {
  pthread_t threads[n_threads];
  for (size_t i = 0; i < n_threads; i++) {
    CHECK_EQ(pthread_create(&threads[i], NULL, &share_heaps, (void*)(uintptr_t)(seed + i)), 0);
  }
  for (size_t i = 0; i < n_threads; i++) pthread_join(threads[i], NULL);
  for (size_t i = 0; i < n_slots; i++) {
    if (slots[i] != NULL) CHECK(mi_heap_of(slots[i]) == heaps[0] || mi_heap_of(slots[i]) == heaps[1]);
    mi_free(slots[i]);
  }
}

int main(int argc, char** argv) {
  uint64_t seed = test_seed(argc, argv);
  for (size_t i = 0; i < 2; i++) heaps[i] = mi_heap_new();
  CHECK(heaps[0] != NULL && heaps[1] != NULL && heaps[0] != heaps[1]);
  check_gets(seed);
  check_apart();
  check_null();
  check_zero_sizes();
  check_resizes();
  check_in_place();
  check_reallocf();
  check_strings();
  check_typed();
  check_threads(seed);
  mi_heap_delete(heaps[0]);
  mi_heap_destroy(heaps[1]);
  return check_result();
}
