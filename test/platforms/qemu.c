// In each test program that runs under QEMU's user-mode emulation: what QEMU (7.2) does wrong is put right.
//
// Memory whose contents mremap moves away with MREMAP_DONTUNMAP stays mapped, but QEMU takes it for unmapped.  Instructions that
// it emulates with a look at its tables then end the program (a memset of 2 MiB there on s390x, POWER and ARM 32; any access, where
// memory has tags), and MADV_DONTNEED does nothing there.  A program of ten lines that maps 2 MiB, moves their contents away, and
// clears them, fails.  A new mapping there, as empty as the old one is, sets the tables right.
#define _GNU_SOURCE
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if !defined(MREMAP_DONTUNMAP)
  #define MREMAP_DONTUNMAP 4
#endif
#define WITH_TAGS 0x20 // PROT_MTE

void* mremap(void* start, size_t size, size_t new_size, int flags, ...) {
  va_list args;
  va_start(args, flags);
  void* to = (flags & MREMAP_FIXED) != 0 ? va_arg(args, void*) : NULL;
  va_end(args);
  void* p = (void*)syscall(SYS_mremap, start, size, new_size, flags, to);
  if (p == MAP_FAILED || (flags & MREMAP_DONTUNMAP) == 0) return p;
  const int flags_again = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  if (!MI_TEST_TAGS || mmap(start, size, PROT_READ | PROT_WRITE | WITH_TAGS, flags_again, -1, 0) == MAP_FAILED)
    mmap(start, size, PROT_READ | PROT_WRITE, flags_again, -1, 0);
  return p;
}
