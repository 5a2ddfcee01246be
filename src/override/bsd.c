// What the C libraries of FreeBSD and OpenBSD have beside libc.c: without it a program would ask an allocator that it does not
// use.  Layer: override.
#include <string.h>

#include "../api/alloc.h"
#include "../api/names.h"
#include "../prim/system.h"

#if defined(MI_MALLOC_OVERRIDE) && MI_SYSTEM_OPENBSD

MI_NAMES_BEGIN

// Memory that core dumps leave out: only a wish.
MI_NAMES_PUBLIC void* malloc_conceal(size_t size) {
  return mi_malloc(size);
}

MI_NAMES_PUBLIC void* calloc_conceal(size_t count, size_t size) {
  return mi_calloc(count, size);
}

// A compiler must not leave out what clears memory that nobody reads.
static void bsd_clear(void* p, size_t size) {
  memset(p, 0, size);
  __asm__ volatile("" : : "r"(p) : "memory");
}

MI_NAMES_PUBLIC void freezero(void* p, size_t size) {
  if (p == NULL) return;
  bsd_clear(p, size);
  mi_free(p);
}

// What is added reads as zero, and what is left behind is cleared.
MI_NAMES_PUBLIC void* recallocarray(void* p, size_t old_count, size_t count, size_t size) {
  size_t total, old_total;
  if (p == NULL) return mi_calloc(count, size);
  if (!_mi_alloc_count(count, size, &total) || !_mi_alloc_count(old_count, size, &old_total)) return NULL;
  void* q = mi_malloc(total);
  if (q == NULL) return NULL;
  size_t kept = (total < old_total ? total : old_total);
  memcpy(q, p, kept);
  memset((char*)q + kept, 0, total - kept);
  freezero(p, old_total);
  return q;
}

MI_NAMES_END

#endif

#if defined(MI_MALLOC_OVERRIDE) && MI_SYSTEM_FREEBSD

// The functions of <malloc_np.h> whose blocks free() takes.  mallctl and malloc_stats_print are left to libc: they tell of its own
// arenas, which are empty then.
  #define BSD_ALIGN(flags) ((size_t)1 << ((unsigned)(flags) & 0x3F)) // MALLOCX_LG_ALIGN, MALLOCX_ALIGN
  #define BSD_ZERO         0x40                                      // MALLOCX_ZERO; what lies higher is about arenas

MI_NAMES_BEGIN

MI_NAMES_PUBLIC void* mallocx(size_t size, int flags) {
  return (flags & BSD_ZERO) != 0 ? mi_zalloc_aligned(size, BSD_ALIGN(flags))
                                 : mi_malloc_aligned(size, BSD_ALIGN(flags));
}

MI_NAMES_PUBLIC void* rallocx(void* p, size_t size, int flags) {
  return (flags & BSD_ZERO) != 0 ? mi_rezalloc_aligned(p, size, BSD_ALIGN(flags))
                                 : mi_realloc_aligned(p, size, BSD_ALIGN(flags));
}

// Enlarges where it is, or not at all; returns the size that the block has then.
MI_NAMES_PUBLIC size_t xallocx(void* p, size_t size, size_t extra, int flags) {
  return mi_usable_size(p);
}

MI_NAMES_PUBLIC size_t sallocx(const void* p, int flags) {
  return mi_usable_size(p);
}

MI_NAMES_PUBLIC void dallocx(void* p, int flags) {
  mi_free(p);
}

MI_NAMES_PUBLIC void sdallocx(void* p, size_t size, int flags) {
  mi_free(p);
}

MI_NAMES_PUBLIC size_t nallocx(size_t size, int flags) {
  size_t align = BSD_ALIGN(flags);
  return mi_good_size(size < align ? align : size);
}

MI_NAMES_END

#endif
