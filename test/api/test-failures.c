// Proves: what cannot be had is refused the same way by all functions: NULL, errno, a report with the right code, no
// memory lost, and a block that was to be resized stays as it was.
#include "../check.h"
#include "heap-entries.h"

static int    codes[16];
static size_t n_codes;

static void record_error(int code, void* arg) {
  (void)arg;
  if (n_codes < COUNT_OF(codes)) codes[n_codes++] = code;
}

static bool was_reported(int code) {
  for (size_t i = 0; i < n_codes; i++) {
    if (codes[i] == code) return true;
  }
  return false;
}

static void expect_failure(void) {
  n_codes = 0;
  errno = 4711;
}

static const size_t n_beyond = (size_t)PTRDIFF_MAX + 1; // what no system could serve
static const size_t n_large = TEST_TOO_MUCH;            // what this one does not

// ---- too much -------------------------------------------------------------------------------------------------------

static void check_too_large(const char* name, void* p, unsigned flags, bool is_beyond) {
  int error = errno;
  CHECK_FOR(p == NULL, "%s", name);
  CHECK_FOR(error == ((flags & E_CODE) != 0 ? 4711 : ENOMEM), "%s: errno %d", name, error);
  if (is_beyond) CHECK_FOR(was_reported(EOVERFLOW), "%s: %zu reports", name, n_codes);
  else CHECK_FOR(was_reported(ENOMEM) || was_reported(EOVERFLOW), "%s: %zu reports", name, n_codes);
}

static void check_too_large_gets(void) {
  for (size_t i = 0; i < COUNT_OF(all_gets); i++) {
    const get_t* g = &all_gets[i];
    if ((g->flags & (E_SMALL | E_NEW)) != 0) continue;
    for (size_t k = 0; k < 4; k++) {
      size_t size = (k == 0 ? n_beyond : (k == 1 ? SIZE_MAX : (k == 2 ? SIZE_MAX - 64 : n_large)));
      expect_failure();
      check_too_large(g->name, g->call(hidden(size), 64, 0), g->flags, k < 3);
    }
  }
}

static void check_too_large_heap_gets(mi_heap_t* heap) {
  for (size_t i = 0; i < COUNT_OF(all_heap_gets); i++) {
    const heap_get_t* g = &all_heap_gets[i];
    if ((g->flags & (E_SMALL | E_NEW)) != 0) continue;
    for (size_t k = 0; k < 4; k++) {
      size_t size = (k == 0 ? n_beyond : (k == 1 ? SIZE_MAX : (k == 2 ? SIZE_MAX - 64 : n_large)));
      expect_failure();
      check_too_large(g->name, g->call(heap, hidden(size), 64, 0), g->flags, k < 3);
    }
  }
}

static void check_too_large_resizes(mi_heap_t* heap) {
  for (size_t size = 16; size <= 4 * MiB; size *= 512) {
    uint8_t* p = (uint8_t*)mi_heap_zalloc_aligned(heap, size, 64);
    pattern_fill(p, 0, size, size);
    for (size_t i = 0; i < COUNT_OF(all_resizes); i++) {
      if ((all_resizes[i].flags & E_NEW) != 0) continue;
      expect_failure();
      check_too_large(all_resizes[i].name, all_resizes[i].call(p, hidden(n_beyond), 64, 0), 0, true);
    }
    for (size_t i = 0; i < COUNT_OF(all_heap_resizes); i++) {
      expect_failure();
      check_too_large(all_heap_resizes[i].name, all_heap_resizes[i].call(heap, p, hidden(n_beyond), 64, 0), 0, true);
    }
    CHECK_EQ(pattern_check(p, size, size), size);
    mi_free(p);
  }
}

// ---- count * size that overflows ------------------------------------------------------------------------------------

// Debug builds report it, once; others do not, for a program may be told so often.
static void check_overflow_report(const char* call) {
  CHECK_FOR(n_codes == (MI_DEBUG > 0 ? 1 : 0) && (n_codes == 0 || codes[0] == EOVERFLOW), "%s: %zu reports", call,
            n_codes);
}

