// What tools that watch memory are told: Valgrind's memcheck, the address sanitizer, and Event Tracing for Windows.  Layer: base.
//
// To them a block is [p, p + size) from mi_track_block to mi_track_unblock; all other memory of the library is out of bounds,
// for the library as well.  What it writes there is stored and loaded by the two functions below, which no tool reports,
// and which leave the tool's state of the place as it is.  In other builds all of this is nothing.
//
// Memcheck searches memory for pointers to blocks to find those that are lost.  The library's own pointers know all
// blocks, so it must not look there: see _mi_prim_hide.  docs/design/tools.md has the rest.
#pragma once

#include <string.h>

#include "mode.h"

#if MI_TRACK_VALGRIND
  #include <valgrind/memcheck.h>
  #include <valgrind/valgrind.h>

  // The program has a block from now on, or not any more (the tool reports it if it had none; _freed: the library has found
  // that it was one), or one of another size.
  #define mi_track_block(p, size, is_zero)   VALGRIND_MALLOCLIKE_BLOCK(p, size, 0, is_zero)
  #define mi_track_unblock(p)                VALGRIND_FREELIKE_BLOCK(p, 0)
  #define mi_track_freed(p, size)            ((void)sizeof(size))
  #define mi_track_resize(p, size, new_size) VALGRIND_RESIZEINPLACE_BLOCK(p, size, new_size, 0)
  // Memory that is going to be read before it is written, or not; or out of bounds again.
  #define mi_track_readable(p, n)            ((void)VALGRIND_MAKE_MEM_DEFINED(p, n))
  #define mi_track_writable(p, n)            ((void)VALGRIND_MAKE_MEM_UNDEFINED(p, n))
  #define mi_track_closed(p, n)              ((void)VALGRIND_MAKE_MEM_NOACCESS(p, n))
  // A region is going to be used, or is not any more.
  #define mi_track_reserved(p, n)            ((void)0)
  #define mi_track_released(p, n)            ((void)0)
  // After an error that the library reports and the tool does not.
  #define mi_track_report(kind)              ((void)0)
  // Is the tool there?  Otherwise the program runs as it is.
  #define mi_track_is_on()                   (RUNNING_ON_VALGRIND != 0)

#elif MI_TRACK_ASAN
  #include <sanitizer/asan_interface.h>
  #include <sanitizer/common_interface_defs.h>
  #include <sanitizer/lsan_interface.h>

  #define mi_track_block(p, size, is_zero) ASAN_UNPOISON_MEMORY_REGION(p, size)
  #define mi_track_unblock(p)              ((void)(p))
  #define mi_track_freed(p, size)          ((void)sizeof(size))
  // Of the new size what is added is opened; what it no longer has the caller closes.
  #define mi_track_resize(p, size, new_size) \
    ((new_size) > (size) ? ASAN_UNPOISON_MEMORY_REGION((char*)(p) + (size), (new_size) - (size)) : (void)0)
  #define mi_track_readable(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
  #define mi_track_writable(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
  #define mi_track_closed(p, n)   ASAN_POISON_MEMORY_REGION(p, n)
  // Blocks of other allocators may be known by pointers in ours alone.
  #define mi_track_reserved(p, n) __lsan_register_root_region(p, n)
  #define mi_track_released(p, n) __lsan_unregister_root_region(p, n)
  // The sanitizer looks at accesses; frees of what is no block are found by us, and it says where.
  #define mi_track_report(kind)   (__sanitizer_print_stack_trace(), __sanitizer_report_error_summary(kind))
  #define mi_track_is_on()        true

#else
  #if !MI_TRACK_ETW // those are in prim/windows_etw.h
    #define mi_track_block(p, size, is_zero)   ((void)0)
    #define mi_track_freed(p, size)            ((void)sizeof(size))
    #define mi_track_resize(p, size, new_size) ((void)0)
  #endif
  #define mi_track_unblock(p)     ((void)0)
  #define mi_track_readable(p, n) ((void)0)
  #define mi_track_writable(p, n) ((void)0)
  #define mi_track_closed(p, n)   ((void)0)
  #define mi_track_reserved(p, n) ((void)0)
  #define mi_track_released(p, n) ((void)0)
  #define mi_track_report(kind)   ((void)0)
  #define mi_track_is_on()        false
#endif

// ---- the library's words in closed memory ----------------------------------------------------------------------------

#if MI_TRACK_VALGRIND

static inline uint64_t mi_track_load(const void* at) {
  uint64_t word;
  VALGRIND_DISABLE_ERROR_REPORTING;
  memcpy(&word, at, sizeof(word));
  VALGRIND_ENABLE_ERROR_REPORTING;
  mi_track_readable(&word, sizeof(word));
  return word;
}

static inline void mi_track_store(void* at, uint64_t word) {
  VALGRIND_DISABLE_ERROR_REPORTING;
  memcpy(at, &word, sizeof(word));
  VALGRIND_ENABLE_ERROR_REPORTING;
}

#elif MI_TRACK_ASAN

// Not a call of memcpy, which the sanitizer looks at, whoever calls it.
typedef struct __attribute__((packed, may_alias)) mi_track_word_s {
  uint64_t word;
} mi_track_word_t;

__attribute__((no_sanitize_address)) mi_unused static mi_noinline uint64_t mi_track_load(const void* at) {
  return ((const mi_track_word_t*)at)->word;
}

__attribute__((no_sanitize_address)) mi_unused static mi_noinline void mi_track_store(void* at, uint64_t word) {
  ((mi_track_word_t*)at)->word = word;
}

#else

static mi_always_inline uint64_t mi_track_load(const void* at) {
  uint64_t word;
  memcpy(&word, at, sizeof(word));
  return word;
}

static mi_always_inline void mi_track_store(void* at, uint64_t word) {
  memcpy(at, &word, sizeof(word));
}

#endif
