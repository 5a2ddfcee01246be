// Proves: the POSIX and C library look-alikes return the codes, and leave the results and errno, that their
// specifications ask for.
#include "../check.h"
#include "entries.h"

static void check_posix_memalign(void) {
  static char         mark;
  static const size_t bad[] = {0, 1, 2, 3, 4, 12, 24, 100, 4097, SIZE_MAX};
  for (size_t i = 0; i < COUNT_OF(bad); i++) {
    if (bad[i] == sizeof(void*)) continue; // 4 is fine on 32-bit systems
    void* p = &mark;
    errno = 0;
    CHECK_FOR(mi_posix_memalign(&p, hidden(bad[i]), 16) == EINVAL, "alignment %zu", bad[i]);
    CHECK_FOR(p == &mark && errno == 0, "alignment %zu", bad[i]);
  }
  CHECK_EQ(mi_posix_memalign(NULL, 16, 16), EINVAL);
  static const size_t too_large[] = {SIZE_MAX, SIZE_MAX - 15, PTRDIFF_MAX, (size_t)PTRDIFF_MAX + 1};
  for (size_t i = 0; i < COUNT_OF(too_large); i++) {
    void* p = &mark;
    errno = 0;
    CHECK_FOR(mi_posix_memalign(&p, 64, hidden(too_large[i])) == ENOMEM, "size %zx", too_large[i]);
    CHECK_FOR(p == &mark, "size %zx", too_large[i]);
    CHECK_FOR(errno == 0, "size %zx: errno %d", too_large[i], errno);
  }
  for (size_t alignment = sizeof(void*); alignment <= 1 * MiB; alignment *= 2) {
    void* p = NULL;
    errno = 0;
    CHECK_EQ(mi_posix_memalign(&p, alignment, 100), 0);
    CHECK_FOR(p != NULL && is_aligned(p, alignment) && errno == 0, "alignment %zu", alignment);
    mi_free(p);
    p = NULL;
    CHECK_EQ(mi_posix_memalign(&p, alignment, 0), 0);
    CHECK(p != NULL);
    mi_free(p);
  }
}

static void check_pages(void) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  for (size_t size = 0; size <= 5 * page; size += page / 2 + 1) {
    void* p = mi_valloc(size);
    void* q = mi_pvalloc(size);
    CHECK_FOR(p != NULL && is_aligned(p, page), "size %zu", size);
    CHECK_FOR(q != NULL && is_aligned(q, page), "size %zu", size);
    size_t rounded = (size + page - 1) / page * page;
    CHECK_FOR(mi_usable_size(q) >= rounded, "size %zu", size);
    memset(q, 0xAB, rounded);
    mi_free(p);
    mi_free(q);
  }
  CHECK(mi_pvalloc(hidden(SIZE_MAX)) == NULL);
  CHECK(mi_pvalloc(hidden(SIZE_MAX - page / 2)) == NULL);
  CHECK(mi_valloc(hidden(SIZE_MAX)) == NULL);
}

static void check_aligned_alloc(void) {
  void* p = mi_aligned_alloc(64, 100); // the size need not be a multiple
  CHECK(p != NULL && is_aligned(p, 64));
  mi_free(p);
  p = mi_memalign(1, 1);
  CHECK(p != NULL);
  mi_free(p);
  CHECK(mi_aligned_alloc(hidden(0), 64) == NULL);
  CHECK(mi_aligned_alloc(hidden(3), 64) == NULL);
  CHECK(mi_memalign(hidden(24), 64) == NULL);
}

static void check_reallocarray(void) {
  uint8_t* p = (uint8_t*)mi_reallocarray(NULL, 10, 10);
  CHECK(p != NULL);
  pattern_fill(p, 0, 100, 7);
  errno = 0;
  uint8_t* q = (uint8_t*)mi_reallocarray(p, hidden(SIZE_MAX / 2), 3);
  CHECK(q == NULL);
  CHECK(errno == EOVERFLOW || errno == ENOMEM);
  errno = 0;
  q = (uint8_t*)mi_reallocarray(p, hidden(PTRDIFF_MAX), 1);
  CHECK(q == NULL);
  CHECK_EQ(errno, ENOMEM);
  CHECK_EQ(pattern_check(p, 100, 7), 100); // still ours
  q = (uint8_t*)mi_reallocarray(p, 1000, 10);
  CHECK(q != NULL && pattern_check(q, 100, 7) == 100);
  mi_free(q);
  errno = 0;
  q = (uint8_t*)mi_reallocarray(NULL, 0, 8);
  CHECK(q != NULL && errno == 0);
  mi_free(q);
}

static void check_reallocarr(void) {
  void* p = NULL;
  errno = 0;
  CHECK_EQ(mi_reallocarr(&p, 10, 10), 0);
  CHECK(p != NULL && errno == 0);
  pattern_fill(p, 0, 100, 9);
  void* before = p;
  errno = 0;
  CHECK_EQ(mi_reallocarr(&p, hidden(SIZE_MAX / 2), 3), EOVERFLOW);
  CHECK(p == before && errno == EOVERFLOW);
  errno = 0;
  CHECK_EQ(mi_reallocarr(&p, hidden(PTRDIFF_MAX), 1), ENOMEM);
  CHECK(p == before && errno == ENOMEM);
  errno = 0;
  CHECK_EQ(mi_reallocarr(&p, 10, 0), EINVAL);
  CHECK(p == before && errno == EINVAL);
  errno = 0;
  CHECK_EQ(mi_reallocarr(NULL, 10, 10), EINVAL);
  CHECK_EQ(errno, EINVAL);
  CHECK_EQ(pattern_check(p, 100, 9), 100);
  CHECK_EQ(mi_reallocarr(&p, 1000, 10), 0);
  CHECK(p != NULL && pattern_check(p, 100, 9) == 100);
  CHECK_EQ(mi_reallocarr(&p, 0, 8), 0); // frees
  CHECK(p == NULL);
  CHECK_EQ(mi_reallocarr(&p, 0, 8), 0);
  CHECK(p == NULL);
}

static void check_environment(void) {
  char*  value = (char*)1;
  size_t size = 99;
  unsetenv("MI_TEST_UNSET");
  CHECK_EQ(mi_dupenv_s(&value, &size, "MI_TEST_UNSET"), 0);
  CHECK(value == NULL && size == 0);
  setenv("MI_TEST_SET", "some text", 1);
  CHECK_EQ(mi_dupenv_s(&value, &size, "MI_TEST_SET"), 0);
  CHECK(value != NULL && strcmp(value, "some text") == 0 && size == 10);
  mi_free(value);
  CHECK_EQ(mi_dupenv_s(&value, NULL, "MI_TEST_SET"), 0);
  CHECK(value != NULL && strcmp(value, "some text") == 0);
  mi_free(value);
  CHECK_EQ(mi_dupenv_s(NULL, &size, "MI_TEST_SET"), EINVAL);
  CHECK_EQ(mi_dupenv_s(&value, &size, NULL), EINVAL);
  wchar_t* wide = (wchar_t*)16;
  CHECK_EQ(mi_wdupenv_s(&wide, &size, L"MI_TEST_SET"), EINVAL); // a Windows service
  CHECK(wide == NULL);
}

int main(int argc, char** argv) {
  test_seed(argc, argv);
  check_posix_memalign();
  check_pages();
  check_aligned_alloc();
  check_reallocarray();
  check_reallocarr();
  check_environment();
  return check_result();
}
