// Proves: every alignment that is a power of two is kept, with and without offset, through gets, resizes and reuse; natural
// alignment holds for plain requests; what is no power of two is refused.
#include "../check.h"
#include "heap-entries.h"

// 8 bytes up to 8, 16 beyond; a power of two up to 4 KiB at its own size is the custom of the C libraries' users.
static void check_natural(void) {
  for (size_t size = 1; size <= 4096; size++) {
    void* blocks[4];
    for (size_t i = 0; i < COUNT_OF(blocks); i++) {
      blocks[i] = mi_malloc(size);
      CHECK_FOR(is_aligned(blocks[i], size <= 8 ? 8 : 16), "size %zu", size);
    }
    for (size_t i = 0; i < COUNT_OF(blocks); i++) mi_free(blocks[i]);
  }
}

static void check_powers(void) {
  for (size_t i = 0; i < COUNT_OF(all_gets); i++) {
    const get_t* g = &all_gets[i];
    if ((g->flags & E_ALIGN) == 0) continue;
    for (size_t alignment = 1; alignment <= 64 * MiB; alignment *= 2) {
      for (size_t size = 1; size <= 300 * KiB; size = size * 7 + 3) {
        if (!get_allows(g, size, alignment, 0)) continue;
        void* p = g->call(size, alignment, 0);
        CHECK_FOR(p != NULL && is_aligned(p, alignment), "%s(%zu, %zu)", g->name, size, alignment);
        if (p == NULL) continue;
        CHECK_FOR(mi_usable_size(p) >= size, "%s(%zu, %zu)", g->name, size, alignment);
        memset(p, 0xAB, size);
        mi_free(p);
      }
    }
  }
}

// Blocks of the same class that were freed before are taken again only if they have the alignment.
static void check_reuse(void) {
  enum { N = 8 };
  for (size_t alignment = 16; alignment <= 512 * KiB; alignment *= 2) {
    for (size_t size = alignment; size <= 512 * KiB; size *= 2) {
      void* blocks[N];
      void* between[N]; // a slice each: what lies behind them is seldom aligned to more
      for (size_t i = 0; i < N; i++) {
        blocks[i] = mi_malloc(size - 8);
        between[i] = mi_malloc(40 * KiB);
      }
      for (size_t i = 0; i < N; i++) mi_free(blocks[i]);
      for (size_t i = 0; i < N; i++) {
        blocks[i] = mi_malloc_aligned(i % 2 == 0 ? size - 8 : size / 2 + 1, alignment);
        CHECK_FOR(is_aligned(blocks[i], alignment), "(%zu, %zu), block %zu", size, alignment, i);
      }
      for (size_t i = 0; i < N; i++) {
        mi_free(blocks[i]);
        mi_free(between[i]);
      }
    }
  }
}

static void check_offsets(void) {
  static const size_t offsets[] = {1, 4, 8, 12, 16, 24, 40, 64, 100, 127, 4096, 5000, 100000};
  for (size_t i = 0; i < COUNT_OF(all_gets); i++) {
    const get_t* g = &all_gets[i];
    if ((g->flags & E_OFFSET) == 0) continue;
    for (size_t alignment = 1; alignment <= 64 * KiB; alignment *= 2) {
      for (size_t k = 0; k < COUNT_OF(offsets); k++) {
        for (size_t size = 1; size <= 200 * KiB; size = size * 9 + 5) {
          if (!get_allows(g, size, alignment, offsets[k])) continue;
          uint8_t* p = (uint8_t*)g->call(size, alignment, offsets[k]);
          CHECK_FOR(p != NULL && is_aligned(p + offsets[k], alignment), "%s(%zu, %zu, %zu)", g->name, size, alignment,
                    offsets[k]);
          if (p == NULL) continue;
          CHECK_FOR(mi_usable_size(p) >= size, "%s(%zu, %zu, %zu)", g->name, size, alignment, offsets[k]);
          memset(p, 0xAB, size);
          mi_free(p);
        }
      }
    }
  }
}

