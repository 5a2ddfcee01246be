// Declarations for compiling only: test/stubs/README.md.
#pragma once
#include <sys/types.h>
#define STDERR_FILENO        2
#define R_OK                 4
#define _SC_PAGESIZE         29
#define _SC_CLK_TCK          3
#define _SC_PHYS_PAGES       121
#define _SC_NPROCESSORS_ONLN 58
long    sysconf(int);
ssize_t read(int, void*, size_t);
ssize_t write(int, const void*, size_t);
int     close(int);
int     access(const char*, int);
pid_t   getpid(void);
uid_t   getuid(void);
uid_t   geteuid(void);
gid_t   getgid(void);
gid_t   getegid(void);
int     issetugid(void);
ssize_t readlink(const char*, char*, size_t);
int     unlink(const char*);
#define SEEK_SET 0
#define SEEK_CUR 1
#define SEEK_END 2
off_t lseek(int, off_t, int);
