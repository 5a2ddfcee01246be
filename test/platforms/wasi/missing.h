// What tests use of other systems and WASI has not.  Included before everything.
#pragma once

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

// ctest has a time limit of its own.
static inline unsigned alarm(unsigned seconds) {
  (void)seconds;
  return 0;
}

// Tests that start programs are left out; what they share with others is not.
static inline int execve(const char* path, char* const* arguments, char* const* environment) {
  (void)path, (void)arguments, (void)environment;
  errno = ENOSYS;
  return -1;
}