// A resize keeps contents and gives the alignment that it was asked for, also from a block that had less.
static void check_resizes(uint64_t seed) {
  rng_t rng = rng_make(seed);
  for (size_t i = 0; i < COUNT_OF(all_resizes); i++) {
    const resize_t* r = &all_resizes[i];
    if ((r->flags & E_ALIGN) == 0) continue;
    for (size_t round = 0; round < 60; round++) {
      size_t   size = rng_size(&rng, 100 * KiB);
      uint8_t* p = (uint8_t*)mi_zalloc(size);
      CHECK(p != NULL);
      pattern_fill(p, 0, size, round);
      for (size_t step = 0; step < 6 && p != NULL; step++) {
        size_t   newsize = 1 + rng_size(&rng, 200 * KiB);
        size_t   alignment = (size_t)16 << rng_below(&rng, 12);
        size_t   offset = (r->flags & E_OFFSET) != 0 ? 8 * rng_below(&rng, 20) : 0;
        uint8_t* q = (uint8_t*)r->call(p, newsize, alignment, offset);
        size_t   kept = size < newsize ? size : newsize;
        CHECK_FOR(q != NULL && is_aligned(q + offset, alignment), "%s(%zu, %zu, %zu)", r->name, newsize, alignment,
                  offset);
        if (q == NULL) break;
        CHECK_FOR(pattern_check(q, kept, round) == kept, "%s(%zu to %zu, %zu)", r->name, size, newsize, alignment);
        pattern_fill(q, kept, newsize, round);
        size = newsize;
        p = q;
      }
      mi_free(p);
    }
  }
}

// An offset may undo an alignment that every block has.
static void check_small_offsets(void) {
  mi_heap_t* heap = mi_heap_new();
  for (size_t alignment = 1; alignment <= 32; alignment *= 2) {
    for (size_t offset = 0; offset <= 20; offset += 1 + offset / 5) {
      for (size_t size = 1; size < 20000; size = size * 20 + 19) {
        for (size_t i = 0; i < COUNT_OF(all_gets); i++) {
          const get_t* g = &all_gets[i];
          if ((g->flags & E_OFFSET) == 0) continue;
          uint8_t* p = (uint8_t*)g->call(size, alignment, offset);
          CHECK_FOR(p != NULL && is_aligned(p + offset, alignment), "%s(%zu, %zu, %zu)", g->name, size, alignment,
                    offset);
          if ((g->flags & E_ZERO) != 0)
            CHECK_FOR(is_zero(p, 0, size), "%s(%zu, %zu, %zu)", g->name, size, alignment, offset);
          mi_free(p);
        }
        for (size_t i = 0; i < COUNT_OF(all_heap_gets); i++) {
          const heap_get_t* g = &all_heap_gets[i];
          if ((g->flags & E_OFFSET) == 0) continue;
          uint8_t* p = (uint8_t*)g->call(heap, size, alignment, offset);
          CHECK_FOR(p != NULL && is_aligned(p + offset, alignment), "heap_%s(%zu, %zu, %zu)", g->name, size, alignment,
                    offset);
          mi_free(p);
        }
      }
    }
  }
  mi_heap_delete(heap);
}

static void check_small_offset_resize(const char* name, uint8_t* p, uint8_t* q, size_t size, size_t newsize,
                                      size_t alignment, size_t offset, bool is_zeroing) {
  size_t kept = (size < newsize ? size : newsize);
  CHECK_FOR(q != NULL && is_aligned(q + offset, alignment), "%s(%p, %zu, %zu, %zu): %p", name, (void*)p, newsize,
            alignment, offset, (void*)q);
  if (q == NULL) return;
  CHECK_FOR(pattern_check(q, kept, size) == kept, "%s(%zu to %zu)", name, size, newsize);
  if (is_zeroing) CHECK_FOR(is_zero(q, kept, newsize), "%s(%zu to %zu)", name, size, newsize);
  mi_free(q);
}

