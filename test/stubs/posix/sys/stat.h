// Declarations for compiling only: test/stubs/README.md.
#pragma once
#include <sys/types.h>
struct stat {
  mode_t st_mode;
  off_t  st_size;
};
#define S_ISREG(mode) (((mode) & 0170000) == 0100000)
int fstat(int, struct stat*);
