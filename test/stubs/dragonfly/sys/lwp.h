// Declarations for compiling only: test/stubs/README.md.
#pragma once
#include <sys/types.h>
typedef int lwpid_t;
