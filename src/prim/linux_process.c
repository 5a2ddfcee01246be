// The operating system interface on Linux: identity and environment of the process, processors, threads.  Layer: prim.
#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../base/bits.h"
#include "posix_process.h"
#include "syscall.h"

// ---- identity, environment ------------------------------------------------------------------------------------------

uint64_t _mi_prim_random(void) {
  uint64_t x = 0;
  int      saved = errno;
  if (syscall(SYS_getrandom, &x, sizeof(x), 1 /* GRND_NONBLOCK */) != (long)sizeof(x)) x = _mi_posix_process_guess();
  errno = saved;
  return x;
}

extern char** environ;

const char* _mi_prim_environment_entry(size_t i) {
  return environ == NULL ? NULL : environ[i];
}

// The system says so (setuid and setgid, capabilities of files, security modules) in what it hands to each new program.
bool _mi_prim_is_privileged(void) {
  int  saved = errno;
  bool is_privileged = (getauxval(AT_SECURE) != 0);
  errno = saved;
  return is_privileged;
}

// As _mi_posix_process_may_write, but for the handler of faults, which calls nothing of libc.
static bool prim_may_print(size_t size) {
  uint64_t limit[2]; // now, at most
  if (!_mi_posix_process_stderr_is_limited()) return true;
  long flags = _mi_syscall(SYS_fcntl, STDERR_FILENO, F_GETFL, 0, 0);
  long at = _mi_syscall(SYS_lseek, STDERR_FILENO, 0, SEEK_CUR, 0);
  if (at >= 0 && flags >= 0 && (flags & O_APPEND) != 0) {
    long end = _mi_syscall(SYS_lseek, STDERR_FILENO, 0, SEEK_END, 0);
    _mi_syscall(SYS_lseek, STDERR_FILENO, (uintptr_t)at, SEEK_SET, 0); // the program may read there
    at = end;
  }
  long err = _mi_syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (uintptr_t)limit);
  return err != 0 || at < 0 || limit[0] >= (uint64_t)at + size;
}

void _mi_prim_write_stderr(const char* text, size_t length) {
  while (length > 0 && prim_may_print(length)) {
    long n = _mi_syscall(SYS_write, STDERR_FILENO, (uintptr_t)text, length, 0);
    if (n == -EINTR) continue;
    if (n <= 0) break;
    text += n;
    length -= (size_t)n;
  }
}

// The beginning of a file, as a string; empty if it cannot be read.  Shielded: with the first malloc of a thread, for one.
static void prim_read_file(const char* path, char* text, size_t size) {
  int     saved = errno, state = _mi_posix_process_shield();
  int     fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = (fd < 0 ? 0 : read(fd, text, size - 1));
  if (fd >= 0) close(fd);
  _mi_posix_process_unshield(state);
  text[n < 0 ? 0 : n] = 0;
  errno = saved;
}

bool _mi_prim_overcommits(void) {
  char mode[2];
  prim_read_file("/proc/sys/vm/overcommit_memory", mode, sizeof(mode));
  return mode[0] != '2';
}

// Resident bytes from /proc/self/statm ("size resident ..." in OS pages), 0 when it cannot be read.
static size_t prim_resident(void) {
  char text[128];
  prim_read_file("/proc/self/statm", text, sizeof(text));
  const char* s = strchr(text, ' ');
  return s == NULL ? 0 : (size_t)strtoull(s, NULL, 10) * _mi_prim_os_page_size();
}

// The most that was resident since the program began: getrusage counts what was there before an exec, which after a vfork is all that
// the parent had.  From /proc/self/status; 0 when it cannot be read.
static size_t prim_resident_peak(void) {
  char text[1024];
  prim_read_file("/proc/self/status", text, sizeof(text));
  const char* s = strstr(text, "\nVmHWM:");
  return s == NULL ? 0 : (size_t)strtoull(s + strlen("\nVmHWM:"), NULL, 10) * MI_KiB;
}

