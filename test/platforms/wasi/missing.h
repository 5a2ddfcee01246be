// What tests use of other systems and WASI has not.  Included before everything.
#pragma once

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

// ctest has a time limit of its own.
static inline unsigned alarm(unsigned seconds) {
  (void)seconds;
  return 0;
}
