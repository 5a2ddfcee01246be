// Declarations for compiling only: test/stubs/README.md.
#pragma once
#define _POSIX_THREAD_DESTRUCTOR_ITERATIONS 4
#define PTHREAD_DESTRUCTOR_ITERATIONS       4
#define PATH_MAX                            4096
#include_next <limits.h>
