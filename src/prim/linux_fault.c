// Faults on Linux: the handler, and what it asks the system for.  Layer: prim.
//
// LF1  Up to the call of what was there before, the handler calls nothing of libc (syscall.h says why), and has no thread-local
//      variables, whose first use may allocate.  So the compiler must find nothing to copy or to fill for which it would call
//      memcpy or memset.
// LF2  Below the frame that the kernel makes, it takes at most MI_FAULT_STACK bytes, what prim_on_fault calls included: an
//      alternate stack may have little more than the kernel needs (512 bytes to 11 KiB, by the registers of the processor).
//      What was there before is called when nearly all of that is free again.
// LF3  No locks and no memory but the stack: any number of threads may be in it.
#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE
#endif
#include "prim.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>

#include "syscall.h"

// ---- signals, as the kernel knows them ------------------------------------------------------------------------------

#define PRIM_SIGNALS_SIZE ((size_t)(_NSIG / CHAR_BIT)) // of its set of signals

typedef struct prim_signals_s {
  unsigned long words[PRIM_SIGNALS_SIZE / sizeof(unsigned long)];
} prim_signals_t;

static void prim_signals_change(int how, const void* set, void* before) {
  _mi_syscall(SYS_rt_sigprocmask, (uintptr_t)how, (uintptr_t)set, (uintptr_t)before, PRIM_SIGNALS_SIZE);
}

static void prim_signals_unblock(int sig) {
  const unsigned bits = CHAR_BIT * sizeof(unsigned long);
  prim_signals_t set;
  for (size_t i = 0; i < sizeof(set.words) / sizeof(set.words[0]); i++) {
    set.words[i] = ((unsigned)(sig - 1) / bits == i ? 1ul << ((unsigned)(sig - 1) % bits) : 0);
  }
  prim_signals_change(SIG_UNBLOCK, &set, NULL);
}

// All zero is the default action, however the kernel's structure is laid out.
static void prim_signals_default(int sig) {
  static const unsigned long action[16] = {0};
  _mi_syscall(SYS_rt_sigaction, (uintptr_t)sig, (uintptr_t)action, 0, PRIM_SIGNALS_SIZE);
}

static void prim_signals_raise(int sig) {
  long process = _mi_syscall(SYS_getpid, 0, 0, 0, 0);
  long thread = _mi_syscall(SYS_gettid, 0, 0, 0, 0);
  _mi_syscall(SYS_tgkill, (uintptr_t)process, (uintptr_t)thread, (uintptr_t)sig, 0);
}

// ---- the handler ----------------------------------------------------------------------------------------------------

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

// Not inlined: its stack is free again when the handler that was there before is called.
static mi_noinline void prim_fault_report(const siginfo_t* info, void* context) {
  mi_fault_t fault;
  prim_fault_describe(&fault, info, context);
  prim_on_fault(&fault);
}

// As the kernel would have called it.
static void prim_fault_call_before(int sig, siginfo_t* info, void* context) {
  const struct sigaction* before = &prim_fault_before;
  unsigned                flags = (unsigned)before->sa_flags;
  void (*action)(int, siginfo_t*, void*) = before->sa_sigaction;
  void (*handler)(int) = before->sa_handler;
  prim_signals_t saved;
  prim_signals_change(SIG_BLOCK, &before->sa_mask, &saved);
  if ((flags & SA_NODEFER) != 0) prim_signals_unblock(sig);
  if ((flags & SA_RESETHAND) != 0) {
    prim_fault_before.sa_handler = SIG_DFL;
    prim_fault_before.sa_flags = 0;
  }
  if ((flags & SA_SIGINFO) != 0) action(sig, info, context);
  else handler(sig);
  prim_signals_change(SIG_SETMASK, &saved, NULL);
}

// si_code > 0: the kernel says so, not somebody's kill(2).
static void prim_fault_handler(int sig, siginfo_t* info, void* context) {
  bool is_fault = (info->si_code > 0);
  if (is_fault) prim_fault_report(info, context);
  bool is_siginfo = (prim_fault_before.sa_flags & SA_SIGINFO) != 0;
  if (!is_siginfo && prim_fault_before.sa_handler == SIG_IGN && !is_fault) {
    // nothing to do
  }
  else if (!is_siginfo && (prim_fault_before.sa_handler == SIG_DFL || prim_fault_before.sa_handler == SIG_IGN)) {
    // The access is tried again and ends the process, with a core of the place where it happened.
    prim_signals_default(sig);
    if (!is_fault) prim_signals_raise(sig); // it is blocked until we return
  }
  else {
    prim_fault_call_before(sig, info, context);
  }
}

// An inaccessible page is SIGSEGV on Linux; SIGBUS is for what lies behind the end of a file, and none of our business.
int _mi_prim_fault_init(void (*on_fault)(const mi_fault_t* fault)) {
  struct sigaction action, before;
  int              saved = errno;
  prim_on_fault = on_fault;
  memset(&action, 0, sizeof(action));
  action.sa_sigaction = &prim_fault_handler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  // Two calls: the handler may run as soon as it is there, and another thread may have made it be there.
  int err = (sigaction(SIGSEGV, NULL, &before) == 0 ? 0 : errno);
  if (err == 0 && before.sa_sigaction != &prim_fault_handler) {
    prim_fault_before = before;
    err = (sigaction(SIGSEGV, &action, NULL) == 0 ? 0 : errno);
  }
  errno = saved;
  return err;
}

