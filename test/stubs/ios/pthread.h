// Declarations for compiling only: test/stubs/README.md.
#pragma once
#include_next <pthread.h>
#include <stdint.h>
int pthread_threadid_np(pthread_t, uint64_t*);
int pthread_main_np(void);
