// Declarations for compiling only: test/stubs/README.md.
#pragma once
#include <sys/types.h>
struct timespec {
  time_t tv_sec;
  long   tv_nsec;
};
#define CLOCK_MONOTONIC          1
#define CLOCK_PROCESS_CPUTIME_ID 2
#define CLOCK_BOOTTIME           7
int clock_gettime(clockid_t, struct timespec*);
int nanosleep(const struct timespec*, struct timespec*);
