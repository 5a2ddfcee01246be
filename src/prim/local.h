// Thread-local variables.  Layer: prim.
//
//   extern MI_LOCAL(type, name);           in a header
//   MI_LOCAL(type, name) = initial;        in its source; or with `static`
//   mi_local(name)                         that of the calling thread, as a variable
//
// Using one must not allocate: malloc does it first of all.
#pragma once

#include "../base/compiler.h"
#include "system.h"

#if MI_SYSTEM_WINDOWS && defined(__GNUC__) && !defined(__clang__)

// GCC emulates them there, and allocates.  So they are put where the linker collects what the system copies for each thread
// (the name must come before .tls$ZZZ, its end), and are found as other compilers find them.
extern unsigned int _tls_index;

static mi_always_inline char* _mi_local_base(void) {
  char** bases;
  #if defined(__x86_64__)
  __asm__("movq %%gs:0x58, %0" : "=r"(bases));
  #elif defined(__i386__)
  __asm__("movl %%fs:0x2C, %0" : "=r"(bases));
  #else
    #error "GCC has no usable thread-local variables for Windows on this processor: build with clang"
  #endif
  return bases[_tls_index];
}

  #define MI_LOCAL(type, name) __attribute__((section(".tls$MI"))) type name
  #define mi_local(name) \
    (*__extension__({ \
      __typeof__(name)* local_; \
      __asm__("lea %c1@secrel32(%2), %0" : "=r"(local_) : "i"(&name), "r"(_mi_local_base())); \
      local_; \
    }))

#elif defined(_MSC_VER)

  #define MI_LOCAL(type, name) __declspec(thread) type name
  #define mi_local(name)       name

#else

  // Initial-exec (set by the build) makes them one load away; see docs/design/heap.md.
  #if defined(__cplusplus)
    #define MI_LOCAL(type, name) thread_local type name
  #else
    #define MI_LOCAL(type, name) _Thread_local type name
  #endif
  #define mi_local(name) name

#endif
