// For the programs that compare two runs of themselves: can what is learned in one process be used in another?
#pragma once

#include "bug.h"
#include <sys/wait.h>

#define LAYOUT_N_MAX 32

typedef struct {
  uint64_t values[LAYOUT_N_MAX];
} layout_t;

// Started with one more argument, the program only writes its layout.
static inline void layout_write(const layout_t* layout) {
  if (write(1, layout, sizeof(*layout)) != (ssize_t)sizeof(*layout)) _exit(3);
}

static inline layout_t layout_of_a_run(char** argv) {
  layout_t layout;
  int      ends[2], status;
  if (pipe(ends) != 0) _exit(3);
  pid_t pid = fork();
  if (pid == 0) {
    dup2(ends[1], 1);
    char* arguments[] = {argv[0], (char*)"layout", NULL};
    execv("/proc/self/exe", arguments);
    _exit(3);
  }
  close(ends[1]);
  if (read(ends[0], &layout, sizeof(layout)) != (ssize_t)sizeof(layout)) _exit(3);
  close(ends[0]);
  if (waitpid(pid, &status, 0) != pid || status != 0) _exit(3);
  return layout;
}

static inline int layout_compare(char** argv) {
  layout_t first = layout_of_a_run(argv), second = layout_of_a_run(argv);
  return memcmp(&first, &second, sizeof(first)) == 0 ? undetected() : prevented(true);
}
