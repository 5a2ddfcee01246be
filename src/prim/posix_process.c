// The process, as Linux, macOS, the BSDs and Haiku have it: time, limits, and what none of them does otherwise.  Layer: prim.
#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE
#endif
#include "posix_process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// ---- time, random numbers -------------------------------------------------------------------------------------------

int64_t _mi_posix_process_clock_ns(clockid_t clock) {
  struct timespec t = {0, 0};
  int             saved = errno;
  clock_gettime(clock, &t);
  errno = saved;
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t _mi_prim_clock_ns(void) {
  return _mi_posix_process_clock_ns(CLOCK_MONOTONIC);
}

int64_t _mi_prim_clock_ms(void) {
  return _mi_posix_process_clock_ns(CLOCK_MONOTONIC) / 1000000;
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

// ---- the rest -------------------------------------------------------------------------------------------------------

void _mi_prim_abort(void) {
  abort();
}

bool _mi_prim_is_ending(void) {
  return false; // threads run on until the last moment
}

char* _mi_prim_real_path(const char* name, char* path) {
  return realpath(name, path);
}

const wchar_t* _mi_prim_wide_variable(const wchar_t* name) {
  (void)name;
  return NULL;
}
