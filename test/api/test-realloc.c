// Proves: a resize keeps min(old, new) bytes whatever path it takes, keeps the old block when it fails, zeroes what
// the zeroing family promises, and stays where it is while at least half of the block is used.
#include "../check.h"
#include "heap-entries.h"

static void check_contents(uint64_t seed) {
  static const size_t sizes[] = {1,    8,     9,     16,    24,     100,    256,    257,     1000,    4096,    8192,
                                 8193, 30000, 65536, 65537, 200000, 524288, 524289, 1000000, 4000000, 33000000};
  for (size_t i = 0; i < COUNT_OF(all_resizes); i++) {
    const resize_t* r = &all_resizes[i];
    bool            is_zeroing = (r->flags & E_ZERO) != 0;
    for (size_t a = 0; a < COUNT_OF(sizes); a++) {
      for (size_t b = 0; b < COUNT_OF(sizes); b++) {
        if ((sizes[a] > 1 * MiB || sizes[b] > 1 * MiB) && i % 8 != 0) continue; // enough of the slow ones
        uint8_t* p = (uint8_t*)(is_zeroing ? mi_zalloc_aligned(sizes[a], 64) : mi_malloc_aligned(sizes[a], 64));
        CHECK(p != NULL);
        if (p == NULL) return;
        pattern_fill(p, 0, sizes[a], seed + a);
        uint8_t* q = (uint8_t*)r->call(p, sizes[b], 64, 0);
        size_t   kept = sizes[a] < sizes[b] ? sizes[a] : sizes[b];
        CHECK_FOR(q != NULL && size_is_right(mi_usable_size(q), sizes[b]), "%s(%zu to %zu)", r->name, sizes[a],
                  sizes[b]);
        if (q == NULL) continue;
        CHECK_FOR(pattern_check(q, kept, seed + a) == kept, "%s(%zu to %zu)", r->name, sizes[a], sizes[b]);
        if (is_zeroing) CHECK_FOR(is_zero(q, kept, sizes[b]), "%s(%zu to %zu)", r->name, sizes[a], sizes[b]);
        memset(q, 0xAB, sizes[b]);
        mi_free(q);
      }
    }
  }
}

// p is resized to where it is, or it may move.
static void* stay(void* p, size_t new_size, bool aligned, bool may) {
  void* q = aligned ? mi_realloc_aligned(p, new_size, 16) : mi_realloc(p, new_size);
  CHECK_FOR((q == p || may) && size_is_right(mi_usable_size(q), new_size), "to %zu", new_size);
  return q;
}

static void check_in_place(void) {
  for (size_t size = 16; size <= 40 * MiB; size = size * 3 - 5) {
    bool   may = may_move(size);
    size_t room = room_of(size);
    void*  p = mi_malloc(size);
    p = stay(p, room, false, may);
    p = stay(p, room / 2 + 1, false, may);
    p = stay(p, room, false, may);
    p = stay(p, room / 2 + 1, true, may);
    p = stay(p, room, true, may);
    mi_free(p);
  }
}

// A shrink to almost nothing does not hold on to the memory.
static void check_shrink(void) {
  for (size_t size = 1024; size <= 32 * MiB; size *= 8) {
    void* p = mi_malloc(size);
    p = mi_realloc(p, 16);
    CHECK_FOR(p != NULL && mi_usable_size(p) <= size / 2, "size %zu", size);
    mi_free(p);
  }
}

static void check_failure_keeps_block(void) {
  for (size_t i = 0; i < COUNT_OF(all_resizes); i++) {
    const resize_t* r = &all_resizes[i];
    if ((r->flags & E_NEW) != 0) continue;
    for (size_t size = 16; size <= 4 * MiB; size *= 64) {
      uint8_t* p = (uint8_t*)mi_zalloc_aligned(size, 64);
      pattern_fill(p, 0, size, size);
      errno = 0;
      void* q = r->call(p, hidden(PTRDIFF_MAX), 64, 0);
      CHECK_FOR(q == NULL, "%s of %zu", r->name, size);
      CHECK_FOR(errno == ENOMEM, "%s of %zu: errno %d", r->name, size, errno);
      CHECK_FOR(pattern_check(p, size, size) == size, "%s of %zu", r->name, size);
      mi_free(p);
    }
  }
}

// reallocf frees on failure: by address reuse and resident size, not by a crash, we see that it did.
static void check_reallocf(void) {
  size_t before = rss_now();
  for (size_t i = 0; i < 200; i++) {
    void* p = mi_malloc(1 * MiB);
    CHECK(p != NULL);
    memset(p, 0xAB, 1 * MiB);
    errno = 0;
    CHECK(mi_reallocf(p, hidden(PTRDIFF_MAX)) == NULL);
    CHECK_EQ(errno, ENOMEM);
  }
  CHECK(rss_within("resident after 200 failed reallocf", minus(rss_now(), before), 32 * MiB));
}

