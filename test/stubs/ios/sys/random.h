// Declarations for compiling only: test/stubs/README.md.
#pragma once
#include <stddef.h>
int getentropy(void*, size_t);
