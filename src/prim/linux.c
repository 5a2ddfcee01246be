// The operating system interface on Linux (glibc, musl, Android).  Layer: prim.
//
// Mappings of ours are made once and then only change their protection in one growing range each, so that the kernel
// keeps a handful of them however large the heap is.  errno is saved around every libc call: malloc's callers see it.
#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE
#endif
#include "prim.h"

#include "../base/track.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

// Newer kernels than the headers we may be built with know these.
#ifndef MADV_POPULATE_WRITE
  #define MADV_POPULATE_WRITE 23
#endif
#ifndef MREMAP_DONTUNMAP
  #define MREMAP_DONTUNMAP 4
#endif

// ---- fault injection ------------------------------------------------------------------------------------------------

#if MI_FAULT_INJECTION
static mi_atomic(size_t) prim_fail_at; // 0: off
static mi_atomic(size_t) prim_fail_calls;
static mi_atomic(bool)   prim_fail_repeat;

size_t _mi_prim_fail_nth(size_t n, bool repeat) {
  size_t calls = mi_load_relaxed(&prim_fail_calls);
  mi_store_relaxed(&prim_fail_at, 0);
  mi_store_relaxed(&prim_fail_calls, 0);
  mi_store_relaxed(&prim_fail_repeat, repeat);
  mi_store_relaxed(&prim_fail_at, n);
  return calls;
}

static bool prim_must_fail(void) {
  size_t call = mi_fetch_add_relaxed(&prim_fail_calls, 1) + 1;
  size_t at = mi_load_relaxed(&prim_fail_at);
  return at != 0 && (call == at || (call > at && mi_load_relaxed(&prim_fail_repeat)));
}
#else
static bool prim_must_fail(void) {
  return false;
}
#endif

// ---- tools ----------------------------------------------------------------------------------------------------------

// Valgrind begins with low addresses: each number of 32 bits somewhere in memory could be a pointer for its leak checker.
static void* prim_reserve_hint(void) {
  bool wanted = (MI_TRACK_VALGRIND && sizeof(void*) > 4 && mi_track_is_on());
  return wanted ? (void*)(uintptr_t)(4 * (uint64_t)MI_GiB) : NULL;
}

// Memcheck looks for pointers wherever it knows that the program may read.  Processors have no memory that can be written
// and not read, but it takes the kernel's word.
void _mi_prim_hide(void* start, size_t size) {
  size_t    page = _mi_prim_os_page_size();
  uintptr_t from = ((uintptr_t)start + page - 1) & ~(uintptr_t)(page - 1);
  uintptr_t to = ((uintptr_t)start + size) & ~(uintptr_t)(page - 1);
  int       saved = errno;
  if (MI_TRACK_VALGRIND && mi_track_is_on() && from < to) mprotect((void*)from, to - from, PROT_WRITE);
  errno = saved;
}

// ---- memory ---------------------------------------------------------------------------------------------------------

static mi_atomic(size_t) prim_page_size;

size_t _mi_prim_os_page_size(void) {
#if defined(__x86_64__) || defined(__i386__)
  return 4096; // there is no other; asking would cost each process a page fault
#endif
  size_t size = mi_load_relaxed(&prim_page_size);
  if (mi_unlikely(size == 0)) {
    size = (size_t)sysconf(_SC_PAGESIZE);
    mi_store_relaxed(&prim_page_size, size);
  }
  return size;
}

