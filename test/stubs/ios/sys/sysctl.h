// Declarations for compiling only: test/stubs/README.md.
#pragma once
#include <sys/time.h>
struct kinfo_proc {
  struct {
    struct timeval p_starttime;
  } kp_proc;
};
#define CTL_KERN      1
#define KERN_PROC     14
#define KERN_PROC_PID 1
int sysctl(int*, unsigned, void*, size_t*, void*, size_t);
