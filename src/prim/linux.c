// The operating system interface on Linux (glibc, musl, Android).  Layer: prim.
//
// Mappings of ours are made once and then only change their protection in one growing range each, so that the kernel
// keeps a handful of them however large the heap is.  errno is saved around every libc call: malloc's callers see it.
#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE
#endif
#include "prim.h"

#include "../base/probe.h"
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
#include <ucontext.h>
#include <unistd.h>

#include "../base/bits.h"

// Newer kernels than the headers we may be built with know these.
#ifndef MADV_POPULATE_WRITE
  #define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_FREE
  #define MADV_FREE 8
#endif
#ifndef MREMAP_DONTUNMAP
  #define MREMAP_DONTUNMAP 4
#endif
#ifndef MAP_FIXED_NOREPLACE
  #define MAP_FIXED_NOREPLACE 0x100000
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
  uintptr_t from = mi_align_up((uintptr_t)start, page);
  uintptr_t to = mi_align_down((uintptr_t)start + size, page);
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

static int prim_map_any(void* hint, size_t size, int protection, int flags, void** start) {
  if (prim_must_fail()) return ENOMEM;
  int   saved = errno;
  void* p = mmap(hint, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  int   err = (p == MAP_FAILED ? errno : 0);
  errno = saved;
  if (err == 0) *start = p;
  return err;
}

static int prim_map(void* hint, size_t size, int protection, int flags, void** start) {
  return prim_map_any(hint, size, protection, MAP_NORESERVE | flags, start);
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
  MI_PROBE2(commit, start, size);
  return prim_protect(start, size, PROT_READ | PROT_WRITE);
}

int _mi_prim_protect(void* start, size_t size) {
  return prim_protect(start, size, PROT_NONE);
}

int _mi_prim_make_readable(void* start, size_t size) {
  return prim_protect(start, size, PROT_READ);
}

// EAGAIN is not tried again: the system says so each time when there are too many mappings already to split one.
static int prim_advise(void* start, size_t size, int advice) {
  if (prim_must_fail()) return ENOMEM;
  int saved = errno;
  int err = (madvise(start, size, advice) == 0 ? 0 : errno);
  errno = saved;
  return err;
}

int _mi_prim_purge(void* start, size_t size) {
  MI_PROBE2(purge, start, size);
  return prim_advise(start, size, MADV_DONTNEED);
}

int _mi_prim_discard(void* start, size_t size) {
  return prim_advise(start, size, MADV_FREE);
}

// Reserves a range that is not mapped.  EEXIST if it is, by whomever.
static int prim_reserve_at(void* start, size_t size) {
  void* p;
  int   err = prim_map(start, size, PROT_NONE, MAP_FIXED_NOREPLACE, &p);
  if (err != 0 || p == start) return err;
  _mi_prim_release(p, size); // a kernel that does not know the flag took `start` for a hint
  return EEXIST;
}

int _mi_prim_decommit(void* start, size_t size) {
  void* p;
  int   err = prim_map(start, size, PROT_NONE, MAP_FIXED, &p);
  if (err == 0) return 0;
  _mi_prim_release(start, size); // the memory goes back in any case
  return prim_reserve_at(start, size);
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

// A mapping that fails may have taken away what was there before (older kernels), and another thread may have mapped
// something since.  So it is tried elsewhere first.
int _mi_prim_map_large(void* start, size_t size, size_t os_page_size, bool* is_lost) {
  const int flags = MAP_HUGETLB | (int)(mi_ctz64(os_page_size) << 26 /* MAP_HUGE_SHIFT */);
  void*     p;
  *is_lost = false;
  int err = prim_map_any(NULL, size, PROT_READ | PROT_WRITE, flags, &p);
  if (err != 0) return err;
  _mi_prim_release(p, size);
  err = prim_map_any(start, size, PROT_READ | PROT_WRITE, MAP_FIXED | flags, &p);
  if (err == 0) return 0;
  *is_lost = (prim_reserve_at(start, size) != 0); // or it is still reserved: the kernel does not say
  return err;
}

size_t _mi_prim_address_space_limit(void) {
  struct rlimit limit;
  int           saved = errno;
  bool          known = (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY);
  errno = saved;
  return known ? (size_t)limit.rlim_cur : SIZE_MAX;
}

bool _mi_prim_overcommits(void) {
  char mode = '0';
  int  saved = errno;
  int  fd = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    if (read(fd, &mode, 1) != 1) mode = '0';
    close(fd);
  }
  errno = saved;
  return mode != '2';
}

// ---- memory of several nodes ----------------------------------------------------------------------------------------

#define PRIM_NODES_MAX 256

size_t _mi_prim_numa_node_count(void) {
  size_t n = 0;
  int    saved = errno;
  char   path[64] = "/sys/devices/system/node/node";
  for (; n < PRIM_NODES_MAX; n++) {
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

size_t _mi_prim_numa_node(void) {
  unsigned node = 0;
  int      saved = errno;
  if (syscall(SYS_getcpu, NULL, &node, NULL) != 0) node = 0;
  errno = saved;
  return node;
}

int _mi_prim_numa_bind(void* start, size_t size, size_t node, bool only) {
  enum { WORD_BITS = 8 * sizeof(unsigned long), PREFERRED = 1, BIND = 2 }; // modes of mbind(2), which needs no libnuma
  unsigned long mask[PRIM_NODES_MAX / WORD_BITS] = {0};
  if (node >= PRIM_NODES_MAX) return EINVAL;
  if (prim_must_fail()) return ENOMEM;
  mask[node / WORD_BITS] = 1ul << (node % WORD_BITS);
  int saved = errno;
  int err = (syscall(SYS_mbind, start, size, only ? BIND : PREFERRED, mask, PRIM_NODES_MAX + 1, 0) == 0 ? 0 : errno);
  errno = saved;
  return err;
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

// ---- guarded blocks: protection, faults, stacks ---------------------------------------------------------------------

uintptr_t _mi_prim_thread_id(void) {
  return (uintptr_t)syscall(SYS_gettid);
}

int64_t _mi_prim_clock_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void (*prim_on_fault)(const mi_fault_t* fault);
static struct sigaction prim_fault_before; // what the process did

static void prim_fault_describe(mi_fault_t* fault, const siginfo_t* info, void* context) {
  fault->address = (uintptr_t)info->si_addr;
  fault->instruction = 0;
  fault->access = '?';
#if defined(__x86_64__) && defined(REG_RIP) && defined(REG_ERR)
  const ucontext_t* state = (const ucontext_t*)context;
  fault->instruction = (uintptr_t)state->uc_mcontext.gregs[REG_RIP];
  fault->access = (state->uc_mcontext.gregs[REG_ERR] & 2) != 0 ? 'w' : 'r'; // bit 1 of the processor's error code
#elif defined(__aarch64__)
  fault->instruction = (uintptr_t)((const ucontext_t*)context)->uc_mcontext.pc;
#else
  (void)context;
#endif
}

// As the kernel would have called it.
static void prim_fault_call_before(int sig, siginfo_t* info, void* context) {
  struct sigaction before = prim_fault_before;
  sigset_t         added = before.sa_mask, saved;
  if (((unsigned)before.sa_flags & SA_RESETHAND) != 0) {
    prim_fault_before.sa_handler = SIG_DFL;
    prim_fault_before.sa_flags = 0;
  }
  pthread_sigmask(SIG_BLOCK, &added, &saved);
  if ((before.sa_flags & SA_NODEFER) != 0) {
    sigemptyset(&added);
    sigaddset(&added, sig);
    pthread_sigmask(SIG_UNBLOCK, &added, NULL);
  }
  if ((before.sa_flags & SA_SIGINFO) != 0) before.sa_sigaction(sig, info, context);
  else before.sa_handler(sig);
  pthread_sigmask(SIG_SETMASK, &saved, NULL);
}

// si_code > 0: the kernel says so, not somebody's kill(2).
static void prim_fault_handler(int sig, siginfo_t* info, void* context) {
  int  saved = errno;
  bool is_fault = (info->si_code > 0);
  if (is_fault) {
    mi_fault_t fault;
    prim_fault_describe(&fault, info, context);
    prim_on_fault(&fault);
  }
  bool is_siginfo = (prim_fault_before.sa_flags & SA_SIGINFO) != 0;
  if (!is_siginfo && prim_fault_before.sa_handler == SIG_IGN && !is_fault) {
    // nothing to do
  }
  else if (!is_siginfo && (prim_fault_before.sa_handler == SIG_DFL || prim_fault_before.sa_handler == SIG_IGN)) {
    // The access is tried again and ends the process, with a core of the place where it happened.
    sigaction(sig, &prim_fault_before, NULL);
    if (!is_fault) raise(sig); // it is blocked until we return
  }
  else {
    prim_fault_call_before(sig, info, context);
  }
  errno = saved;
}

// An inaccessible page is SIGSEGV on Linux; SIGBUS is for what lies behind the end of a file, and none of our business.
int _mi_prim_fault_init(void (*on_fault)(const mi_fault_t* fault)) {
  struct sigaction action;
  int              saved = errno;
  prim_on_fault = on_fault;
  memset(&action, 0, sizeof(action));
  action.sa_sigaction = &prim_fault_handler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  // Two calls: the handler may run as soon as it is there.
  int err = (sigaction(SIGSEGV, NULL, &prim_fault_before) == 0 ? 0 : errno);
  if (err == 0) err = (sigaction(SIGSEGV, &action, NULL) == 0 ? 0 : errno);
  errno = saved;
  return err;
}

// Not every C library has it, and a static program has it only if it uses it.
#if defined(__cplusplus)
extern "C" int backtrace(void** frames, int max) __attribute__((weak));
#else
extern int backtrace(void** frames, int max) __attribute__((weak));
#endif

size_t _mi_prim_stack(void** frames, size_t max) {
  if (backtrace == NULL) return 0;
  int saved = errno;
  int n = backtrace(frames, (int)max);
  errno = saved;
  return n < 0 ? 0 : (size_t)n;
}

bool _mi_prim_stack_init(void) {
  void* frames[2];
  return _mi_prim_stack(frames, 2) > 0; // it loads the unwinder
}

// A line of /proc/self/maps: "start-end rwxp offset device inode   path".  All of this runs on the stack of a signal handler,
// which may be small: 2 KiB in all.
typedef struct prim_maps_line_s {
  uintptr_t start, end, offset;
  char      path[160]; // the end of a longer one is cut off
} prim_maps_line_t;

static const char* prim_parse_hex(const char* s, uintptr_t* value) {
  *value = 0;
  for (;; s++) {
    char c = *s;
    if (c >= '0' && c <= '9') *value = *value * 16 + (uintptr_t)(c - '0');
    else if (c >= 'a' && c <= 'f') *value = *value * 16 + (uintptr_t)(c - 'a' + 10);
    else return s;
  }
}

static const char* prim_skip_field(const char* s) {
  while (*s != 0 && *s != ' ') s++;
  while (*s == ' ') s++;
  return s;
}

static void prim_maps_parse(const char* text, prim_maps_line_t* line) {
  const char* s = prim_parse_hex(text, &line->start);
  s = prim_parse_hex(*s == '-' ? s + 1 : s, &line->end);
  s = prim_skip_field(*s == ' ' ? s + 1 : s); // behind the permissions
  s = prim_skip_field(prim_parse_hex(s, &line->offset));
  s = prim_skip_field(prim_skip_field(s)); // behind device and inode
  size_t n = 0;
  for (; s[n] != 0 && n + 1 < sizeof(line->path); n++) line->path[n] = s[n];
  line->path[n] = 0;
}

// Calls `see` with each line until it returns true.  A line is cut off at the size of `text`.
static bool prim_maps_search(bool (*see)(const prim_maps_line_t* line, void* arg), void* arg) {
  char             text[256], buffer[512];
  prim_maps_line_t line;
  size_t           length = 0;
  bool             found = false;
  int              fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  for (ssize_t n; !found && (n = read(fd, buffer, sizeof(buffer))) > 0;) {
    for (ssize_t i = 0; i < n && !found; i++) {
      if (buffer[i] != '\n') {
        if (length + 1 < sizeof(text)) text[length++] = buffer[i];
        continue;
      }
      text[length] = 0;
      length = 0;
      prim_maps_parse(text, &line);
      found = see(&line, arg);
    }
  }
  close(fd);
  return found;
}

typedef struct prim_module_s {
  uintptr_t        address;
  prim_maps_line_t first; // the last mapping of the beginning of a file: where its addresses count from
  prim_maps_line_t found;
} prim_module_t;

static bool prim_module_see(const prim_maps_line_t* line, void* arg) {
  prim_module_t* module = (prim_module_t*)arg;
  if (line->offset == 0) module->first = *line;
  if (module->address < line->start || module->address >= line->end) return false;
  module->found = *line;
  return true;
}

bool _mi_prim_find_module(uintptr_t address, char* name, size_t size, uintptr_t* offset) {
  prim_module_t module;
  int           saved = errno;
  module.address = address;
  module.first.path[0] = 0;
  bool found = prim_maps_search(&prim_module_see, &module) && module.found.path[0] != 0;
  errno = saved;
  if (!found) return false;
  bool has_first = (strcmp(module.first.path, module.found.path) == 0);
  *offset = address - (has_first ? module.first.start : module.found.start - module.found.offset);
  size_t n = 0;
  for (; module.found.path[n] != 0 && n + 1 < size; n++) name[n] = module.found.path[n];
  name[n] = 0;
  return true;
}