static int prim_map(void* hint, size_t size, int protection, int flags, void** start) {
  if (prim_must_fail()) return ENOMEM;
  int   saved = errno;
  void* p = mmap(hint, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
  int   err = (p == MAP_FAILED ? errno : 0);
  errno = saved;
  if (err == 0) *start = p;
  return err;
}

int _mi_prim_reserve(size_t size, size_t align, void** start) {
  size_t extra = (align > _mi_prim_os_page_size() ? align : 0);
  if (size + extra < size) return ENOMEM;
  void* p;
  int   err = prim_map(prim_reserve_hint(), size + extra, PROT_NONE, 0, &p);
  if (err != 0) return err;
  uintptr_t aligned = ((uintptr_t)p + align - 1) & ~(uintptr_t)(align - 1);
  size_t    before = aligned - (uintptr_t)p;
  int       saved = errno;
  if (before > 0) munmap(p, before);
  if (extra > before) munmap((char*)aligned + size, extra - before);
  errno = saved;
  *start = (void*)aligned;
  return 0;
}

int _mi_prim_release(void* start, size_t size) {
  int saved = errno;
  int err = (munmap(start, size) == 0 ? 0 : errno);
  errno = saved;
  return err;
}

static int prim_protect(void* start, size_t size, int protection) {
  if (prim_must_fail()) return ENOMEM;
  int saved = errno;
  int err = (mprotect(start, size, protection) == 0 ? 0 : errno);
  errno = saved;
  return err;
}

int _mi_prim_commit(void* start, size_t size) {
  return prim_protect(start, size, PROT_READ | PROT_WRITE);
}

int _mi_prim_protect(void* start, size_t size) {
  return prim_protect(start, size, PROT_NONE);
}

int _mi_prim_make_readable(void* start, size_t size) {
  return prim_protect(start, size, PROT_READ);
}

static int prim_advise(void* start, size_t size, int advice) {
  if (prim_must_fail()) return ENOMEM;
  int saved = errno;
  int err;
  do {
    err = (madvise(start, size, advice) == 0 ? 0 : errno);
  } while (err == EAGAIN);
  errno = saved;
  return err;
}

int _mi_prim_purge(void* start, size_t size) {
  return prim_advise(start, size, MADV_DONTNEED);
}

int _mi_prim_populate(void* start, size_t size) {
  return prim_advise(start, size, MADV_POPULATE_WRITE);
}

int _mi_prim_advise_huge(void* start, size_t size, bool enable) {
  return prim_advise(start, size, enable ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

int _mi_prim_remap(void* from, void* to, size_t size) {
  if (prim_must_fail()) return ENOMEM;
  int   saved = errno;
  void* p = mremap(from, size, size, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, to);
  int   err = (p == MAP_FAILED ? errno : 0);
  errno = saved;
  return err;
}

int _mi_prim_unremap(void* start, size_t size) {
  void* p;
  return prim_map(start, size, PROT_READ | PROT_WRITE, MAP_FIXED, &p);
}

size_t _mi_prim_address_space_limit(void) {
  struct rlimit limit;
  int           saved = errno;
  bool          known = (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY);
  errno = saved;
  return known ? (size_t)limit.rlim_cur : SIZE_MAX;
}

// ---- time, identity, environment ------------------------------------------------------------------------------------

int64_t _mi_prim_clock_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

uint64_t _mi_prim_random(void) {
  uint64_t x = 0;
  int      saved = errno;
  if (syscall(SYS_getrandom, &x, sizeof(x), 1 /* GRND_NONBLOCK */) != (long)sizeof(x)) {
    x = (uint64_t)_mi_prim_clock_ms() ^ ((uint64_t)(uintptr_t)&x << 16);
  }
  errno = saved;
  return x;
}

size_t _mi_prim_numa_node_count(void) {
  size_t n = 0;
  int    saved = errno;
  char   path[64] = "/sys/devices/system/node/node";
  for (; n < 256; n++) {
    size_t at = 29;
    if (n >= 100) path[at++] = (char)('0' + n / 100);
    if (n >= 10) path[at++] = (char)('0' + n / 10 % 10);
    path[at++] = (char)('0' + n % 10);
    path[at] = 0;
    if (access(path, R_OK) != 0) break;
  }
  errno = saved;
  return n == 0 ? 1 : n;
}

extern char** environ;

const char* _mi_prim_environment_entry(size_t i) {
  return environ == NULL ? NULL : environ[i];
}

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

static int64_t prim_timeval_ms(const struct timeval* t) {
  return (int64_t)t->tv_sec * 1000 + t->tv_usec / 1000;
}

// Resident bytes from /proc/self/statm ("size resident ..." in OS pages), 0 when it cannot be read.
static size_t prim_resident(void) {
  char   text[128];
  int    fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  size_t pages = 0;
  if (fd < 0) return 0;
  ssize_t n = read(fd, text, sizeof(text) - 1);
  close(fd);
  if (n <= 0) return 0;
  text[n] = 0;
  const char* s = text;
  while (*s != 0 && *s != ' ') s++;
  while (*s == ' ') s++;
  for (; *s >= '0' && *s <= '9'; s++) pages = pages * 10 + (size_t)(*s - '0');
  return pages * _mi_prim_os_page_size();
}

// Milliseconds since the process was started: the 22nd field of /proc/self/stat is when that was, in clock ticks since
// the machine was.  The second field, the program's name in parentheses, may hold anything.
static int64_t prim_elapsed_ms(void) {
  char text[1024];
  int  fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  ssize_t n = read(fd, text, sizeof(text) - 1);
  close(fd);
  if (n <= 0) return 0;
  text[n] = 0;
  const char* s = strrchr(text, ')');
  for (int field = 2; s != NULL && field < 22; field++) s = strchr(s + 1, ' ');
  if (s == NULL) return 0;
  struct timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  int64_t started_ms = (int64_t)strtoull(s + 1, NULL, 10) * 1000 / sysconf(_SC_CLK_TCK);
  int64_t elapsed_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 - started_ms;
  return elapsed_ms < 0 ? 0 : elapsed_ms;
}

void _mi_prim_process_info(mi_process_info_t* info) {
  struct rusage usage;
  int           saved = errno;
  getrusage(RUSAGE_SELF, &usage);
  info->elapsed_ms = prim_elapsed_ms();
  info->user_ms = prim_timeval_ms(&usage.ru_utime);
  info->system_ms = prim_timeval_ms(&usage.ru_stime);
  info->rss_current = prim_resident();
  info->rss_peak = (size_t)usage.ru_maxrss * 1024;
  info->page_faults = (size_t)usage.ru_majflt;
  errno = saved;
}

// ---- threads --------------------------------------------------------------------------------------------------------

// By hand: nothing of libc may be called yet, and errno is thread-local itself.
bool _mi_prim_has_thread_storage(void) {
#if defined(__x86_64__) && defined(__LP64__)
  uintptr_t base = 0;
  long      result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "0"((long)SYS_arch_prctl), "D"(0x1003L /* ARCH_GET_FS */), "S"(&base)
                   : "rcx", "r11", "memory");
  return result == 0 && base != 0;
#elif defined(__aarch64__)
  uintptr_t base;
  __asm__ volatile("mrs %0, tpidr_el0" : "=r"(base));
  return base != 0;
#else
  return true;
#endif
}

static pthread_key_t prim_exit_key;
static bool          prim_has_exit_key;
static void (*prim_exit_done)(void);

static void prim_thread_exit(void* armed) {
  (void)armed;
  prim_exit_done();
}

void _mi_prim_thread_exit_init(void (*done)(void)) {
  prim_exit_done = done;
  prim_has_exit_key = (pthread_key_create(&prim_exit_key, &prim_thread_exit) == 0);
}

int _mi_prim_thread_exit_arm(void) {
  if (!prim_has_exit_key) return ENOTSUP;
  return pthread_setspecific(prim_exit_key, (void*)1);
}

void _mi_prim_fork_init(void (*prepare)(void), void (*parent)(void), void (*child)(void)) {
  pthread_atfork(prepare, parent, child);
}

static void* prim_thread_run(void* run) {
  (*(void (**)(void))run)();
  return NULL;
}

int _mi_prim_thread_start(void (*run)(void)) {
  static void (*entry)(void);
  pthread_attr_t attr;
  pthread_t      thread;
  sigset_t       all, before;
  int            saved = errno;
  entry = run;
  if (pthread_attr_init(&attr) != 0) return ENOMEM;
  pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attr, 128 * 1024);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int err = pthread_create(&thread, &attr, &prim_thread_run, (void*)&entry);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attr);
  errno = saved;
  return err;
}

