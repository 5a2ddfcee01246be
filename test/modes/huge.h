// Does the system give huge OS pages to a program that asks for them?  Linux.
#pragma once

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "support.h"

// KiB of huge pages that this process has, -1 if the system does not say.
static inline long huge_kib(void) {
  static char text[8192];
  read_file("/proc/self/smaps_rollup", text, sizeof(text));
  const char* line = strstr(text, "AnonHugePages:");
  return line == NULL ? -1 : strtol(line + strlen("AnonHugePages:"), NULL, 10);
}

// Does this process get huge pages when it asks for them?  The system may have none left, or another setting.
static inline bool system_gives_huge_pages(void) {
  const size_t size = 16 * MiB;
  long         before = huge_kib();
  char*        p = (char*)mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED || before < 0) return false;
  bool asked = (madvise(p, size, MADV_HUGEPAGE) == 0);
  memset(p, 1, size);
  bool given = (huge_kib() - before >= 8 * 1024);
  munmap(p, size);
  return asked && given;
}