// A chain of zeroing resizes: all that was never written reads as zero.
static void check_zero_chains(uint64_t seed) {
  rng_t rng = rng_make(seed);
  for (size_t chain = 0; chain < 200; chain++) {
    size_t   size = rng_size(&rng, 2000), dirty = size;
    uint8_t* p = (uint8_t*)mi_zalloc(size);
    CHECK(p != NULL && is_zero(p, 0, size));
    memset(p, 0xAB, size);
    for (size_t step = 0; step < 10; step++) {
      size = 1 + rng_size(&rng, step < 8 ? 20000 : 2000000);
      p = (uint8_t*)mi_rezalloc(p, size);
      CHECK(p != NULL);
      if (p == NULL) return;
      if (size > dirty) {
        CHECK_FOR(is_zero(p, dirty, size), "chain %zu step %zu, bytes %zu..%zu", chain, step, dirty, size);
        size_t written = dirty + (size - dirty) / 2;
        memset(p + dirty, 0xAB, written - dirty);
        dirty = written;
      }
    }
    mi_free(p);
  }
}

// Into which heap a resize brings a block of another one: that which is named, if one is; otherwise at level 3 the default
// heap, and at level 2 it depends on whether the block moves.
static void check_heaps(void) {
  static const size_t sizes[] = {16, 100, 5000, 100000, 1 * MiB, 5 * MiB};
  mi_heap_t*          own = mi_heap_new();
  mi_heap_t*          other = mi_heap_new();
  for (size_t k = 0; k < COUNT_OF(sizes) * 8; k++) {
    size_t   size = sizes[k % COUNT_OF(sizes)];
    size_t   newsize = size * (1 + k / COUNT_OF(sizes)) / 4 + 1;
    uint8_t* p;
    if (size > 512 * KiB && k / COUNT_OF(sizes) % 4 != 0) continue; // enough of the slow ones
    for (size_t i = 0; i < COUNT_OF(all_resizes); i++) {
      for (size_t is_default = 0; is_default < 2; is_default++) {
        mi_heap_t* before = (is_default ? mi_heap_set_default(other) : mi_heap_get_default());
        p = (uint8_t*)mi_heap_zalloc_aligned(own, size, 64);
        pattern_fill(p, 0, size, size);
        uint8_t*   q = (uint8_t*)all_resizes[i].call(p, newsize, 64, 0);
        size_t     kept = (size < newsize ? size : newsize);
        mi_heap_t* wanted = (MI_API_LEVEL >= 3 || !mi_heap_contains(own, q) ? mi_heap_get_default() : own);
        CHECK_FOR(mi_heap_of(q) == wanted, "%s(%zu to %zu)", all_resizes[i].name, size, newsize);
        CHECK_FOR(pattern_check(q, kept, size) == kept, "%s(%zu to %zu)", all_resizes[i].name, size, newsize);
        mi_free(q);
        mi_heap_set_default(before);
      }
    }
    for (size_t i = 0; i < COUNT_OF(all_heap_resizes); i++) {
      p = (uint8_t*)mi_heap_zalloc_aligned(own, size, 64);
      p = (uint8_t*)all_heap_resizes[i].call(other, p, newsize, 64, 0);
      CHECK_FOR(mi_heap_contains(other, p), "heap_%s(%zu to %zu)", all_heap_resizes[i].name, size, newsize);
      mi_free(p);
    }
  }
  // What a program of level 3 relies on.
  uint8_t* p = (uint8_t*)mi_heap_malloc(own, 100);
  memset(p, 0xAB, 100);
  p = (uint8_t*)mi_realloc(p, 90);
  if (mi_heap_of(p) == mi_heap_main()) {
    mi_heap_destroy(own);
    CHECK(p[0] == 0xAB && p[89] == 0xAB && mi_usable_size(p) >= 90);
    mi_free(p);
  }
  else {
    CHECK(MI_API_LEVEL < 3);
    mi_heap_destroy(own);
  }
  mi_heap_destroy(other);
}

int main(int argc, char** argv) {
  uint64_t seed = test_seed(argc, argv);
  size_t   before = rss_now();
  check_contents(seed);
  mi_collect(true);
  CHECK(rss_within("resident after the resizes", minus(rss_now(), before), 16 * MiB));
  check_heaps();
  check_in_place();
  check_shrink();
  check_failure_keeps_block();
  check_reallocf();
  check_zero_chains(seed);
  return check_result();
}
