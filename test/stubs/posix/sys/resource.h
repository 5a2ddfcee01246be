// Declarations for compiling only: test/stubs/README.md.
#pragma once
#include <sys/time.h>
typedef unsigned long rlim_t;
struct rlimit {
  rlim_t rlim_cur, rlim_max;
};
struct rusage {
  struct timeval ru_utime, ru_stime;
#if !defined(__HAIKU__)
  long ru_maxrss, ru_minflt, ru_majflt;
#endif
};
#define RUSAGE_SELF   0
#define RLIMIT_AS     9
#define RLIM_INFINITY (~(rlim_t)0)
int getrusage(int, struct rusage*);
int getrlimit(int, struct rlimit*);
#define RLIMIT_FSIZE 1
