// malloc and its relatives under their standard names; operator new and delete are in operators.c, what only glibc has in
// glibc.c.  Layer: override.
//
// Every entry of libc that allocates must be here, or a block of one allocator would reach the other's free: the list is
// held against the exported symbols by test/override.
#include <string.h>

#include "../api/alloc.h"
#include "../api/names.h"
#include "../prim/system.h"

#if defined(MI_MALLOC_OVERRIDE) && !MI_SYSTEM_DARWIN

  // As the C library's own headers declare them to C++.
  #if defined(__GLIBC__)
    #define LIBC_NOEXCEPT mi_attr_noexcept
  #else
    #define LIBC_NOEXCEPT
  #endif

MI_NAMES_BEGIN

// clang-format off

// ---- C --------------------------------------------------------------------------------------------------------------

MI_NAMES_PUBLIC void*  malloc(size_t size) LIBC_NOEXCEPT                       MI_NAMES_FORWARD(mi_malloc, size)
MI_NAMES_PUBLIC void*  calloc(size_t count, size_t size) LIBC_NOEXCEPT         MI_NAMES_FORWARD(mi_calloc, count, size)
MI_NAMES_PUBLIC void*  realloc(void* p, size_t size) LIBC_NOEXCEPT             MI_NAMES_FORWARD(mi_realloc, p, size)
MI_NAMES_PUBLIC void   free(void* p) LIBC_NOEXCEPT                             MI_NAMES_FORWARD(mi_free, p)
MI_NAMES_PUBLIC void*  aligned_alloc(size_t align, size_t size) LIBC_NOEXCEPT  MI_NAMES_FORWARD(mi_aligned_alloc, align, size)
MI_NAMES_PUBLIC void   free_sized(void* p, size_t size) LIBC_NOEXCEPT          MI_NAMES_FORWARD(mi_free_size, p, size)
MI_NAMES_PUBLIC void   free_aligned_sized(void* p, size_t align, size_t size) LIBC_NOEXCEPT { mi_free_size_aligned(p, size, align); }

// ---- POSIX, BSD, glibc ----------------------------------------------------------------------------------------------

MI_NAMES_PUBLIC int    posix_memalign(void** p, size_t align, size_t size)        MI_NAMES_FORWARD(mi_posix_memalign, p, align, size)
MI_NAMES_PUBLIC void*  memalign(size_t align, size_t size) LIBC_NOEXCEPT       MI_NAMES_FORWARD(mi_memalign, align, size)
MI_NAMES_PUBLIC void*  valloc(size_t size) LIBC_NOEXCEPT                       MI_NAMES_FORWARD(mi_valloc, size)
MI_NAMES_PUBLIC void*  pvalloc(size_t size) LIBC_NOEXCEPT                      MI_NAMES_FORWARD(mi_pvalloc, size)
MI_NAMES_PUBLIC void   cfree(void* p) LIBC_NOEXCEPT                            MI_NAMES_FORWARD(mi_free, p)
MI_NAMES_PUBLIC void   vfree(void* p) LIBC_NOEXCEPT                            MI_NAMES_FORWARD(mi_free, p)
MI_NAMES_PUBLIC void*  reallocf(void* p, size_t size) LIBC_NOEXCEPT            MI_NAMES_FORWARD(mi_reallocf, p, size)
MI_NAMES_PUBLIC mi_weak int reallocarr(void* p, size_t count, size_t size) LIBC_NOEXCEPT MI_NAMES_FORWARD(mi_reallocarr, p, count, size)
MI_NAMES_PUBLIC size_t malloc_size(const void* p) LIBC_NOEXCEPT                MI_NAMES_FORWARD(mi_usable_size, p)
MI_NAMES_PUBLIC size_t malloc_good_size(size_t size) LIBC_NOEXCEPT             MI_NAMES_FORWARD(mi_good_size, size)
#if defined(__ANDROID__) || MI_SYSTEM_FREEBSD
MI_NAMES_PUBLIC size_t malloc_usable_size(const void* p) LIBC_NOEXCEPT         { return mi_usable_size(p); }
#else
MI_NAMES_PUBLIC size_t malloc_usable_size(void* p) LIBC_NOEXCEPT               { return mi_usable_size(p); }
#endif
MI_NAMES_PUBLIC void*  _aligned_malloc(size_t size, size_t align) LIBC_NOEXCEPT MI_NAMES_FORWARD(mi_malloc_aligned, size, align)

