// Declarations for compiling only: test/stubs/README.md.
#pragma once
int pthread_main_np(void);