// From a block without the offset, or with it, to one that fits and to ones that do not.
static void check_small_offset_resizes(void) {
  static const size_t newsizes[] = {1, 36, 40, 400, 100000};
  mi_heap_t*          heap = mi_heap_new();
  for (size_t k = 0; k < COUNT_OF(newsizes) * 4 * 12 * 2; k++) {
    size_t newsize = newsizes[k % 5], alignment = (size_t)2 << (k / 5 % 4), offset = k / 20 % 12;
    bool   has_offset = (k / 240 == 1);
    for (size_t i = 0; i < COUNT_OF(all_resizes); i++) {
      const resize_t* r = &all_resizes[i];
      if ((r->flags & E_OFFSET) == 0) continue;
      uint8_t* p = (uint8_t*)mi_zalloc_aligned_at(40, alignment, has_offset ? offset : 0);
      pattern_fill(p, 0, 40, 40);
      check_small_offset_resize(r->name, p, (uint8_t*)r->call(p, newsize, alignment, offset), 40, newsize, alignment,
                                offset, (r->flags & E_ZERO) != 0);
    }
    for (size_t i = 0; i < COUNT_OF(all_heap_resizes); i++) {
      const heap_resize_t* r = &all_heap_resizes[i];
      if ((r->flags & E_OFFSET) == 0) continue;
      uint8_t* p = (uint8_t*)mi_heap_zalloc_aligned_at(heap, 40, alignment, has_offset ? offset : 0);
      pattern_fill(p, 0, 40, 40);
      check_small_offset_resize(r->name, p, (uint8_t*)r->call(heap, p, newsize, alignment, offset), 40, newsize,
                                alignment, offset, (r->flags & E_ZERO) != 0);
    }
  }
  mi_heap_delete(heap);
}

// A block that an offset has put at an odd address does not stay there when it is resized with an alignment of up to a word.
static void check_odd_resizes(void) {
  const size_t size = 50000, newsize = 50001; // it fits, and half of the room is used
  for (size_t offset = 0; offset <= 72; offset += 24) {
    for (size_t alignment = 2; alignment <= sizeof(void*); alignment *= 2) {
      for (size_t i = 0; i < COUNT_OF(all_resizes); i++) {
        const resize_t* r = &all_resizes[i];
        if ((r->flags & E_ALIGN) == 0 || ((r->flags & E_OFFSET) == 0 && offset > 0)) continue;
        uint8_t* p = (uint8_t*)mi_zalloc_aligned_at(size, 64, 1);
        CHECK(((uintptr_t)p & 1) == 1);
        pattern_fill(p, 0, size, offset);
        uint8_t* q = (uint8_t*)r->call(p, newsize, alignment, offset);
        CHECK_FOR(is_aligned(q + offset, alignment), "%s(%p, alignment %zu, offset %zu): %p", r->name, (void*)p,
                  alignment, offset, (void*)q);
        CHECK_EQ(pattern_check(q, size, offset), size);
        mi_free(q);
      }
    }
  }
}

static void check_refused(void) {
  static const size_t bad[] = {0, 3, 5, 6, 7, 12, 24, 48, 100, 4095, 4097, SIZE_MAX, SIZE_MAX / 2};
  for (size_t i = 0; i < COUNT_OF(all_gets); i++) {
    const get_t* g = &all_gets[i];
    if ((g->flags & E_ALIGN) == 0 || (g->flags & E_NEW) != 0) continue;
    for (size_t k = 0; k < COUNT_OF(bad); k++) {
      if ((g->flags & E_RESIZE) != 0 && bad[k] <= sizeof(void*)) continue;
      errno = 0;
      void* p = g->call(64, hidden(bad[k]), 0);
      CHECK_FOR(p == NULL, "%s with alignment %zu", g->name, bad[k]);
      CHECK_FOR(errno == 0 || errno == EINVAL, "%s with alignment %zu: errno %d", g->name, bad[k], errno);
      mi_free(p);
    }
  }
}

