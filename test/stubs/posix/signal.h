// Declarations for compiling only: test/stubs/README.md.
#pragma once
#include <sys/types.h>
union sigval {
  int   sival_int;
  void* sival_ptr;
};
typedef struct stub_siginfo_s {
  int          si_signo, si_code;
  void*        si_addr;
  union sigval si_value;
} siginfo_t;
struct sigaction {
  union {
    void (*handler)(int);
    void (*action)(int, siginfo_t*, void*);
  } stub_u;
  sigset_t sa_mask;
  int      sa_flags;
};
#define sa_handler   stub_u.handler
#define sa_sigaction stub_u.action
#define _NSIG        64
#define SIG_DFL      ((void (*)(int))0)
#define SIG_IGN      ((void (*)(int))1)
#define SIGBUS       10
#define SIGSEGV      11
#define SA_ONSTACK   0x0001
#define SA_RESTART   0x0002
#define SA_RESETHAND 0x0004
#define SA_NODEFER   0x0010
#define SA_SIGINFO   0x0040
#define SI_QUEUE     0x10002
#define SIG_BLOCK    1
#define SIG_UNBLOCK  2
#define SIG_SETMASK  3
int sigaction(int, const struct sigaction*, struct sigaction*);
int sigprocmask(int, const sigset_t*, sigset_t*);
int sigemptyset(sigset_t*);
int sigfillset(sigset_t*);
int sigaddset(sigset_t*, int);
int pthread_sigmask(int, const sigset_t*, sigset_t*);
int kill(pid_t, int);
