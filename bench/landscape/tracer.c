#include "tracer.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { is_call_stop = 0x80 }; // in the signal of a stop

// The child marks the begin and the end of what is counted by this signal to itself, which it does not get.
static const int mark = SIGUSR1;

static long* shared_count;
static pid_t counted; // the thread that is, 0 if none is

void tracer_prepare(void) {
  shared_count = mmap(NULL, sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared_count == MAP_FAILED) exit(2);
}

long* tracer_count(void) {
  return shared_count;
}

void tracer_start(void) {
  if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(3);
  raise(SIGSTOP);
}

void tracer_toggle(void) {
  syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), mark);
}

// Gives the signal that the thread is to get.
static int see_stop(pid_t thread, int status) {
  static bool is_in_call;
  int         stop = status >> 8;
  if (stop == (SIGTRAP | is_call_stop)) {
    is_in_call = !is_in_call;
    *shared_count += is_in_call;
  }
  else if (stop == mark) {
    if (counted == thread) *shared_count -= 3; // the calls that make the mark
    counted = counted == thread ? 0 : thread;
    is_in_call = false;
  }
  else if (stop >> 8 == 0 && stop != SIGSTOP) { // neither an event nor the begin of a thread
    return stop;
  }
  return 0;
}

int tracer_run(pid_t child) {
  const unsigned long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL;
  int                 status = 0;
  pid_t               thread = waitpid(child, &status, 0);
  if (thread != child || !WIFSTOPPED(status)) return -1;
  if (ptrace(PTRACE_SETOPTIONS, child, NULL, options) != 0) return -1;
  counted = 0;
  for (int signal = 0;;) {
    ptrace(counted == thread ? PTRACE_SYSCALL : PTRACE_CONT, thread, NULL, (void*)(intptr_t)signal);
    thread = waitpid(-1, &status, __WALL);
    while (thread > 0 && !WIFSTOPPED(status)) { // it has ended
      if (thread == child) return status;
      thread = waitpid(-1, &status, __WALL);
    }
    if (thread < 0) return -1;
    signal = see_stop(thread, status);
  }
}
