// Which system the library is built for.  Layer: prim.
//
// src/static.c and cmake/sources.cmake list the sources of each system.  A program may bring its own: with MI_PRIM_CUSTOM there
// are none, and whoever builds the library defines what prim.h declares (docs/design/prim.md).
#pragma once

#if defined(MI_PRIM_CUSTOM)
  #define MI_SYSTEM_CUSTOM 1
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
#elif defined(__wasm__)
  #define MI_SYSTEM_WASM 1
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
#if !defined(MI_SYSTEM_WASM)
  #define MI_SYSTEM_WASM 0
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

// Is there an environment in wide characters?
#define MI_PRIM_HAS_WIDE_VARIABLES MI_SYSTEM_WINDOWS
