// What POSIX, libc and other systems' libraries have beside malloc.  Layer: api.
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "aligned.h"
#include "life.h"
#include "malloc.h"

void mi_cfree(void* p) mi_attr_noexcept {
  if (mi_is_in_heap_region(p)) mi_free(p);
}

// ---- alignment ------------------------------------------------------------------------------------------------------

// POSIX: errno stays as it was, the result says it.
static mi_noinline void* posix_aligned(size_t size, size_t alignment) mi_attr_noexcept {
  int   saved = errno;
  void* p = mi_malloc_aligned(size, alignment);
  errno = saved;
  return p;
}

int mi_posix_memalign(void** p, size_t alignment, size_t size) {
  if (p == NULL || alignment % sizeof(void*) != 0 || !mi_is_pow2(alignment)) return EINVAL;
  void* q = _mi_aligned_pop(size, alignment);
  if (mi_unlikely(q == NULL)) q = posix_aligned(size, alignment);
  if (mi_unlikely(q == NULL)) return ENOMEM;
  *p = q;
  return 0;
}

// clang-format off
void* mi_memalign(size_t align, size_t size) mi_attr_noexcept { return mi_malloc_aligned(size, align); }
void* mi_aligned_alloc(size_t align, size_t size) mi_attr_noexcept { return mi_malloc_aligned(size, align); }
void* mi_valloc(size_t size) mi_attr_noexcept { return mi_malloc_aligned(size, _mi_prim_os_page_size()); }
// clang-format on

void* mi_pvalloc(size_t size) mi_attr_noexcept {
  size_t page = _mi_prim_os_page_size();
  if (size > SIZE_MAX - page) return _mi_alloc_failed(size);
  return mi_malloc_aligned(mi_align_up(mi_max(size, 1), page), page);
}

// clang-format off
void mi_free_size(void* p, size_t size) mi_attr_noexcept { if (_mi_life_is_right(p, size, 1)) mi_free(p); }
void mi_free_aligned(void* p, size_t align) mi_attr_noexcept { if (_mi_life_is_right(p, SIZE_MAX, align)) mi_free(p); }
void mi_free_size_aligned(void* p, size_t size, size_t align) mi_attr_noexcept {
  if (_mi_life_is_right(p, size, align)) mi_free(p);
}
// clang-format on

// ---- arrays ---------------------------------------------------------------------------------------------------------

void* mi_reallocarray(void* p, size_t count, size_t size) mi_attr_noexcept {
  size_t total;
  if (mi_unlikely(mi_mul_overflows(count, size, &total))) {
    _mi_alloc_report_count(count, size);
    errno = EOVERFLOW;
    return NULL;
  }
  return mi_realloc(p, total);
}

int mi_reallocarr(void* ptrp, size_t count, size_t size) mi_attr_noexcept {
  size_t total;
  void*  p;
  if (ptrp == NULL || size == 0) return errno = EINVAL;
  if (mi_mul_overflows(count, size, &total)) {
    _mi_alloc_report_count(count, size);
    return errno = EOVERFLOW;
  }
  memcpy(&p, ptrp, sizeof(p)); // it points to a pointer of any type
  if (total == 0) {
    mi_free(p);
    p = NULL;
  }
  else {
    p = mi_realloc(p, total);
    if (p == NULL) return errno;
  }
  memcpy(ptrp, &p, sizeof(p));
  return 0;
}

// clang-format off
void* mi_aligned_recalloc(void* p, size_t n, size_t size, size_t align) mi_attr_noexcept {
  return mi_recalloc_aligned(p, n, size, align);
}
void* mi_aligned_offset_recalloc(void* p, size_t n, size_t size, size_t align, size_t offset) mi_attr_noexcept {
  return mi_recalloc_aligned_at(p, n, size, align, offset);
}
// clang-format on

// ---- strings --------------------------------------------------------------------------------------------------------

// A copy of n bytes, with a zero behind them; NULL of NULL.
static char* posix_copy(mi_heap_t* heap, const char* s, size_t n) {
  if (s == NULL) return NULL;
  if (n == SIZE_MAX) return (char*)_mi_alloc_failed(n);
  char* copy = (char*)_mi_malloc_in(heap, n + 1, false);
  if (copy == NULL) return NULL;
  memcpy(copy, s, n);
  copy[n] = 0;
  return copy;
}

// clang-format off
MI_ALLOC_BOTH(char*, strdup,  MI_ALLOC_P(const char* s),           , posix_copy(heap, s, s == NULL ? 0 : strlen(s)))
MI_ALLOC_BOTH(char*, strndup, MI_ALLOC_P(const char* s, size_t n), , posix_copy(heap, s, s == NULL ? 0 : strnlen(s, n)))
unsigned char* mi_mbsdup(const unsigned char* s) mi_attr_noexcept { return (unsigned char*)mi_strdup((const char*)s); }
// clang-format on

wchar_t* mi_wcsdup(const wchar_t* s) mi_attr_noexcept {
  if (s == NULL) return NULL;
  size_t size = (wcslen(s) + 1) * sizeof(wchar_t);
  void*  copy = mi_malloc(size);
  return (wchar_t*)(copy == NULL ? NULL : memcpy(copy, s, size));
}

char* mi_realpath(const char* fname, char* resolved_name) mi_attr_noexcept {
  if (resolved_name != NULL) return _mi_prim_real_path(fname, resolved_name);
  char* path = _mi_prim_real_path(fname, NULL); // may be libc's own block, where malloc is not ours
  if (path == NULL) return NULL;
  char* copy = mi_strdup(path);
  free(path);
  return copy;
}

char* mi_heap_realpath(mi_heap_t* heap, const char* fname, char* resolved_name) mi_attr_noexcept {
  char* path = mi_realpath(fname, resolved_name);
  if (path == NULL || resolved_name != NULL || mi_heap_contains(heap, path)) return path;
  char* copy = mi_heap_strdup(heap, path);
  mi_free(path);
  return copy;
}

int mi_dupenv_s(char** buf, size_t* size, const char* name) mi_attr_noexcept {
  if (buf == NULL || name == NULL) return EINVAL;
  const char* value = getenv(name);
  *buf = NULL;
  if (size != NULL) *size = 0;
  if (value == NULL) return 0;
  *buf = mi_strdup(value);
  if (*buf == NULL) return ENOMEM;
  if (size != NULL) *size = strlen(value) + 1;
  return 0;
}

int mi_wdupenv_s(wchar_t** buf, size_t* size, const wchar_t* name) mi_attr_noexcept {
  if (buf == NULL || name == NULL) return EINVAL;
  const wchar_t* value = _mi_prim_wide_variable(name);
  *buf = NULL;
  if (size != NULL) *size = 0;
  if (value == NULL) return MI_PRIM_HAS_WIDE_VARIABLES ? 0 : EINVAL;
  *buf = mi_wcsdup(value);
  if (*buf == NULL) return ENOMEM;
  if (size != NULL) *size = wcslen(value) + 1;
  return 0;
}
