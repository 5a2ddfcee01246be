// Declarations for compiling only: test/stubs/README.md.
#pragma once
#include <sys/types.h>
struct sched_param {
  int sched_priority;
};
int sched_yield(void);