// Milliseconds since the process was started: the 22nd field of /proc/self/stat is when that was, in clock ticks since
// the machine was.  The second field, the program's name in parentheses, may hold anything.
static int64_t prim_elapsed_ms(void) {
  char text[1024];
  prim_read_file("/proc/self/stat", text, sizeof(text));
  const char* s = strrchr(text, ')');
  for (int field = 2; s != NULL && field < 22; field++) s = strchr(s + 1, ' ');
  if (s == NULL) return 0;
  int64_t started_ms = (int64_t)strtoull(s + 1, NULL, 10) * 1000 / sysconf(_SC_CLK_TCK);
  int64_t elapsed_ms = _mi_posix_process_clock_ns(CLOCK_BOOTTIME) / 1000000 - started_ms;
  return elapsed_ms < 0 ? 0 : elapsed_ms;
}

void _mi_prim_process_info(mi_process_info_t* info) {
  struct rusage usage;
  int           saved = errno;
  _mi_posix_process_usage(&usage, info);
  info->elapsed_ms = prim_elapsed_ms();
  info->rss_current = prim_resident();
  size_t peak = prim_resident_peak();
  if (peak == 0) peak = (size_t)usage.ru_maxrss * 1024;
  // The kernel sums the counters of all processors up for statm, but not for the peak.
  info->rss_peak = mi_max(peak, info->rss_current);
  info->major_faults = (size_t)usage.ru_majflt;
  info->minor_faults = (size_t)usage.ru_minflt;
  errno = saved;
}

// ---- processors -----------------------------------------------------------------------------------------------------

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

// libc's finds it without a system call.
static int prim_getcpu(unsigned* node) {
#if defined(__GLIBC_PREREQ)
  #if __GLIBC_PREREQ(2, 29)
  unsigned cpu;
  return getcpu(&cpu, node);
  #endif
#endif
  return (int)syscall(SYS_getcpu, NULL, node, NULL);
}

size_t _mi_prim_numa_node(void) {
  unsigned node = 0;
  int      saved = errno;
  if (prim_getcpu(&node) != 0) node = 0;
  errno = saved;
  return node;
}

// What the linker calls the beginning of the executable or library that it makes; only an executable's table of segments is
// the one that the kernel tells of.  Our own shared library is never unloaded (cmake/flags.cmake).
#if defined(__cplusplus)
extern "C" mi_hidden mi_weak const char __ehdr_start[];
#else
extern mi_hidden mi_weak const char __ehdr_start[];
#endif

bool _mi_prim_is_unloadable(void) {
#if defined(MI_SHARED_LIB)
  return false;
#endif
  int       saved = errno;
  uintptr_t segments = (uintptr_t)getauxval(AT_PHDR);
  errno = saved;
  return __ehdr_start != NULL && segments - (uintptr_t)__ehdr_start >= _mi_prim_os_page_size();
}

// ---- threads --------------------------------------------------------------------------------------------------------

