// Declarations for compiling only: test/stubs/README.md.
#pragma once
#include <sys/types.h>
#define PROT_NONE   0
#define PROT_READ   1
#define PROT_WRITE  2
#define MAP_PRIVATE 0x0002
#define MAP_FIXED   0x0010
#define MAP_FAILED  ((void*)-1)
#if defined(__linux__)
  #define MAP_ANONYMOUS   0x20
  #define MAP_ANON        MAP_ANONYMOUS
  #define MAP_NORESERVE   0x4000
  #define MAP_HUGETLB     0x40000
  #define MADV_NORMAL     0
  #define MADV_DONTNEED   4
  #define MADV_HUGEPAGE   14
  #define MADV_NOHUGEPAGE 15
  #define MREMAP_MAYMOVE  1
  #define MREMAP_FIXED    2
void* mremap(void*, size_t, size_t, int, ...);
int   munlock(const void*, size_t);
#elif defined(__HAIKU__)
  #define MAP_ANONYMOUS 0x08
  #define MAP_ANON      MAP_ANONYMOUS
  #define MAP_NORESERVE 0x10
  #define MADV_FREE     5
#else
  #define MAP_ANON  0x1000
  #define MADV_FREE 5
  #if defined(__DragonFly__)
    #define MAP_TRYFIXED 0x10000
  #endif
#endif
void* mmap(void*, size_t, int, int, int, off_t);
int   munmap(void*, size_t);
int   mprotect(void*, size_t, int);
int   madvise(void*, size_t, int);
#define MAP_SHARED 0x0001
