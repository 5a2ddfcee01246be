// The process and its threads, as macOS, the BSDs and Haiku have them.  Layer: prim.
#include "unix_process.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>


#define UNIX_NAP_NS 200000 // about what the wake-up of a thread that sleeps takes, a few times over

// ---- time -----------------------------------------------------------------------------------------------------------

static int64_t unix_clock_ns(clockid_t clock) {
  struct timespec t = {0, 0};
  int             saved = errno;
  clock_gettime(clock, &t);
  errno = saved;
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t _mi_prim_clock_ns(void) {
  return unix_clock_ns(CLOCK_MONOTONIC);
}

int64_t _mi_prim_clock_ms(void) {
  return unix_clock_ns(CLOCK_MONOTONIC) / 1000000;
}

int64_t _mi_prim_cpu_time_ms(void) {
  return unix_clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1000000;
}

// Of the address space, or (OpenBSD) of all private memory that may be written.
#if defined(RLIMIT_AS)
  #define UNIX_LIMIT RLIMIT_AS
#else
  #define UNIX_LIMIT RLIMIT_DATA
#endif

// ---- output, limits -------------------------------------------------------------------------------------------------

void _mi_prim_write_stderr(const char* text, size_t length) {
  int saved = errno;
  while (length > 0) {
    ssize_t n = write(STDERR_FILENO, text, length);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text += n;
    length -= (size_t)n;
  }
  errno = saved;
}

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

size_t _mi_prim_address_space_limit(void) {
  struct rlimit limit;
  int           saved = errno;
  bool          known = (getrlimit(UNIX_LIMIT, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY);
  errno = saved;
  return known ? (size_t)limit.rlim_cur : SIZE_MAX;
}

size_t _mi_prim_numa_node_count(void) {
  return 1;
}

size_t _mi_prim_numa_node(void) {
  return 0;
}

bool _mi_prim_has_thread_storage(void) {
  return true;
}

// Nothing says whether the code that contains it is the program's.
bool _mi_prim_is_unloadable(void) {
#if defined(MI_SHARED_LIB)
  return false;
#else
  return true;
#endif
}

// ---- guarded blocks -------------------------------------------------------------------------------------------------

// The loader knows.  It takes a lock of its own for it on some systems, which the interrupted thread may hold while it loads
// a library: only there a report may hang that tells of a fault.
bool _mi_prim_find_module(uintptr_t address, char* name, size_t size, uintptr_t* offset) {
  Dl_info info;
  int     saved = errno;
  bool    found = (size > 0 && dladdr((const void*)address, &info) != 0 && info.dli_fname != NULL);
  errno = saved;
  if (!found) return false;
  size_t n = 0;
  for (; n + 1 < size && info.dli_fname[n] != 0; n++) name[n] = info.dli_fname[n];
  name[n] = 0;
  *offset = address - (uintptr_t)info.dli_fbase;
  return true;
}

// ---- for the files of each system -------------------------------------------------------------------------------------

static int64_t unix_timeval_ms(const struct timeval* t) {
  return (int64_t)t->tv_sec * 1000 + t->tv_usec / 1000;
}

void _mi_unix_process_usage(struct rusage* usage, mi_process_info_t* info) {
  int saved = errno;
  memset(info, 0, sizeof(*info));
  memset(usage, 0, sizeof(*usage));
  getrusage(RUSAGE_SELF, usage);
  info->user_ms = unix_timeval_ms(&usage->ru_utime);
  info->system_ms = unix_timeval_ms(&usage->ru_stime);
  errno = saved;
}

int64_t _mi_unix_process_since_ms(const struct timeval* start) {
  struct timeval now;
  int            saved = errno;
  bool           known = (gettimeofday(&now, NULL) == 0);
  errno = saved;
  int64_t ms = (known ? unix_timeval_ms(&now) - unix_timeval_ms(start) : 0);
  return ms < 0 ? 0 : ms;
}

struct timespec* _mi_unix_process_timeout(int64_t timeout_ms, struct timespec* t) {
  t->tv_sec = (time_t)(timeout_ms / 1000);
  t->tv_nsec = (long)(timeout_ms % 1000) * 1000000;
  return timeout_ms < 0 ? NULL : t;
}

void _mi_unix_process_nap(int64_t timeout_ms) {
  struct timespec t = {0, UNIX_NAP_NS};
  int             saved = errno;
  if (timeout_ms != 0) nanosleep(&t, NULL);
  errno = saved;
}
