// Declarations for compiling only: test/stubs/README.md.
#pragma once
#define O_RDONLY  0
#define O_CLOEXEC 0x80000
#define AT_FDCWD  (-100)
int open(const char*, int, ...);
