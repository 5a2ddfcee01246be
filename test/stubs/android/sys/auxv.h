// Declarations for compiling only: test/stubs/README.md.
#pragma once
#define AT_PHDR   3
#define AT_SECURE 23
unsigned long getauxval(unsigned long);
