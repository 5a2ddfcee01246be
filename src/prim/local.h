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

// Does the compiler's way allocate, or is that unknown?  Then the variables are found by a key of thread-specific data (local.c).
#if !defined(MI_LOCAL_BY_KEY)
  #if MI_SYSTEM_DARWIN || MI_SYSTEM_OPENBSD || MI_SYSTEM_HAIKU || (MI_SYSTEM_ANDROID && __ANDROID_API__ < 29)
    #define MI_LOCAL_BY_KEY 1
  #else
    #define MI_LOCAL_BY_KEY 0
  #endif
#endif

// Emscripten allocates them with malloc, and the thread itself frees them before it is done with malloc.  So they are found by a
// variable of the worker that runs the thread (local.c).
#define MI_LOCAL_BY_WORKER (MI_SYSTEM_EMSCRIPTEN && MI_PRIM_THREADS)

// In both cases each thread has a copy of a section that has the variables as they are declared.
#define MI_LOCAL_COPIED (MI_LOCAL_BY_KEY || MI_LOCAL_BY_WORKER)

#if MI_SYSTEM_WINDOWS && defined(__MINGW32__) && (defined(__x86_64__) || defined(__i386__))

// GCC emulates them there, and allocates.  So they are put where the linker collects what the system copies for each thread
// (the name must come before .tls$ZZZ, its end), and are found by the distance of the copy.  Their offset in the section, as
// clang has it in its code, is no constant in a module that the system has moved: linkers of binutils 2.40 let it be moved too.
extern unsigned int _tls_index;
extern char*        _tls_start; // the beginning of the section

static mi_always_inline uintptr_t _mi_local_distance(void) {
  char** bases;
  #if defined(__x86_64__)
  __asm__("movq %%gs:0x58, %0" : "=r"(bases));
  #else
  __asm__("movl %%fs:0x2C, %0" : "=r"(bases));
  #endif
  return (uintptr_t)bases[_tls_index] - (uintptr_t)&_tls_start;
}

  #define MI_LOCAL(type, name) __attribute__((section(".tls$MI"))) type name
  #define mi_local(name)       (*(__typeof__(name)*)((uintptr_t)&(name) + _mi_local_distance()))

#elif MI_SYSTEM_WINDOWS && defined(__GNUC__) && !defined(__clang__)
  #error "GCC has no usable thread-local variables for Windows on this processor: build with clang"
#elif MI_LOCAL_BY_KEY

  #include <pthread.h>

  #include "../base/atomic.h"

  #if defined(__APPLE__)
    #define MI_LOCAL_SECTION "__DATA,__mi_local"
  #else
    #define MI_LOCAL_SECTION "mi_local"
  #endif

extern mi_atomic(uintptr_t) _mi_local_key;    // + 1; 0: there is none yet
extern mi_atomic(uintptr_t) _mi_local_direct; // the same, where the system's place for its values is known

mi_cold uintptr_t _mi_local_make(void);

  // Where Darwin keeps the value of a key: its own libraries are compiled with that.  local.c sees whether it holds.
  #if defined(__APPLE__) && (defined(__x86_64__) || defined(__aarch64__))
    #define MI_LOCAL_HAS_DIRECT 1
static mi_always_inline uintptr_t _mi_local_read(uintptr_t key) {
  uintptr_t value;
    #if defined(__x86_64__)
  __asm__ volatile("movq %%gs:(,%1,8), %0" : "=r"(value) : "r"(key));
    #else
  __asm__ volatile("mrs %0, tpidrro_el0" : "=r"(value));
  value = ((const uintptr_t*)(value & ~(uintptr_t)7))[key];
    #endif
  return value;
}
  #else
    #define MI_LOCAL_HAS_DIRECT 0
static mi_always_inline uintptr_t _mi_local_read(uintptr_t key) {
  return (uintptr_t)pthread_getspecific((pthread_key_t)key);
}
  #endif

// How far the calling thread's copy is from the section: what the key holds.
static mi_always_inline uintptr_t _mi_local_distance(void) {
  uintptr_t key = mi_load_relaxed(MI_LOCAL_HAS_DIRECT ? &_mi_local_direct : &_mi_local_key);
  uintptr_t distance = (mi_likely(key != 0) ? _mi_local_read(key - 1) : 0);
  return mi_likely(distance != 0) ? distance : _mi_local_make();
}

  #define MI_LOCAL(type, name) __attribute__((section(MI_LOCAL_SECTION))) type name
  #define mi_local(name)       (*(__typeof__(name)*)((uintptr_t)&(name) + _mi_local_distance()))

#elif MI_LOCAL_BY_WORKER

  #define MI_LOCAL_SECTION "mi_local"

  // A variable of the machine, of which each worker has one: how far the copy of the thread that it runs is from the section.
  // 0: the thread has none yet, or has ended.
  #if defined(__wasm64__)
__asm__(".globaltype _mi_local_worker, i64");
  #else
__asm__(".globaltype _mi_local_worker, i32");
  #endif

mi_cold uintptr_t _mi_local_make(void);

static mi_always_inline uintptr_t _mi_local_distance(void) {
  uintptr_t distance;
  __asm__ volatile("global.get _mi_local_worker\n\tlocal.set %0" : "=r"(distance));
  return mi_likely(distance != 0) ? distance : _mi_local_make();
}

  #define MI_LOCAL(type, name) __attribute__((section(MI_LOCAL_SECTION))) type name
  #define mi_local(name)       (*(__typeof__(name)*)((uintptr_t)&(name) + _mi_local_distance()))

#elif defined(_MSC_VER)

  // Not __declspec(thread): with that, clang asks before each use whether a constructor is still to run.
  #define MI_LOCAL(type, name) __thread type name
  #define mi_local(name)       name

#else

  // Initial-exec (set by the build) makes them one load away; see docs/design/heap.md.  In code for shared libraries it has to be
  // set here if a resolver uses them (heap/thread.c): while the library is relocated, what finds others cannot be called.
  #if MI_HAS_IFUNC && defined(__PIC__) && !defined(__PIE__)
    #define MI_LOCAL_MODEL __attribute__((tls_model("initial-exec")))
  #else
    #define MI_LOCAL_MODEL
  #endif
  #if defined(__cplusplus)
    #define MI_LOCAL(type, name) MI_LOCAL_MODEL thread_local type name
  #else
    #define MI_LOCAL(type, name) MI_LOCAL_MODEL _Thread_local type name
  #endif
  #define mi_local(name) name

#endif

// The thread has no theap any more, and never will: what it still has is given back.  And in the child of a fork.
#if MI_LOCAL_COPIED
void _mi_local_end(void);
void _mi_local_after_fork(void);
#else
static inline void _mi_local_end(void) {}
static inline void _mi_local_after_fork(void) {}
#endif