// By hand: nothing of libc may be called yet, and errno is thread-local itself.
mi_bare bool _mi_prim_has_thread_storage(void) {
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

// The headers of the kernel may be missing beside a C library.
#define PRIM_FUTEX_WAIT        128 // FUTEX_WAIT_PRIVATE
#define PRIM_FUTEX_WAKE        129 // FUTEX_WAKE_PRIVATE
#define PRIM_FUTEX_CMP_REQUEUE 132 // FUTEX_CMP_REQUEUE_PRIVATE

// With pointers of 32 bits, a C library may have time of 64 bits.  The kernel has a call for that, since 5.1; there, or where a filter
// of system calls does not know it, the older one is good enough for a timeout.  Some kernels and systems have the new one only.
static long prim_futex(const void* word, int op, uint32_t value, int64_t timeout_ms, const void* other) {
  struct timespec t;
#if defined(SYS_futex_time64)
  static mi_atomic(bool) is_old;
  if (sizeof(time_t) > sizeof(long) && !mi_load_relaxed(&is_old)) {
    long result = syscall(SYS_futex_time64, word, op, value, _mi_posix_process_timeout(timeout_ms, &t), other, 0);
    if (result >= 0 || (errno != ENOSYS && errno != EPERM)) return result;
    mi_store_relaxed(&is_old, true);
  }
#endif
#if defined(SYS_futex_time64) && defined(SYS_futex)
  long two[] = {(long)(timeout_ms / 1000), (long)(timeout_ms % 1000) * 1000000};
  return syscall(SYS_futex, word, op, value, timeout_ms < 0 ? NULL : two, other, 0);
#elif defined(SYS_futex)
  return syscall(SYS_futex, word, op, value, _mi_posix_process_timeout(timeout_ms, &t), other, 0);
#else
  return -1;
#endif
}

void _mi_prim_wait(mi_atomic(uint32_t)* word, uint32_t expected, int64_t timeout_ms) {
  int saved = errno;
  prim_futex((const void*)word, PRIM_FUTEX_WAIT, expected, timeout_ms, NULL);
  errno = saved;
}

void _mi_prim_wake(mi_atomic(uint32_t)* word, bool all) {
  int saved = errno;
  prim_futex((const void*)word, PRIM_FUTEX_WAKE, all ? 0x7fffffff : 1, -1, NULL);
  errno = saved;
}

// The call compares the word with 0, and is told to wake and to move nobody.  Filters of system calls know it: locks need it.
bool _mi_prim_is_written(const void* word) {
  int  saved = errno;
  bool is = (prim_futex(word, PRIM_FUTEX_CMP_REQUEUE, 0, -1, word) != 0 && errno == EAGAIN);
  errno = saved;
  return is;
}

// ---- guarded blocks: stacks -----------------------------------------------------------------------------------------

uintptr_t _mi_prim_thread_id(void) {
  return (uintptr_t)syscall(SYS_gettid);
}

bool _mi_prim_thread_is_main(void) {
  return _mi_prim_thread_id() == (uintptr_t)getpid();
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

// ---- modules --------------------------------------------------------------------------------------------------------

typedef struct prim_visit_s {
  bool (*visit)(const mi_module_t* module, void* arg);
  void* arg;
  bool  is_first; // that is the program
} prim_visit_t;

#define PRIM_NOTE_BUILD_ID 3 // of "GNU"

// A note is three words (sizes of name and contents, type), a name and contents, each rounded up to words.
static void prim_find_build_id(mi_module_t* module, const char* at, size_t size) {
  while (size >= 12) {
    uint32_t head[3];
    memcpy(head, at, sizeof(head));
    size_t name = mi_align_up(head[0], 4), contents = mi_align_up(head[1], 4);
    if (name > size - 12 || contents > size - 12 - name) return;
    if (head[2] == PRIM_NOTE_BUILD_ID && head[0] == 4 && memcmp(at + 12, "GNU", 4) == 0) {
      module->build_id = (const uint8_t*)at + 12 + name;
      module->n_build_id = head[1];
      return;
    }
    at += 12 + name + contents;
    size -= 12 + name + contents;
  }
}

static int prim_visit_object(struct dl_phdr_info* info, size_t size, void* arg) {
  prim_visit_t* v = (prim_visit_t*)arg;
  char          path[PATH_MAX];
  mi_module_t   module = {0, 0, 0, info->dlpi_name, NULL, 0, v->is_first};
  (void)size;
  if (v->is_first) {
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    path[n > 0 ? n : 0] = 0;
    module.name = path;
  }
  v->is_first = false;
  for (size_t i = 0; i < info->dlpi_phnum; i++) {
    if (info->dlpi_phdr[i].p_type == PT_NOTE && module.n_build_id == 0)
      prim_find_build_id(&module, (const char*)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr),
                         info->dlpi_phdr[i].p_memsz);
  }
  for (size_t i = 0; i < info->dlpi_phnum; i++) {
    if (info->dlpi_phdr[i].p_type != PT_LOAD || (info->dlpi_phdr[i].p_flags & PF_X) == 0) continue;
    uintptr_t start = (uintptr_t)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    size_t    rest = start % _mi_prim_os_page_size();
    module.start = start - rest;
    module.end = mi_align_up(start + info->dlpi_phdr[i].p_memsz, _mi_prim_os_page_size());
    module.offset = info->dlpi_phdr[i].p_offset - rest;
    if (!v->visit(&module, v->arg)) return 1;
  }
  return 0;
}

void _mi_prim_modules(bool (*visit)(const mi_module_t* module, void* arg), void* arg) {
  prim_visit_t v = {visit, arg, true};
  int          saved = errno;
  dl_iterate_phdr(&prim_visit_object, &v);
  errno = saved;
}