// A program may have a malloc and free of its own but none of these (Chromium does); then what they return must come from
// the program's malloc, for it goes to the program's free.  So they ask for the malloc that everybody sees, which is ours
// unless there is such a program.  (A reference that the linker may bind to another definition: no -Bsymbolic.)
extern void* libc_visible_malloc(size_t size) __asm__("malloc");
extern void* libc_visible_realloc(void* p, size_t size) __asm__("realloc");

static char* libc_copy(const char* s, size_t length) {
  char* t = (char*)libc_visible_malloc(length + 1);
  if (t == NULL) return NULL;
  memcpy(t, s, length);
  t[length] = 0;
  return t;
}

#if !defined(strdup)
MI_NAMES_PUBLIC char*  strdup(const char* s) LIBC_NOEXCEPT                     { return libc_copy(s, strlen(s)); }
#endif
#if !defined(strndup)
MI_NAMES_PUBLIC char*  strndup(const char* s, size_t n) LIBC_NOEXCEPT          { return libc_copy(s, strnlen(s, n)); }
#endif
MI_NAMES_PUBLIC void*  reallocarray(void* p, size_t count, size_t size) LIBC_NOEXCEPT {
  size_t total;
  return _mi_alloc_count(count, size, &total) ? libc_visible_realloc(p, total) : NULL; // errno ENOMEM, as libc's
}

// ---- libc's own names for them --------------------------------------------------------------------------------------

MI_NAMES_PUBLIC int    __posix_memalign(void** p, size_t align, size_t size)      MI_NAMES_FORWARD(mi_posix_memalign, p, align, size)
MI_NAMES_PUBLIC void*  __libc_malloc(size_t size) LIBC_NOEXCEPT                MI_NAMES_FORWARD(mi_malloc, size)
MI_NAMES_PUBLIC void*  __libc_calloc(size_t count, size_t size) LIBC_NOEXCEPT  MI_NAMES_FORWARD(mi_calloc, count, size)
MI_NAMES_PUBLIC void*  __libc_realloc(void* p, size_t size) LIBC_NOEXCEPT      MI_NAMES_FORWARD(mi_realloc, p, size)
MI_NAMES_PUBLIC void   __libc_free(void* p) LIBC_NOEXCEPT                      MI_NAMES_FORWARD(mi_free, p)
MI_NAMES_PUBLIC void   __libc_cfree(void* p) LIBC_NOEXCEPT                     MI_NAMES_FORWARD(mi_free, p)
MI_NAMES_PUBLIC void*  __libc_memalign(size_t align, size_t size) LIBC_NOEXCEPT MI_NAMES_FORWARD(mi_memalign, align, size)
MI_NAMES_PUBLIC void*  __libc_valloc(size_t size) LIBC_NOEXCEPT                MI_NAMES_FORWARD(mi_valloc, size)
MI_NAMES_PUBLIC void*  __libc_pvalloc(size_t size) LIBC_NOEXCEPT               MI_NAMES_FORWARD(mi_pvalloc, size)

// Emscripten's own parts take blocks by one name and free them by the other.
#if defined(__EMSCRIPTEN__)
MI_NAMES_PUBLIC void*  emscripten_builtin_malloc(size_t size) LIBC_NOEXCEPT    MI_NAMES_FORWARD(mi_malloc, size)
MI_NAMES_PUBLIC void*  emscripten_builtin_memalign(size_t align, size_t size) LIBC_NOEXCEPT MI_NAMES_FORWARD(mi_memalign, align, size)
MI_NAMES_PUBLIC void   emscripten_builtin_free(void* p) LIBC_NOEXCEPT          MI_NAMES_FORWARD(mi_free, p)
#endif
    // clang-format on

    MI_NAMES_END

#endif