#define CHECK_OVERFLOW(call) \
  do { \
    expect_failure(); \
    void* overflow_p = (call); \
    int   overflow_error = errno; \
    CHECK_FOR(overflow_p == NULL && overflow_error == ENOMEM, "%s: errno %d", #call, overflow_error); \
    check_overflow_report(#call); \
  } while (0)

static void check_overflows(mi_heap_t* heap) {
  size_t count = hidden(SIZE_MAX / 16 + 2), size = hidden(16);
  void*  p = mi_heap_zalloc(heap, 100);
  memset(p, 0xAB, 100);
  CHECK_OVERFLOW(mi_calloc(count, size));
  CHECK_OVERFLOW(mi_calloc(size, count));
  CHECK_OVERFLOW(mi_mallocn(count, size));
  CHECK_OVERFLOW(mi_reallocn(p, count, size));
  CHECK_OVERFLOW(mi_recalloc(p, count, size));
  CHECK_OVERFLOW(mi_calloc_aligned(count, size, 64));
  CHECK_OVERFLOW(mi_calloc_aligned_at(count, size, 64, 8));
  CHECK_OVERFLOW(mi_recalloc_aligned(p, count, size, 64));
  CHECK_OVERFLOW(mi_recalloc_aligned_at(p, count, size, 64, 8));
  CHECK_OVERFLOW(mi_aligned_recalloc(p, count, size, 64));
  CHECK_OVERFLOW(mi_aligned_offset_recalloc(p, count, size, 64, 8));
  CHECK_OVERFLOW(mi_ucalloc(count, size, NULL));
  CHECK_OVERFLOW(mi_heap_calloc(heap, count, size));
  CHECK_OVERFLOW(mi_heap_mallocn(heap, count, size));
  CHECK_OVERFLOW(mi_heap_reallocn(heap, p, count, size));
  CHECK_OVERFLOW(mi_heap_recalloc(heap, p, count, size));
  CHECK_OVERFLOW(mi_heap_calloc_aligned(heap, count, size, 64));
  CHECK_OVERFLOW(mi_heap_calloc_aligned_at(heap, count, size, 64, 8));
  CHECK_OVERFLOW(mi_heap_recalloc_aligned(heap, p, count, size, 64));
  CHECK_OVERFLOW(mi_heap_recalloc_aligned_at(heap, p, count, size, 64, 8));
  CHECK_OVERFLOW(mi_theap_calloc(mi_heap_theap(heap), count, size));
  expect_failure();
  CHECK(mi_reallocarray(p, count, size) == NULL && errno == EOVERFLOW);
  check_overflow_report("reallocarray");
  expect_failure();
  CHECK(mi_reallocarr(&p, count, size) == EOVERFLOW && errno == EOVERFLOW);
  check_overflow_report("reallocarr");
  CHECK(p != NULL && ((uint8_t*)p)[0] == 0xAB && ((uint8_t*)p)[99] == 0xAB);
  mi_free(p);
}

// ---- alignments that are none ---------------------------------------------------------------------------------------

static void check_bad_alignments(mi_heap_t* heap) {
  static const size_t bad[] = {0, 3, 24, 48, 100, 4097, SIZE_MAX, SIZE_MAX / 2};
  for (size_t i = 0; i < COUNT_OF(all_gets); i++) {
    const get_t* g = &all_gets[i];
    if ((g->flags & E_ALIGN) == 0 || (g->flags & E_NEW) != 0) continue;
    for (size_t k = 0; k < COUNT_OF(bad); k++) {
      if ((g->flags & E_RESIZE) != 0 && bad[k] <= sizeof(void*)) continue; // no alignment at all
      expect_failure();
      void* p = g->call(100, hidden(bad[k]), 0);
      int   error = errno;
      CHECK_FOR(p == NULL && error == ((g->flags & E_CODE) != 0 ? 4711 : EINVAL), "%s(100, %zu): %p, errno %d", g->name,
                bad[k], p, error);
    }
  }
  for (size_t i = 0; i < COUNT_OF(all_heap_gets); i++) {
    const heap_get_t* g = &all_heap_gets[i];
    if ((g->flags & E_ALIGN) == 0) continue;
    for (size_t k = 0; k < COUNT_OF(bad); k++) {
      if ((g->flags & E_RESIZE) != 0 && bad[k] <= sizeof(void*)) continue;
      expect_failure();
      void* p = g->call(heap, 100, hidden(bad[k]), 0);
      int   error = errno;
      CHECK_FOR(p == NULL && error == EINVAL, "heap_%s(100, %zu): %p, errno %d", g->name, bad[k], p, error);
    }
  }
}

// The smallest power of two that is refused is one for lack of address space, not of the range of a type.
static void check_large_alignments(mi_heap_t* heap) {
  size_t last = test_largest_alignment();
  for (size_t alignment = 16; alignment != 0 && alignment <= last; alignment *= 2) {
    void* p = mi_heap_malloc_aligned(heap, 1, alignment);
    if (p == NULL && alignment > (sizeof(void*) > 4 ? 1 * GiB : 256 * MiB)) break;
    CHECK_FOR(p != NULL && is_aligned(p, alignment) && mi_heap_contains(heap, p), "alignment %zu", alignment);
    mi_free(p);
  }
  expect_failure();
  CHECK(mi_malloc_aligned(sizeof(void*) > 4 ? 100 : PTRDIFF_MAX - MiB, hidden((size_t)1 << (8 * sizeof(size_t) - 1))) ==
        NULL);
  CHECK_EQ(errno, ENOMEM);
}

// ---- and afterwards -------------------------------------------------------------------------------------------------

static void check_nothing_is_stored(void) {
  size_t pre = 77, post = 78;
  expect_failure();
  CHECK(mi_umalloc(hidden(n_beyond), &pre) == NULL && pre == 77);
  CHECK(mi_ucalloc(2, hidden(n_beyond), &pre) == NULL && pre == 77);
  CHECK(mi_umalloc_aligned(hidden(n_beyond), 64, &pre) == NULL && pre == 77);
  CHECK(mi_uzalloc_aligned(hidden(n_beyond), 64, &pre) == NULL && pre == 77);
  void* p = mi_malloc(100);
  CHECK(mi_urealloc(p, hidden(n_beyond), &pre, &post) == NULL && post == 78);
  mi_ufree(NULL, &post);
  CHECK_EQ(post, 78);
  mi_ufree(p, &post);
  CHECK(post >= 100);
  void* q = &pre;
  CHECK(mi_posix_memalign(&q, 64, hidden(n_beyond)) == ENOMEM && q == &pre);
  CHECK(mi_posix_memalign(&q, 24, 100) == EINVAL && q == &pre);
}

static void check_goes_on(mi_heap_t* heap) {
  for (size_t size = 1; size < 10 * MiB; size *= 3) {
    void* p = mi_malloc(size);
    void* q = mi_heap_malloc(heap, size);
    CHECK_FOR(p != NULL && q != NULL, "size %zu", size);
    mi_free(p);
    mi_free(q);
  }
}

int main(int argc, char** argv) {
  test_seed(argc, argv);
  mi_option_disable(mi_option_show_errors);
  mi_register_error(&record_error, NULL);
  mi_heap_t* heap = mi_heap_new();
  size_t     before = rss_now();
  check_too_large_gets();
  check_too_large_heap_gets(heap);
  check_too_large_heap_gets(NULL);
  check_too_large_resizes(heap);
  check_overflows(heap);
  check_bad_alignments(heap);
  check_large_alignments(heap);
  check_nothing_is_stored();
  check_goes_on(heap);
  mi_heap_delete(heap);
  CHECK(rss_within("after all that failed", minus(rss_now(), before), 64 * MiB));
  return check_result();
}
