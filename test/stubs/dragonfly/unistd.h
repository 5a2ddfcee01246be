// Declarations for compiling only: test/stubs/README.md.
#pragma once
#include_next <unistd.h>
int lwp_gettid(void);
int umtx_sleep(volatile const int*, int, int);
int umtx_wakeup(volatile const int*, int);
