// Proves: with mimalloc-override.h the names of the C libraries mean ours, each with what it promises.
#include "../check.h"
#include "entries.h"
#include <malloc.h>
#include <wchar.h>

#include <mimalloc-override.h>

static void expect_ours(const char* name, const void* p, size_t size) {
  CHECK_FOR(p != NULL && mi_is_in_heap_region(p) && mi_usable_size(p) >= size, "%s: %p", name, (void*)(uintptr_t)p);
}

#define OURS(call, size) \
  do { \
    void* ours_p = (call); \
    expect_ours(#call, ours_p, size); \
    mi_free(ours_p); \
  } while (0)

static void check_c(void) {
  OURS(malloc(100), 100);
  OURS(calloc(10, 20), 200);
  OURS(realloc(malloc(10), 300), 300);
  OURS(strdup("hello"), 6);
  OURS(strndup("hello", 3), 4);
#if !defined(__wasi__)
  OURS(realpath("/", NULL), 2);
#endif
  free(malloc(100));
  free(NULL);
}

static void check_microsoft(void) {
  void* p = malloc(100);
  CHECK(_expand(p, 50) == (MI_PADDING ? NULL : p));
  CHECK(_expand(p, 100 * KiB) == NULL);
  CHECK(_msize(p) == mi_usable_size(p));
  free(p);
  OURS(_recalloc(NULL, 10, 20), 200);
  OURS(_strdup("hello"), 6);
  OURS(_strndup("hello", 3), 4);
  OURS(_wcsdup(L"hello"), 6 * sizeof(wchar_t));
  OURS(_mbsdup((const unsigned char*)"hello"), 6);
  char*    text = NULL;
  wchar_t* wide = NULL;
  size_t   size = 0;
  CHECK(setenv("OVERRIDDEN", "yes", 1) == 0);
  CHECK(_dupenv_s(&text, &size, "OVERRIDDEN") == 0 && size == 4 && strcmp(text, "yes") == 0);
  expect_ours("_dupenv_s", text, 4);
  free(text);
#if defined(_WIN32)
  CHECK(_wdupenv_s(&wide, &size, L"OVERRIDDEN") == 0 && size == 4 && wcscmp(wide, L"yes") == 0);
  expect_ours("_wdupenv_s", wide, 8);
  free(wide);
#else
  CHECK(_wdupenv_s(&wide, &size, L"OVERRIDDEN") == EINVAL && wide == NULL);
#endif
}

static void check_posix(void) {
  void* p = malloc(100);
  CHECK(malloc_size(p) == mi_usable_size(p) && malloc_usable_size(p) == mi_usable_size(p));
  CHECK(malloc_good_size(100) == mi_good_size(100));
  cfree(p);
  OURS(reallocf(NULL, 100), 100);
  OURS(valloc(100), 100);
  OURS(pvalloc(100), 4096);
  OURS(reallocarray(NULL, 10, 20), 200);
  OURS(memalign(256, 100), 100);
  OURS(aligned_alloc(256, 100), 100);
  CHECK(posix_memalign(&p, 256, 100) == 0 && is_aligned(p, 256));
  expect_ours("posix_memalign", p, 100);
  free(p);
  CHECK(_posix_memalign(&p, 3, 100) == EINVAL);
  CHECK(_posix_memalign(&p, 512, 100) == 0 && is_aligned(p, 512));
  CHECK(reallocarr(&p, 10, 200) == 0);
  expect_ours("reallocarr", p, 2000);
  free(p);
}

static void check_microsoft_aligned(void) {
  uint8_t* p = (uint8_t*)_aligned_malloc(100, 512);
  CHECK(is_aligned(p, 512));
  memset(p, 0xAB, 100);
  p = (uint8_t*)_aligned_realloc(p, 1000, 1024);
  CHECK(is_aligned(p, 1024) && p[99] == 0xAB && _aligned_msize(p, 1024, 0) == mi_usable_size(p));
  _aligned_free(p);
  p = (uint8_t*)_aligned_recalloc(NULL, 10, 20, 256);
  CHECK(is_aligned(p, 256) && is_zero(p, 0, 200));
  expect_ours("_aligned_recalloc", p, 200);
  _aligned_free(p);
  p = (uint8_t*)_aligned_offset_malloc(100, 256, 24);
  CHECK(is_aligned(p + 24, 256));
  p = (uint8_t*)_aligned_offset_realloc(p, 3000, 512, 24);
  CHECK(is_aligned(p + 24, 512));
  expect_ours("_aligned_offset_realloc", p, 3000);
  _aligned_free(p);
  p = (uint8_t*)_aligned_offset_recalloc(NULL, 10, 20, 256, 24);
  CHECK(is_aligned(p + 24, 256) && is_zero(p, 0, 200));
  _aligned_free(p);
}

int main(int argc, char** argv) {
  test_seed(argc, argv);
  check_c();
  check_microsoft();
  check_posix();
  check_microsoft_aligned();
  return check_result();
}
