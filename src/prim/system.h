// Which system the library is built for.  Layer: prim.
//
// src/static.c and cmake/sources.cmake list the sources of each system.  A program may bring its own: with MI_PRIM_CUSTOM it
// defines five functions of prim.h and whichever of the others it wants to (docs/design/porting.md).
#pragma once

#if defined(MI_PRIM_CUSTOM)
  #define MI_SYSTEM_CUSTOM 1
#elif defined(__EMSCRIPTEN__)
  #define MI_SYSTEM_EMSCRIPTEN 1
#elif defined(__wasi__)
  #define MI_SYSTEM_WASI 1
#elif defined(_WIN32)
  #define MI_SYSTEM_WINDOWS 1
#elif defined(__APPLE__)
  #define MI_SYSTEM_DARWIN 1
#elif defined(__linux__) // Android too
  #define MI_SYSTEM_LINUX 1
#elif defined(__FreeBSD__)
  #define MI_SYSTEM_FREEBSD 1
#elif defined(__NetBSD__)
  #define MI_SYSTEM_NETBSD 1
#elif defined(__OpenBSD__)
  #define MI_SYSTEM_OPENBSD 1
#elif defined(__DragonFly__)
  #define MI_SYSTEM_DRAGONFLY 1
#elif defined(__HAIKU__)
  #define MI_SYSTEM_HAIKU 1
#else
  #error "mimalloc does not know this system: define MI_PRIM_CUSTOM and supply the functions of src/prim/prim.h"
#endif

#if !defined(MI_SYSTEM_CUSTOM)
  #define MI_SYSTEM_CUSTOM 0
#endif
#if !defined(MI_SYSTEM_WINDOWS)
  #define MI_SYSTEM_WINDOWS 0
#endif
#if !defined(MI_SYSTEM_DARWIN)
  #define MI_SYSTEM_DARWIN 0
#endif
#if !defined(MI_SYSTEM_LINUX)
  #define MI_SYSTEM_LINUX 0
#endif
#if !defined(MI_SYSTEM_FREEBSD)
  #define MI_SYSTEM_FREEBSD 0
#endif
#if !defined(MI_SYSTEM_NETBSD)
  #define MI_SYSTEM_NETBSD 0
#endif
#if !defined(MI_SYSTEM_OPENBSD)
  #define MI_SYSTEM_OPENBSD 0
#endif
#if !defined(MI_SYSTEM_DRAGONFLY)
  #define MI_SYSTEM_DRAGONFLY 0
#endif
#if !defined(MI_SYSTEM_HAIKU)
  #define MI_SYSTEM_HAIKU 0
#endif
#if !defined(MI_SYSTEM_WASI)
  #define MI_SYSTEM_WASI 0
#endif
#if !defined(MI_SYSTEM_EMSCRIPTEN)
  #define MI_SYSTEM_EMSCRIPTEN 0
#endif

// Can addresses be had without memory behind them, and does memory go back to the system while its addresses stay?
// Elsewhere memory only grows: then prim/grown.c stands between _mi_prim_memory and the functions that are about addresses,
// and the arena layer adds memory piece by piece (arena/window.h).
#if !defined(MI_PRIM_VIRTUAL)
  #define MI_PRIM_VIRTUAL (!MI_SYSTEM_WASI && !MI_SYSTEM_EMSCRIPTEN && !MI_SYSTEM_CUSTOM)
#endif

// Is there more than one thread?
#if !defined(MI_PRIM_THREADS)
  #if MI_SYSTEM_WASI || MI_SYSTEM_CUSTOM
    #define MI_PRIM_THREADS 0
  #elif MI_SYSTEM_EMSCRIPTEN
    #if defined(__EMSCRIPTEN_PTHREADS__)
      #define MI_PRIM_THREADS 1
    #else
      #define MI_PRIM_THREADS 0
    #endif
  #else
    #define MI_PRIM_THREADS 1
  #endif
#endif

// What src/prim/plain.c, grown.c and single.c define, a program that brings its own may define differently, function by function.
#if MI_SYSTEM_CUSTOM
  #define MI_PRIM_DEFAULT mi_weak
#else
  #define MI_PRIM_DEFAULT
#endif

// A Linux with a C library of its own, which lacks some of what others have.
#if defined(__ANDROID__)
  #define MI_SYSTEM_ANDROID 1
#else
  #define MI_SYSTEM_ANDROID 0
#endif

// Those that share the sources bsd.c and unix_*.c; and all that have POSIX threads.
#define MI_SYSTEM_BSD   (MI_SYSTEM_FREEBSD || MI_SYSTEM_NETBSD || MI_SYSTEM_OPENBSD || MI_SYSTEM_DRAGONFLY)
#define MI_SYSTEM_UNIX  (MI_SYSTEM_BSD || MI_SYSTEM_DARWIN || MI_SYSTEM_HAIKU)
#define MI_SYSTEM_POSIX (MI_SYSTEM_UNIX || MI_SYSTEM_LINUX)

// Can a part of what was reserved or mapped be given back, or be mapped anew?
#define MI_PRIM_HAS_PARTS (!MI_SYSTEM_WINDOWS)

// Does a purge map memory anew?  Then it is not for memory that the program has mapped.
#define MI_PRIM_PURGE_MAPS_ANEW MI_SYSTEM_UNIX

// Is memory charged from when it is committed, used or not, and not when it is not?  Then a purge decommits slices, and they
// are committed again before they are used.
#define MI_PRIM_CHARGES MI_SYSTEM_WINDOWS

// Is there an environment in wide characters?
#define MI_PRIM_HAS_WIDE_VARIABLES MI_SYSTEM_WINDOWS

// Must a key of thread-specific data not be made as early as the first allocation?
#define MI_PRIM_KEYS_LATE MI_SYSTEM_EMSCRIPTEN
