// What tests of large blocks ask the system: whether the library can look at them when they are freed (arena/dense.h), and what they cost.
#pragma once

#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#if !defined(MADV_POPULATE_READ)
  #define MADV_POPULATE_READ 22
#endif

// Only where the system says which memory may be read.
static inline bool can_populate_read(void) {
#if defined(__linux__)
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  void*  p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  bool   can = (p != MAP_FAILED && madvise(p, page, MADV_POPULATE_READ) == 0);
  if (p != MAP_FAILED) munmap(p, page);
  return can;
#else
  return false;
#endif
}

// Page faults of this process for which nothing was read from a file.
static inline long minor_faults(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}