// With an alignment that is none, and a size that nobody can have: it is the alignment that errno tells of, whatever the function.
static void check_refused_first(void) {
  mi_heap_t* heap = mi_heap_main();
  size_t     bad = hidden(24), many = hidden(SIZE_MAX);
  void*      p = mi_malloc(100);
#define REFUSED(call) CHECK_FOR((errno = 0, (call) == NULL && errno == EINVAL), "%s: errno %d", #call, errno)
  REFUSED(mi_malloc_aligned(many, bad));
  REFUSED(mi_zalloc_aligned_at(many, bad, 8));
  REFUSED(mi_calloc_aligned(many, many, bad));
  REFUSED(mi_calloc_aligned_at(many, many, bad, 8));
  REFUSED(mi_heap_calloc_aligned(heap, many, many, bad));
  REFUSED(mi_heap_calloc_aligned_at(heap, many, many, bad, 8));
  REFUSED(mi_realloc_aligned(p, many, bad));
  REFUSED(mi_rezalloc_aligned(p, many, bad));
  REFUSED(mi_recalloc_aligned(NULL, many, many, bad));
  REFUSED(mi_recalloc_aligned(p, many, many, bad));
  REFUSED(mi_recalloc_aligned_at(p, many, many, bad, 8));
  REFUSED(mi_recalloc_aligned_at(p, many, many, hidden(3), 8));
  REFUSED(mi_heap_recalloc_aligned(heap, p, many, many, bad));
  REFUSED(mi_heap_recalloc_aligned_at(heap, p, many, many, bad, 8));
  REFUSED(mi_aligned_recalloc(p, many, many, bad));
  REFUSED(mi_aligned_offset_recalloc(p, many, many, bad, 8));
  REFUSED(mi_memalign(bad, many));
  REFUSED(mi_aligned_alloc(bad, many));
  REFUSED(mi_umalloc_aligned(many, bad, NULL));
  REFUSED(mi_uzalloc_aligned(many, bad, NULL));
#undef REFUSED
  CHECK_EQ(mi_posix_memalign(&p, bad, many), EINVAL);
  errno = 0;
  CHECK(mi_calloc_aligned(many, many, 32) == NULL && errno == ENOMEM);
  errno = 0;
  CHECK(mi_recalloc_aligned(p, many, many, hidden(3)) == NULL && errno == ENOMEM); // not checked up to sizeof(void*)
  mi_free(p);
}

// The largest alignments need address space only; a refusal must be a clean one.
static void check_huge_alignments(void) {
  if (sizeof(void*) < 8) return;
  for (size_t bits = 27; bits <= 40 && POWER_OF_TWO(bits) <= test_largest_alignment(); bits++) {
    size_t alignment = (size_t)1 << (bits & 63);
    errno = 0;
    uint8_t* p = (uint8_t*)mi_malloc_aligned(1000, hidden(alignment));
    CHECK_FOR((p != NULL && is_aligned(p, alignment)) || (p == NULL && errno == ENOMEM), "alignment 2^%zu", bits);
    if (p == NULL) printf("alignment 2^%zu: refused\n", bits);
    if (p != NULL) {
      memset(p, 0xAB, 1000);
      CHECK(mi_usable_size(p) >= 1000);
    }
    mi_free(p);
  }
  void* p = mi_malloc_aligned(8, hidden(POWER_OF_TWO(63)));
  CHECK(p == NULL);
}

int main(int argc, char** argv) {
  uint64_t seed = test_seed(argc, argv);
  check_natural();
  check_powers();
  check_reuse();
  check_offsets();
  check_resizes(seed);
  check_small_offsets();
  check_small_offset_resizes();
  check_odd_resizes();
  check_refused();
  check_refused_first();
  check_huge_alignments();
  return check_result();
}
