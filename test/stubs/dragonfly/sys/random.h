// Declarations for compiling only: test/stubs/README.md.
#pragma once
#include <sys/types.h>
#define GRND_NONBLOCK 2
ssize_t getrandom(void*, size_t, unsigned);
