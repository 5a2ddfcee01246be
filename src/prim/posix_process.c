// The process, as Linux, macOS, the BSDs and Haiku have it: time, limits, and what none of them does otherwise.  Layer: prim.
#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE
#endif
#include "posix_process.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// ---- time, random numbers -------------------------------------------------------------------------------------------

int64_t _mi_posix_process_clock_ns(clockid_t clock) {
  struct timespec t = {0, 0};
  int             saved = errno;
  clock_gettime(clock, &t);
  errno = saved;
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

// The system's clock goes back when a process enters another time namespace, or goes on on another machine.  What is due at some time
// would wait for days then.  So ours stands still, and goes on from there.
static mi_atomic(int64_t) posix_clock_last;   // the last reading, but for a millisecond
static mi_atomic(int64_t) posix_clock_behind; // by so much the system's clock has gone back

#define POSIX_CLOCK_STEP_NS 1000000

int64_t _mi_prim_clock_ns(void) {
  int64_t last = mi_load_acquire(&posix_clock_last); // first: it is of an earlier reading
  int64_t behind = mi_load_relaxed(&posix_clock_behind);
  int64_t now = _mi_posix_process_clock_ns(CLOCK_MONOTONIC) + behind;
  if (mi_unlikely(now < last)) {
    mi_cas_strong(&posix_clock_behind, &behind, behind + (last - now), relaxed, relaxed); // or another thread has
    return last;
  }
  // release: whoever sees it sees what was added to it
  if (now - last >= POSIX_CLOCK_STEP_NS) mi_store_release(&posix_clock_last, now);
  return now;
}

int64_t _mi_prim_clock_ms(void) {
  return _mi_prim_clock_ns() / 1000000;
}

int64_t _mi_prim_cpu_time_ms(void) {
  return _mi_posix_process_clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1000000;
}

uint64_t _mi_posix_process_guess(void) {
  int here;
  return (uint64_t)_mi_prim_clock_ns() ^ ((uint64_t)(uintptr_t)&here << 16);
}

struct timespec* _mi_posix_process_timeout(int64_t timeout_ms, struct timespec* t) {
  t->tv_sec = (time_t)(timeout_ms / 1000);
  t->tv_nsec = (long)(timeout_ms % 1000) * 1000000;
  return timeout_ms < 0 ? NULL : t;
}

// ---- what it uses and may use ---------------------------------------------------------------------------------------

static int64_t posix_timeval_ms(const struct timeval* t) {
  return (int64_t)t->tv_sec * 1000 + t->tv_usec / 1000;
}

void _mi_posix_process_usage(struct rusage* usage, mi_process_info_t* info) {
  int saved = errno;
  memset(info, 0, sizeof(*info));
  memset(usage, 0, sizeof(*usage));
  getrusage(RUSAGE_SELF, usage);
  info->user_ms = posix_timeval_ms(&usage->ru_utime);
  info->system_ms = posix_timeval_ms(&usage->ru_stime);
  errno = saved;
}

// Of the address space, or (OpenBSD) of all private memory that may be written.
#if defined(RLIMIT_AS)
  #define POSIX_LIMIT RLIMIT_AS
#else
  #define POSIX_LIMIT RLIMIT_DATA
#endif

size_t _mi_prim_address_space_limit(void) {
  struct rlimit limit;
  int           saved = errno;
  bool          known = (getrlimit(POSIX_LIMIT, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY);
  errno = saved;
  return known ? (size_t)limit.rlim_cur : SIZE_MAX;
}

// Is the size of files limited?
static bool posix_file_limit(struct rlimit* limit) {
  return getrlimit(RLIMIT_FSIZE, limit) == 0 && limit->rlim_cur != RLIM_INFINITY;
}

// Where the next byte goes.
static uint64_t posix_position(int fd) {
  struct stat file;
  int         flags = fcntl(fd, F_GETFL);
  bool        appends = (flags != -1 && (flags & O_APPEND) != 0 && fstat(fd, &file) == 0);
  off_t       at = (appends ? file.st_size : lseek(fd, 0, SEEK_CUR));
  return at < 0 ? 0 : (uint64_t)at;
}

bool _mi_posix_process_may_write(int fd, size_t size) {
  struct rlimit limit;
  int           saved = errno;
  bool          may = !posix_file_limit(&limit) || (uint64_t)limit.rlim_cur >= posix_position(fd) + size;
  errno = saved;
  return may;
}

static mi_atomic(bool) posix_stderr_is_limited;

// Once: a sandbox may forbid these calls later.
void _mi_prim_prepare_stderr(void) {
  struct rlimit limit;
  struct stat   file;
  int           saved = errno;
  if (posix_file_limit(&limit) && fstat(STDERR_FILENO, &file) == 0 && S_ISREG(file.st_mode))
    mi_store_relaxed(&posix_stderr_is_limited, true);
  errno = saved;
}

bool _mi_posix_process_stderr_is_limited(void) {
  return mi_load_relaxed(&posix_stderr_is_limited);
}

int _mi_prim_file_rename(const char* from, const char* to) {
  int saved = errno, state = _mi_posix_process_shield();
  int err = (rename(from, to) == 0 ? 0 : errno);
  _mi_posix_process_unshield(state);
  errno = saved;
  return err;
}

// ---- cancellation ---------------------------------------------------------------------------------------------------

#if defined(__ANDROID__) // its libc cancels no thread

int _mi_posix_process_shield(void) {
  return 0;
}

void _mi_posix_process_unshield(int state) {
  (void)state;
}

#else

int _mi_posix_process_shield(void) {
  int state = PTHREAD_CANCEL_ENABLE;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  return state;
}

void _mi_posix_process_unshield(int state) {
  int shielded;
  pthread_setcancelstate(state, &shielded);
}

#endif

// ---- the rest -------------------------------------------------------------------------------------------------------

size_t _mi_prim_process_id(void) {
  return (size_t)getpid();
}

void _mi_prim_abort(void) {
  abort();
}

bool _mi_prim_is_ending(void) {
  return false; // threads run on until the last moment
}

char* _mi_prim_real_path(const char* name, char* path) {
  int   saved = errno;
  char* real = realpath(name, path);
  if (real != NULL) errno = saved; // glibc leaves that of readlink
  return real;
}

const wchar_t* _mi_prim_wide_variable(const wchar_t* name) {
  (void)name;
  return NULL;
}

// ---- a signal, for the heap profile -----------------------------------------------------------------------------------

static void (*posix_on_signal)(int value);
static int posix_signal; // 0: none is ours

// Only atomic operations follow (heap/event.h).
static void posix_signal_handler(int sig, siginfo_t* info, void* context) {
  (void)sig;
  (void)context;
  posix_on_signal(info->si_code == SI_QUEUE ? info->si_value.sival_int : 0);
}

int _mi_prim_signal_init(int sig, void (*on_signal)(int value)) {
  struct sigaction action, before;
  int              saved = errno, err = 0;
  posix_on_signal = on_signal;
  memset(&action, 0, sizeof(action));
  action.sa_sigaction = &posix_signal_handler;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  if (sigaction(sig, NULL, &before) != 0) err = errno;
  else if ((before.sa_flags & SA_SIGINFO) != 0 || before.sa_handler != SIG_DFL) err = EBUSY;
  else if (sigaction(sig, &action, NULL) != 0) err = errno;
  if (err == 0) posix_signal = sig;
  errno = saved;
  return err;
}

void _mi_prim_signal_stop(void) {
  struct sigaction action;
  int              saved = errno;
  bool             is_set = (posix_signal != 0 && sigaction(posix_signal, NULL, &action) == 0);
  if (is_set && (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == &posix_signal_handler) {
    action.sa_flags = 0;
    action.sa_handler = SIG_DFL;
    sigaction(posix_signal, &action, NULL);
  }
  errno = saved;
}
