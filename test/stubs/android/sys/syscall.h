// Declarations for compiling only: test/stubs/README.md.
#pragma once
long syscall(long, ...);
#define SYS_futex              98
#define SYS_getcpu             168
#define SYS_getpid             172
#define SYS_gettid             178
#define SYS_getrandom          278
#define SYS_mbind              235
#define SYS_membarrier         283
#define SYS_openat             56
#define SYS_close              57
#define SYS_fcntl              25
#define SYS_lseek              62
#define SYS_prlimit64          261
#define SYS_read               63
#define SYS_write              64
#define SYS_rt_sigaction       134
#define SYS_rt_sigprocmask     135
#define SYS_tgkill             131
#define SYS_sched_getscheduler 120
#define SYS_readlinkat         78
#define SYS_kill               129
#define SYS_fchmod             52
#define SYS_unlinkat           35
#define SYS_getdents64         61
