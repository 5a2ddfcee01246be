// malloc and its relatives under their standard names; operator new and delete are in operators.c.  Layer: api.
//
// Every entry of libc that allocates must be here, or a block of one allocator would reach the other's free: the list is
// held against the exported symbols by test/override.
#include <errno.h>
#include <string.h>

#include "../arena/purge.h"
#include "../prim/prim.h"
#include "../support/message.h"
#include "../support/stat.h"
#include "alloc.h"
#include "names.h"

#if defined(MI_MALLOC_OVERRIDE)

  #define MI_PUBLIC __attribute__((visibility("default"), used))

MI_NAMES_BEGIN

// clang-format off

// ---- C --------------------------------------------------------------------------------------------------------------

MI_PUBLIC void*  malloc(size_t size) mi_attr_noexcept                       MI_NAMES_FORWARD(mi_malloc, size)
MI_PUBLIC void*  calloc(size_t count, size_t size) mi_attr_noexcept         MI_NAMES_FORWARD(mi_calloc, count, size)
MI_PUBLIC void*  realloc(void* p, size_t size) mi_attr_noexcept             MI_NAMES_FORWARD(mi_realloc, p, size)
MI_PUBLIC void   free(void* p) mi_attr_noexcept                             MI_NAMES_FORWARD(mi_free, p)
MI_PUBLIC void*  aligned_alloc(size_t align, size_t size) mi_attr_noexcept  MI_NAMES_FORWARD(mi_aligned_alloc, align, size)
MI_PUBLIC void   free_sized(void* p, size_t size) mi_attr_noexcept          MI_NAMES_FORWARD(mi_free_size, p, size)
MI_PUBLIC void   free_aligned_sized(void* p, size_t align, size_t size) mi_attr_noexcept { mi_free_size_aligned(p, size, align); }

// ---- POSIX, BSD, glibc ----------------------------------------------------------------------------------------------

MI_PUBLIC int    posix_memalign(void** p, size_t align, size_t size)        MI_NAMES_FORWARD(mi_posix_memalign, p, align, size)
MI_PUBLIC void*  memalign(size_t align, size_t size) mi_attr_noexcept       MI_NAMES_FORWARD(mi_memalign, align, size)
MI_PUBLIC void*  valloc(size_t size) mi_attr_noexcept                       MI_NAMES_FORWARD(mi_valloc, size)
MI_PUBLIC void*  pvalloc(size_t size) mi_attr_noexcept                      MI_NAMES_FORWARD(mi_pvalloc, size)
MI_PUBLIC void   cfree(void* p) mi_attr_noexcept                            MI_NAMES_FORWARD(mi_free, p)
MI_PUBLIC void   vfree(void* p) mi_attr_noexcept                            MI_NAMES_FORWARD(mi_free, p)
MI_PUBLIC void*  reallocf(void* p, size_t size) mi_attr_noexcept            MI_NAMES_FORWARD(mi_reallocf, p, size)
MI_PUBLIC mi_weak int reallocarr(void* p, size_t count, size_t size) mi_attr_noexcept MI_NAMES_FORWARD(mi_reallocarr, p, count, size)
MI_PUBLIC size_t malloc_size(const void* p) mi_attr_noexcept                MI_NAMES_FORWARD(mi_usable_size, p)
MI_PUBLIC size_t malloc_good_size(size_t size) mi_attr_noexcept             MI_NAMES_FORWARD(mi_good_size, size)
#if defined(__ANDROID__)
MI_PUBLIC size_t malloc_usable_size(const void* p) mi_attr_noexcept         { return mi_usable_size(p); }
#else
MI_PUBLIC size_t malloc_usable_size(void* p) mi_attr_noexcept               { return mi_usable_size(p); }
#endif
MI_PUBLIC void*  _aligned_malloc(size_t size, size_t align) mi_attr_noexcept MI_NAMES_FORWARD(mi_malloc_aligned, size, align)

// A program may have a malloc and free of its own but none of these (Chromium does); then what they return must come from
// the program's malloc, for it goes to the program's free.  So they ask for the malloc that everybody sees, which is ours
// unless there is such a program.  (A reference that the linker may bind to another definition: no -Bsymbolic.)
extern void* override_visible_malloc(size_t size) __asm__("malloc");
extern void* override_visible_realloc(void* p, size_t size) __asm__("realloc");

static char* override_copy(const char* s, size_t length) {
  char* t = (char*)override_visible_malloc(length + 1);
  if (t == NULL) return NULL;
  memcpy(t, s, length);
  t[length] = 0;
  return t;
}

#if !defined(strdup)
MI_PUBLIC char*  strdup(const char* s) mi_attr_noexcept                     { return override_copy(s, strlen(s)); }
#endif
#if !defined(strndup)
MI_PUBLIC char*  strndup(const char* s, size_t n) mi_attr_noexcept          { return override_copy(s, strnlen(s, n)); }
#endif
MI_PUBLIC void*  reallocarray(void* p, size_t count, size_t size) mi_attr_noexcept {
  size_t total;
  return _mi_alloc_count(count, size, &total) ? override_visible_realloc(p, total) : NULL; // errno ENOMEM, as libc's
}