void _mi_prim_yield(void) {
  sched_yield();
}

void _mi_prim_wait(mi_atomic(uint32_t)* word, uint32_t expected, int64_t timeout_ms) {
  struct timespec t;
  int             saved = errno;
  t.tv_sec = (time_t)(timeout_ms / 1000);
  t.tv_nsec = (long)(timeout_ms % 1000) * 1000000;
  syscall(SYS_futex, (void*)word, FUTEX_WAIT_PRIVATE, expected, timeout_ms < 0 ? NULL : &t, NULL, 0);
  errno = saved;
}

void _mi_prim_wake(mi_atomic(uint32_t)* word, bool all) {
  int saved = errno;
  syscall(SYS_futex, (void*)word, FUTEX_WAKE_PRIVATE, all ? 0x7fffffff : 1, NULL, NULL, 0);
  errno = saved;
}

// membarrier(2): commands as in the manual page; the header with their names is younger than the call.
#define PRIM_MEMBARRIER_PRIVATE_EXPEDITED          8
#define PRIM_MEMBARRIER_REGISTER_PRIVATE_EXPEDITED 16

int _mi_prim_barrier_all_init(void) {
  int saved = errno;
  int err = (syscall(SYS_membarrier, PRIM_MEMBARRIER_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 ? 0 : ENOTSUP);
  errno = saved;
  return err;
}

int _mi_prim_barrier_all(void) {
  int saved = errno;
  int err = (syscall(SYS_membarrier, PRIM_MEMBARRIER_PRIVATE_EXPEDITED, 0, 0) == 0 ? 0 : ENOTSUP);
  errno = saved;
  return err;
}
