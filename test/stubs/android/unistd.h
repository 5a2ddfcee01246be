// Declarations for compiling only: test/stubs/README.md.
#pragma once
#include <sys/syscall.h>
#include_next <unistd.h>