// ---- libc's own names for them --------------------------------------------------------------------------------------

MI_PUBLIC int    __posix_memalign(void** p, size_t align, size_t size)      MI_NAMES_FORWARD(mi_posix_memalign, p, align, size)
MI_PUBLIC void*  __libc_malloc(size_t size) mi_attr_noexcept                MI_NAMES_FORWARD(mi_malloc, size)
MI_PUBLIC void*  __libc_calloc(size_t count, size_t size) mi_attr_noexcept  MI_NAMES_FORWARD(mi_calloc, count, size)
MI_PUBLIC void*  __libc_realloc(void* p, size_t size) mi_attr_noexcept      MI_NAMES_FORWARD(mi_realloc, p, size)
MI_PUBLIC void   __libc_free(void* p) mi_attr_noexcept                      MI_NAMES_FORWARD(mi_free, p)
MI_PUBLIC void   __libc_cfree(void* p) mi_attr_noexcept                     MI_NAMES_FORWARD(mi_free, p)
MI_PUBLIC void*  __libc_memalign(size_t align, size_t size) mi_attr_noexcept MI_NAMES_FORWARD(mi_memalign, align, size)
MI_PUBLIC void*  __libc_valloc(size_t size) mi_attr_noexcept                MI_NAMES_FORWARD(mi_valloc, size)
MI_PUBLIC void*  __libc_pvalloc(size_t size) mi_attr_noexcept               MI_NAMES_FORWARD(mi_pvalloc, size)
// clang-format on

// ---- glibc's extras: without them a program would ask an allocator that it does not use -----------------------------

  #if defined(__GLIBC__)

    #include <malloc.h>
    #include <stdio.h>

    // What has gone back since the start.
    static int64_t override_returned(void) {
  return mi_load_relaxed(&_mi_prim_calls.n_purged) + mi_load_relaxed(&_mi_prim_calls.n_discarded);
}

// As glibc has it: `pad` bytes that are free stay, as far as there are so many, and a purge may take up to a chunk more than it
// has to.
MI_PUBLIC int malloc_trim(size_t pad) mi_attr_noexcept {
  int64_t before = override_returned();
  size_t  stay = (pad == 0 ? 0 : mi_div_up(mi_min(pad, SIZE_MAX / 2), MI_SLICE_SIZE) + MI_CHUNK_SLICES - 1);
  mi_collect(false);
  size_t given = _mi_purge_to(stay);
  return given > 0 || override_returned() != before ? 1 : 0;
}

// glibc's parameters tune what there is none of here.  Those that it has are accepted without effect, so that programs which
// ask for them go on; verbose output names them.
MI_PUBLIC int mallopt(int param, int value) mi_attr_noexcept {
  static const int known[] = {M_MXFAST,  M_TRIM_THRESHOLD, M_TOP_PAD,    M_MMAP_THRESHOLD, M_MMAP_MAX,
                              M_PERTURB, M_CHECK_ACTION,   M_ARENA_TEST, M_ARENA_MAX};
  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
    if (known[i] != param) continue;
    _mi_message_print(1, "mallopt(%d, %d) has no effect here.\n", param, value);
    return 1;
  }
  return 0;
}

static size_t override_bytes(mi_live_count_t* count) {
  int64_t n = mi_load_relaxed(&count->current);
  return n < 0 ? 0 : (size_t)n;
}

    #if __GLIBC_PREREQ(2, 33)
MI_PUBLIC struct mallinfo2 mallinfo2(void) mi_attr_noexcept {
  struct mallinfo2 info = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  size_t           pages = override_bytes(&_mi_stat_live.page_committed);
  size_t           large = override_bytes(&_mi_stat_live.malloc_huge);
  info.arena = pages;
  info.hblkhd = large;
  info.uordblks = pages + large;
  info.fordblks = _mi_chunk_purgeable() * MI_SLICE_SIZE;
  info.keepcost = info.fordblks;
  return info;
}
    #endif

MI_PUBLIC struct mallinfo mallinfo(void) mi_attr_noexcept {
  struct mallinfo info = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  info.arena = (int)override_bytes(&_mi_stat_live.page_committed);
  info.hblkhd = (int)override_bytes(&_mi_stat_live.malloc_huge);
  info.uordblks = info.arena + info.hblkhd;
  info.fordblks = info.keepcost = (int)(_mi_chunk_purgeable() * MI_SLICE_SIZE);
  return info;
}

MI_PUBLIC void malloc_stats(void) mi_attr_noexcept {
  mi_stats_print(NULL);
}

MI_PUBLIC int malloc_info(int options, FILE* file) mi_attr_noexcept {
  if (options != 0 || file == NULL) {
    errno = EINVAL;
    return -1;
  }
  char* json = mi_stats_get_json(0, NULL);
  if (json == NULL) return -1;
  fputs("<malloc version=\"1\"><statistics format=\"json\"><![CDATA[\n", file);
  fputs(json, file);
  fputs("]]></statistics></malloc>\n", file);
  mi_free(json);
  return 0;
}

  #endif

MI_NAMES_END

#endif
