// Declarations for compiling only: test/stubs/README.md.
#pragma once
#define O_RDONLY  0
#define O_CLOEXEC 0x80000
#define AT_FDCWD  (-100)
int open(const char*, int, ...);
#define O_WRONLY    1
#define O_RDWR      2
#define O_CREAT     0x200
#define O_EXCL      0x800
#define O_NOFOLLOW  0x100
#define O_DIRECTORY 0x20000
#define O_PATH      0x200000
#define O_APPEND    8
#define F_GETFL     3
int fcntl(int, int, ...);
