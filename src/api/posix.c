// What POSIX, libc and other systems' libraries have beside malloc.  Layer: api.
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "../support/message.h"
#include "api.h"

size_t mi_malloc_size(const void* p) mi_attr_noexcept {
  return mi_usable_size(p);
}

size_t mi_malloc_usable_size(const void* p) mi_attr_noexcept {
  return mi_usable_size(p);
}

size_t mi_malloc_good_size(size_t size) mi_attr_noexcept {
  return mi_good_size(size);
}

void mi_cfree(void* p) mi_attr_noexcept {
  if (mi_is_in_heap_region(p)) mi_free(p);
}

// ---- alignment ------------------------------------------------------------------------------------------------------

int mi_posix_memalign(void** p, size_t alignment, size_t size) {
  if (p == NULL || alignment % sizeof(void*) != 0 || !mi_is_pow2(alignment)) return EINVAL;
  int   saved = errno;
  void* q = mi_malloc_aligned(size, alignment);
  errno = saved; // POSIX: the result says it
  if (q == NULL) return ENOMEM;
  *p = q;
  return 0;
}

void* mi_memalign(size_t alignment, size_t size) mi_attr_noexcept {
  return mi_malloc_aligned(size, alignment);
}

void* mi_aligned_alloc(size_t alignment, size_t size) mi_attr_noexcept {
  return mi_malloc_aligned(size, alignment);
}

void* mi_valloc(size_t size) mi_attr_noexcept {
  return mi_malloc_aligned(size, _mi_prim_os_page_size());
}

void* mi_pvalloc(size_t size) mi_attr_noexcept {
  size_t page = _mi_prim_os_page_size();
  if (size > SIZE_MAX - page) return _mi_malloc_failed(size);
  return mi_malloc_aligned(mi_align_up(mi_max(size, 1), page), page);
}

// Does the program know what it frees?  False when it was reported; then nothing is freed.
static bool free_is_right(const void* p, size_t size, bool has_size, size_t alignment) {
  mi_page_t* page = _mi_page_of(p);
  if (page == NULL) return true; // mi_free knows what to say
  bool has_padding = (_mi_padding_read_any(page, p) != SIZE_MAX);
  if (!_mi_verify_block(page, p, "free")) return false;
  if (!mi_is_aligned(p, alignment)) {
    _mi_message_error(EINVAL, "free of the block %p with the wrong alignment: it is no multiple of %zu\n", p,
                      alignment);
    return false;
  }
  size_t asked = _mi_padding_read_any(page, p);
  if (!has_size || !has_padding || size == asked) return true; // the size was overwritten, and that reported
  _mi_verify_wrong_size(p, size, asked);
  return false;
}

void mi_free_size(void* p, size_t size) mi_attr_noexcept {
  if (MI_CHECKED && mi_unlikely(!free_is_right(p, size, true, 1))) return;
  mi_free(p);
}

void mi_free_size_aligned(void* p, size_t size, size_t alignment) mi_attr_noexcept {
  if (MI_CHECKED && mi_unlikely(!free_is_right(p, size, true, alignment))) return;
  mi_free(p);
}

void mi_free_aligned(void* p, size_t alignment) mi_attr_noexcept {
  if (MI_CHECKED && mi_unlikely(!free_is_right(p, 0, false, alignment))) return;
  mi_free(p);
}

// ---- arrays ---------------------------------------------------------------------------------------------------------

void* mi_reallocarray(void* p, size_t count, size_t size) mi_attr_noexcept {
  size_t total;
  if (mi_unlikely(mi_mul_overflows(count, size, &total))) {
    _mi_count_report(count, size);
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
    _mi_count_report(count, size);
    return errno = EOVERFLOW;
  }
  memcpy(&p, ptrp, sizeof(p)); // it points to a pointer of any type
  if (total == 0) {
    mi_free(p);
    p = NULL;
  }
  else {
    p = mi_realloc(p, total);
    if (p == NULL) return ENOMEM;
  }
  memcpy(ptrp, &p, sizeof(p));
  return 0;
}

void* mi_aligned_recalloc(void* p, size_t newcount, size_t size, size_t alignment) mi_attr_noexcept {
  return mi_recalloc_aligned(p, newcount, size, alignment);
}

void* mi_aligned_offset_recalloc(void* p, size_t newcount, size_t size, size_t alignment,
                                 size_t offset) mi_attr_noexcept {
  return mi_recalloc_aligned_at(p, newcount, size, alignment, offset);
}

void* mi__expand(void* p, size_t newsize) mi_attr_noexcept {
  void* q = mi_expand(p, newsize);
  if (q == NULL) errno = ENOMEM;
  return q;
}

// ---- strings --------------------------------------------------------------------------------------------------------

static void* copy_of(const void* data, size_t size) {
  void* p = mi_malloc(size);
  if (p != NULL) memcpy(p, data, size);
  return p;
}

char* mi_strdup(const char* s) mi_attr_noexcept {
  return s == NULL ? NULL : (char*)copy_of(s, strlen(s) + 1);
}

char* mi_strndup(const char* s, size_t n) mi_attr_noexcept {
  if (s == NULL) return NULL;
  const char* end = (const char*)memchr(s, 0, n);
  size_t      length = (end == NULL ? n : (size_t)(end - s));
  if (length == SIZE_MAX) return (char*)_mi_malloc_failed(length);
  char* t = (char*)mi_malloc(length + 1);
  if (t == NULL) return NULL;
  memcpy(t, s, length);
  t[length] = 0;
  return t;
}

wchar_t* mi_wcsdup(const wchar_t* s) mi_attr_noexcept {
  return s == NULL ? NULL : (wchar_t*)copy_of(s, (wcslen(s) + 1) * sizeof(wchar_t));
}

unsigned char* mi_mbsdup(const unsigned char* s) mi_attr_noexcept {
  return (unsigned char*)mi_strdup((const char*)s);
}

char* mi_realpath(const char* fname, char* resolved_name) mi_attr_noexcept {
  if (resolved_name != NULL) return realpath(fname, resolved_name);
  char* path = realpath(fname, NULL); // may be libc's own block, where malloc is not ours
  if (path == NULL) return NULL;
  char* copy = mi_strdup(path);
  free(path);
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
  *buf = NULL;
  if (size != NULL) *size = 0;
  return EINVAL; // there is no wide environment here
}
