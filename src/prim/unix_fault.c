// Faults on macOS, the BSDs and Haiku: the handler.  Layer: prim.
//
// UF1  It calls only those functions of libc that may be called in a handler of signals, and has no thread-local variables.
// UF2  It takes at most MI_FAULT_STACK bytes of stack, and what was there before is called when nearly all of that is free again.
// UF3  No locks and no memory but the stack: any number of threads may be in it.
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "prim.h"

// An inaccessible page is either of them, by system, version and processor.
static const int unix_fault_signals[] = {SIGSEGV, SIGBUS};

#define UNIX_FAULT_N (sizeof(unix_fault_signals) / sizeof(unix_fault_signals[0]))

static void (*unix_on_fault)(const mi_fault_t* fault);
static struct sigaction unix_fault_before[UNIX_FAULT_N]; // what the process did

// Not inlined: its stack is free again when the handler that was there before is called.
static mi_noinline void unix_fault_report(const siginfo_t* info) {
  mi_fault_t fault = {(uintptr_t)info->si_addr, 0,
                      '?'}; // what made the access is in the registers, which differ by system
  unix_on_fault(&fault);
}

// As the kernel would have called it.
static void unix_fault_call(struct sigaction* before, int sig, siginfo_t* info, void* context) {
  unsigned flags = (unsigned)before->sa_flags;
  sigset_t saved, own;
  void (*action)(int, siginfo_t*, void*) = before->sa_sigaction;
  void (*handler)(int) = before->sa_handler;
  sigprocmask(SIG_BLOCK, &before->sa_mask, &saved);
  if ((flags & SA_NODEFER) != 0) {
    sigemptyset(&own);
    sigaddset(&own, sig);
    sigprocmask(SIG_UNBLOCK, &own, NULL);
  }
  if ((flags & SA_RESETHAND) != 0) {
    before->sa_handler = SIG_DFL;
    before->sa_flags = 0;
  }
  if ((flags & SA_SIGINFO) != 0) action(sig, info, context);
  else handler(sig);
  sigprocmask(SIG_SETMASK, &saved, NULL);
}

// The access is tried again and ends the process, with a core of the place where it happened.
static void unix_fault_default(int sig, bool is_fault) {
  struct sigaction action;
  memset(&action, 0, sizeof(action));
  action.sa_handler = SIG_DFL;
  sigaction(sig, &action, NULL);
  if (!is_fault) kill(getpid(), sig); // it is blocked until we return
}

// The system's own codes lie between; those of kill(2) and the like are 0, less, or more.
static bool unix_fault_is_real(const siginfo_t* info) {
  return info->si_code > 0 && info->si_code < 0x10000;
}

static void unix_fault_handler(int sig, siginfo_t* info, void* context) {
  int               saved = errno;
  struct sigaction* before = &unix_fault_before[sig == unix_fault_signals[0] ? 0 : 1];
  bool              is_fault = unix_fault_is_real(info);
  bool              is_siginfo = (before->sa_flags & SA_SIGINFO) != 0;
  if (is_fault) unix_fault_report(info);
  if (!is_siginfo && before->sa_handler == SIG_IGN && !is_fault) {
    // nothing to do
  }
  else if (!is_siginfo && (before->sa_handler == SIG_DFL || before->sa_handler == SIG_IGN)) {
    unix_fault_default(sig, is_fault);
  }
  else {
    unix_fault_call(before, sig, info, context);
  }
  errno = saved;
}

int _mi_prim_fault_init(void (*on_fault)(const mi_fault_t* fault)) {
  struct sigaction action, before;
  int              saved = errno, err = 0;
  unix_on_fault = on_fault;
  memset(&action, 0, sizeof(action));
  action.sa_sigaction = &unix_fault_handler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < UNIX_FAULT_N && err == 0; i++) {
    // Two calls: the handler may run as soon as it is there, and another thread may have made it be there.
    if (sigaction(unix_fault_signals[i], NULL, &before) != 0) {
      err = errno;
    }
    else if (before.sa_sigaction != &unix_fault_handler) {
      unix_fault_before[i] = before;
      err = (sigaction(unix_fault_signals[i], &action, NULL) == 0 ? 0 : errno);
    }
  }
  errno = saved;
  return err;
}

void _mi_prim_fault_stop(void) {
  struct sigaction action;
  int              saved = errno;
  for (size_t i = 0; i < UNIX_FAULT_N && unix_on_fault != NULL; i++) {
    bool is_known = (sigaction(unix_fault_signals[i], NULL, &action) == 0);
    if (is_known && action.sa_sigaction == &unix_fault_handler) {
      sigaction(unix_fault_signals[i], &unix_fault_before[i], NULL);
    }
  }
  errno = saved;
}
