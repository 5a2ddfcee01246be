// Declarations for compiling only: test/stubs/README.md.
#pragma once
#include_next <pthread.h>
pid_t pthread_gettid_np(pthread_t);
