// Declarations for compiling only: test/stubs/README.md.
#pragma once
int backtrace(void**, int);