void _mi_prim_fault_stop(void) {
  struct sigaction action;
  int              saved = errno;
  if (prim_on_fault != NULL && sigaction(SIGSEGV, NULL, &action) == 0 && action.sa_sigaction == &prim_fault_handler) {
    sigaction(SIGSEGV, &prim_fault_before, NULL);
  }
  errno = saved;
}

// ---- the mappings of the process ------------------------------------------------------------------------------------
// A line of /proc/self/maps is "start-end rwxp offset major:minor inode   path".  It is read character by character, so that
// no line needs a buffer (LF2).

typedef struct prim_maps_s {
  int  fd;
  long at, n;
  char buffer[256];
} prim_maps_t;

// The next character, 0 at the end.
static char prim_maps_get(prim_maps_t* maps) {
  if (maps->at == maps->n) {
    maps->at = 0;
    maps->n = _mi_syscall(SYS_read, (uintptr_t)maps->fd, (uintptr_t)maps->buffer, sizeof(maps->buffer), 0);
    if (maps->n <= 0) maps->n = 0;
    if (maps->n == 0) return 0;
  }
  return maps->buffer[maps->at++];
}

// A number of hexadecimal digits and what follows it, which is read, too.
static uintptr_t prim_maps_number(prim_maps_t* maps, char* next) {
  uintptr_t value = 0;
  for (;;) {
    char c = *next = prim_maps_get(maps);
    if (c >= '0' && c <= '9') value = value * 16 + (uintptr_t)(c - '0');
    else if (c >= 'a' && c <= 'f') value = value * 16 + (uintptr_t)(c - 'a' + 10);
    else return value;
  }
}

typedef struct prim_mapping_s {
  uintptr_t start, end, offset;
  uintptr_t device, inode; // any numbers that tell files apart; inode 0: of no file
} prim_mapping_t;

// All of a line but the path; false at the end.
static bool prim_maps_line(prim_maps_t* maps, prim_mapping_t* m, char* next) {
  m->start = prim_maps_number(maps, next);
  if (*next == 0) return false;
  m->end = prim_maps_number(maps, next);
  do { // the permissions
    *next = prim_maps_get(maps);
  } while (*next != 0 && *next != ' ');
  m->offset = prim_maps_number(maps, next);
  m->device = prim_maps_number(maps, next) << 20;
  m->device += prim_maps_number(maps, next);
  m->inode = prim_maps_number(maps, next); // decimal, but no two are the same
  return *next != 0;
}

// The rest of a line: the path, as much of it as there is room for.
static void prim_maps_path(prim_maps_t* maps, char next, char* name, size_t size) {
  size_t n = 0;
  while (next == ' ') next = prim_maps_get(maps);
  for (; next != 0 && next != '\n'; next = prim_maps_get(maps)) {
    if (n + 1 < size) name[n++] = next;
  }
  name[n] = 0;
}

// The addresses of a file count from the last mapping of its beginning.
static bool prim_maps_find(prim_maps_t* maps, uintptr_t address, char* name, size_t size, uintptr_t* offset) {
  prim_mapping_t line;
  uintptr_t      start = 0, device = 0, inode = 0; // of that mapping
  char           next;
  while (prim_maps_line(maps, &line, &next)) {
    if (line.offset == 0 && line.inode != 0) {
      start = line.start;
      device = line.device;
      inode = line.inode;
    }
    bool   is_it = (address >= line.start && address < line.end);
    size_t room = (is_it ? size : 1);
    prim_maps_path(maps, next, name, room);
    if (!is_it) continue;
    bool has_start = (line.inode != 0 && line.inode == inode && line.device == device);
    *offset = address - (has_start ? start : line.start - line.offset);
    return name[0] != 0;
  }
  return false;
}

static bool prim_maps_open(prim_maps_t* maps) {
  static const char path[] = "/proc/self/maps";
  maps->fd = (int)_mi_syscall(SYS_openat, (uintptr_t)(long)AT_FDCWD, (uintptr_t)path, O_RDONLY | O_CLOEXEC, 0);
  maps->at = maps->n = 0;
  return maps->fd >= 0;
}

static void prim_maps_close(const prim_maps_t* maps) {
  _mi_syscall(SYS_close, (uintptr_t)maps->fd, 0, 0, 0);
}

bool _mi_prim_find_module(uintptr_t address, char* name, size_t size, uintptr_t* offset) {
  prim_maps_t maps;
  if (size == 0 || !prim_maps_open(&maps)) return false;
  bool found = prim_maps_find(&maps, address, name, size, offset);
  prim_maps_close(&maps);
  return found;
}

// Is what the rest of a line has behind the last slash this name?  A file that was removed has " (deleted)" there, too.
static bool prim_maps_is_file(prim_maps_t* maps, char next, const char* name) {
  const char* s = NULL; // what has to follow; NULL: it is another name
  for (; next != 0 && next != '\n'; next = prim_maps_get(maps)) {
    if (next == '/') s = name;
    else if (s != NULL) s = (*s == next ? s + 1 : NULL);
  }
  return s != NULL && *s == 0;
}

bool _mi_prim_file_is_mapped(const char* name) {
  prim_maps_t    maps;
  prim_mapping_t line;
  char           next;
  bool           is_mapped = false;
  if (!prim_maps_open(&maps)) return false;
  while (!is_mapped && prim_maps_line(&maps, &line, &next)) is_mapped = prim_maps_is_file(&maps, next, name);
  prim_maps_close(&maps);
  return is_mapped;
}
