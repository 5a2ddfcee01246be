// Declarations for compiling only: test/stubs/README.md.
#pragma once
#include <stddef.h>
typedef struct stub_file_s FILE;
int                        rename(const char*, const char*);
