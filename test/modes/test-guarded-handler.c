// Proves: guarded mode leaves the program's own handling of faults as it was.  Without the mode there is no handler; with
// it a fault that is not its business, and after the report also one that is, goes on to what was there before: a handler
// with its flags, mask and stack, the default action, or nothing.  The report needs no more stack than it promises, whatever
// the kernel and the loader save of the processor's registers.
#include "../check.h"
#include <mimalloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "base/mode.h"
#include "prim/prim.h"
#include "support.h"

static volatile char sink;

// ---- what the children do -------------------------------------------------------------------------------------------

static void switch_on(void) {
  mi_option_set(mi_option_guarded_sample_rate, 1);
}

static void fault_foreign(void) {
  char* p = (char*)mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  sink = p[100];
}

static char* guarded_block;

static void fault_guarded(void) {
  guarded_block = (char*)hidden_pointer(mi_malloc(16));
  sink = guarded_block[16];
}

// The OS page in which the block ends is protected by the program: what is written there is no overflow that we know of.
static void fault_protected(void) {
  const size_t os_page = (size_t)sysconf(_SC_PAGESIZE);
  guarded_block = (char*)hidden_pointer(mi_malloc_aligned(os_page + 100, os_page));
  mprotect(guarded_block + os_page, os_page, PROT_READ);
  guarded_block[os_page + 100] = 1;
}

static void say(const char* text) {
  if (write(1, text, strlen(text)) < 0) _exit(97);
}

static sigjmp_buf way_out;

static void on_fault_simple(int sig) {
  say(sig == SIGSEGV ? "handler\n" : "other signal\n");
  _exit(7);
}

static void on_fault_leave(int sig) {
  (void)sig;
  say("handler\n");
  siglongjmp(way_out, 1);
}

static char* repaired_page;

static void on_fault_repair(int sig, siginfo_t* info, void* context) {
  sigset_t now;
  (void)context;
  sigprocmask(SIG_BLOCK, NULL, &now);
  if (sig != SIGSEGV || (char*)info->si_addr != repaired_page + 5) _exit(8);
  if (!sigismember(&now, SIGUSR1) || sigismember(&now, SIGUSR2)) _exit(9);
  say("handler\n");
  mprotect(repaired_page, 4096, PROT_READ);
}

static char alternate[256 * 1024];

static void on_fault_check_stack(int sig) {
  char here;
  (void)sig;
  say(&here >= alternate && &here < alternate + sizeof(alternate) ? "alternate stack\n" : "usual stack\n");
  _exit(7);
}

static void use_alternate_stack(void) {
  stack_t stack;
  memset(&stack, 0, sizeof(stack));
  stack.ss_sp = alternate;
  stack.ss_size = sizeof(alternate);
  sigaltstack(&stack, NULL);
}

static void install(void (*simple)(int), int flags) {
  struct sigaction action;
  memset(&action, 0, sizeof(action));
  action.sa_handler = simple;
  action.sa_flags = flags;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, NULL);
}

static int recurse(int n) {
  volatile char room[4096];
  room[0] = (char)n;
  return n == 0 ? 0 : recurse(n + 1) + room[0];
}

static bool handler_is(void (*handler)(int)) {
  struct sigaction action;
  sigaction(SIGSEGV, NULL, &action);
  return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == handler;
}

// ---- cases ----------------------------------------------------------------------------------------------------------

static void case_off(void) {
  mi_free(mi_malloc(100));
  mi_option_set(mi_option_guarded_precise, 1);
  mi_option_set(mi_option_guarded_min, 100);
  say(handler_is(SIG_DFL) ? "no handler\n" : "a handler\n");
  _exit(7);
}

static void case_default_foreign(void) {
  switch_on();
  fault_foreign();
}

static void case_default_guarded(void) {
  switch_on();
  fault_guarded();
}

static void case_default_protected(void) {
  switch_on();
  fault_protected();
}

static void case_handler_foreign(void) {
  install(&on_fault_simple, 0);
  switch_on();
  fault_foreign();
}

static void case_handler_guarded(void) {
  install(&on_fault_simple, 0);
  switch_on();
  fault_guarded();
}

static void case_repair(void) {
  struct sigaction action;
  memset(&action, 0, sizeof(action));
  action.sa_sigaction = &on_fault_repair;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaddset(&action.sa_mask, SIGUSR1);
  sigaction(SIGSEGV, &action, NULL);
  switch_on();
  repaired_page = (char*)mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  errno = 4711;
  sink = repaired_page[5];
  say(errno == 4711 ? "went on\n" : "errno\n");
  _exit(7);
}

// A program that leaves its handler by siglongjmp can do so again and again, and allocate afterwards.
static void case_leave(void) {
  volatile int n = 0;
  install(&on_fault_leave, 0);
  switch_on();
  if (sigsetjmp(way_out, 1) < 2 && n++ < 3) {
    if (n == 2) fault_foreign();
    fault_guarded();
  }
  for (int i = 0; i < 100; i++) mi_free(mi_malloc(100));
  say("went on\n");
  _exit(7);
}

static void case_reset_hand(void) {
  install(&on_fault_leave, (int)SA_RESETHAND);
  switch_on();
  if (sigsetjmp(way_out, 1) == 0) fault_foreign();
  fault_foreign(); // now the default action
}

static void case_alternate_stack(void) {
  use_alternate_stack();
  install(&on_fault_check_stack, SA_ONSTACK);
  switch_on();
  sink = (char)recurse(1); // the stack overflows: without the other one there is no place for any handler
}

// What the kernel puts on a stack before a handler runs: the registers of the processor that the process may use.
static size_t kernel_frame_max(void) {
  size_t size = 2048;
#if defined(AT_MINSIGSTKSZ)
  if (getauxval(AT_MINSIGSTKSZ) > size) size = (size_t)getauxval(AT_MINSIGSTKSZ);
#endif
  return size;
}

// An alternate stack with so much room below what the kernel needs.  Below that there is nothing.
static void use_small_stack(size_t room) {
  stack_t stack;
  size_t  size = (kernel_frame_max() + room + 63) / 64 * 64;
  size_t  n = (size + 4095) / 4096 * 4096;
  char*   start = (char*)mmap(NULL, n + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(start, 4096, PROT_NONE);
  memset(&stack, 0, sizeof(stack));
  stack.ss_sp = start + 4096;
  stack.ss_size = size;
  if (sigaltstack(&stack, NULL) != 0) _exit(96);
}

// Where the processor has tiles (AMX), frames are the largest once a process has used them: 11 KiB.
static void use_tiles(void) {
#if defined(__x86_64__) && defined(__LP64__)
  enum { ASK_FOR = 0x1023, TILE_DATA = 18 }; // arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILE_DATA)
  unsigned char config[64] = {1};            // palette 1
  if (syscall(SYS_arch_prctl, ASK_FOR, TILE_DATA) != 0) return;
  config[16] = 64; // bytes in a row, and rows, of tile 0
  config[48] = 16;
  __asm__ volatile(".byte 0xc4, 0xe2, 0x78, 0x49, 0x00" : : "a"(config) : "memory"); // ldtilecfg (%rax)
  __asm__ volatile(".byte 0xc4, 0xe2, 0x7b, 0x49, 0xc0");                            // tilezero %tmm0
#endif
}

// The report needs no more than it promises.
static void case_small_stack(void) {
  use_small_stack(MI_FAULT_STACK);
  switch_on();
  fault_guarded();
}

static void case_small_stack_tiles(void) {
  use_small_stack(MI_FAULT_STACK);
  use_tiles();
  switch_on();
  fault_guarded();
}

// The program's handler finds what it would have found, less a little.  Here it calls functions that are not bound yet, for
// which the loader saves all that the kernel has saved.
static void case_small_stack_handler(void) {
  use_small_stack(MI_FAULT_STACK + kernel_frame_max());
  install(&on_fault_simple, SA_ONSTACK);
  switch_on();
  fault_guarded();
}

// How much of the alternate stack is used below the frame of the kernel: it was painted before.  In this handler no function
// is called before that is known.
static void on_fault_measure(int sig, siginfo_t* info, void* context) {
  char*  frame = ((char*)info < (char*)context ? (char*)info : (char*)context);
  size_t untouched = 0;
  char   text[64];
  (void)sig;
  while (untouched < sizeof(alternate) && alternate[untouched] == 0x5A) untouched++;
  size_t used = (size_t)(frame - alternate) - untouched;
  snprintf(text, sizeof(text), "used %zu: %s\n", used, used <= MI_FAULT_STACK ? "little" : "too much");
  say(text);
  _exit(7);
}

static void case_measured(void) {
  struct sigaction action;
  memset(alternate, 0x5A, sizeof(alternate));
  use_alternate_stack();
  memset(&action, 0, sizeof(action));
  action.sa_sigaction = &on_fault_measure;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, NULL);
  switch_on();
  fault_guarded();
}

// The same where no function is ever bound, so that each call of one of another library saves all registers.
static void case_never_bound(void) {
  setenv("LD_BIND_NOT", "1", 1);
  execl("/proc/self/exe", "measured", (char*)NULL);
  _exit(95);
}

enum { N_FAULTING = 4 };
static int n_faulted; // atomically

static void on_fault_gather(int sig) {
  (void)sig;
  __atomic_add_fetch(&n_faulted, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&n_faulted, __ATOMIC_SEQ_CST) < N_FAULTING) sleep_ms(1);
  say("all reported\n");
  _exit(7);
}

static void* fault_own(void* arg) {
  char* p = (char*)hidden_pointer(mi_malloc(16));
  pthread_barrier_wait((pthread_barrier_t*)arg);
  sink = p[16];
  return NULL;
}

// Each of several threads that fault at the same time gets its report before the program's handler runs.
static void case_threads_at_once(void) {
  pthread_barrier_t barrier;
  pthread_t         threads[N_FAULTING];
  pthread_barrier_init(&barrier, NULL, N_FAULTING);
  install(&on_fault_gather, 0);
  switch_on();
  for (size_t i = 0; i < N_FAULTING; i++) pthread_create(&threads[i], NULL, &fault_own, &barrier);
  for (size_t i = 0; i < N_FAULTING; i++) pthread_join(threads[i], NULL);
}

static void case_ignored(void) {
  signal(SIGSEGV, SIG_IGN);
  switch_on();
  raise(SIGSEGV);
  kill(getpid(), SIGSEGV);
  say("went on\n");
  fault_foreign(); // the kernel does not let this one be ignored
}

// What is ignored does not switch the reports off.
static void case_ignored_guarded(void) {
  signal(SIGSEGV, SIG_IGN);
  switch_on();
  raise(SIGSEGV);
  fault_guarded();
}

static void case_sent(void) {
  switch_on();
  raise(SIGSEGV);
  say("went on\n");
}

static void case_sent_to_handler(void) {
  install(&on_fault_simple, 0);
  switch_on();
  kill(getpid(), SIGSEGV);
  sleep_ms(1000);
}

static void* fault_guarded_of_thread(void* arg) {
  (void)arg;
  fault_guarded();
  return NULL;
}

static void case_thread(void) {
  pthread_t thread;
  switch_on();
  pthread_create(&thread, NULL, &fault_guarded_of_thread, NULL);
  pthread_join(thread, NULL);
}

static void case_fork(void) {
  switch_on();
  pid_t child = fork();
  if (child == 0) fault_guarded();
  int status = 0;
  waitpid(child, &status, 0);
  say(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV ? "the child died\n" : "the child lives\n");
  fault_guarded();
}

// Off again: the blocks that there are stay guarded.
static void case_off_again(void) {
  switch_on();
  guarded_block = (char*)hidden_pointer(mi_malloc(32));
  mi_option_set(mi_option_guarded_sample_rate, 0);
  for (int i = 0; i < 1000; i++) mi_free(mi_malloc(32));
  mi_free(guarded_block);
  sink = guarded_block[3];
}

typedef struct case_s {
  const char* name;
  void (*run)(void);
  int         signal;   // that ends it, 0: exit code 7
  const char* says;     // what must be in its output
  const char* says_not; // ... and must not
  bool        is_later; // our handler comes after the program's: hardened builds have it from the start
} case_t;

#define REPORT "mimalloc: error"

static const case_t cases[] = {
    {"off", &case_off, 0, "no handler", REPORT, true},
    {"default, foreign", &case_default_foreign, SIGSEGV, "", REPORT, false},
    {"default, guarded", &case_default_guarded, SIGSEGV, REPORT ": buffer overflow", "went on", false},
    {"default, protected", &case_default_protected, SIGSEGV, "", REPORT, false},
    {"handler, foreign", &case_handler_foreign, 0, "handler", REPORT, false},
    {"handler, guarded", &case_handler_guarded, 0, "allocated by thread", "other signal", true},
    {"handler, guarded, is called", &case_handler_guarded, 0, "handler\n", "other signal", false},
    {"repair", &case_repair, 0, "handler\nwent on", REPORT, false},
    {"leave", &case_leave, 0, "went on", "other signal", false},
    {"reset hand", &case_reset_hand, SIGSEGV, "handler\n", REPORT, false},
    {"alternate stack", &case_alternate_stack, 0, "alternate stack", REPORT, false},
    {"small stack", &case_small_stack, SIGSEGV, "allocated by thread", "went on", false},
    {"small stack, tiles", &case_small_stack_tiles, SIGSEGV, "allocated by thread", "went on", false},
    {"small stack, handler", &case_small_stack_handler, 0, "handler\n", "other signal", false},
    {"small stack, handler, report", &case_small_stack_handler, 0, "allocated by thread", "other signal", true},
    {"measured", &case_measured, 0, ": little", "too much", true},
    {"measured, with a report", &case_measured, 0, "allocated by thread", "too much", true},
    {"never bound", &case_never_bound, 0, ": little", "too much", true},
    {"threads at once", &case_threads_at_once, 0, "all reported", "other signal", true},
    {"ignored", &case_ignored, SIGSEGV, "went on", REPORT, false},
    {"ignored, guarded", &case_ignored_guarded, SIGSEGV, REPORT ": buffer overflow", "went on", true},
    {"sent", &case_sent, SIGSEGV, "", "went on", false},
    {"sent to a handler", &case_sent_to_handler, 0, "handler", REPORT, false},
    {"thread", &case_thread, SIGSEGV, REPORT ": buffer overflow", "went on", false},
    {"fork", &case_fork, SIGSEGV, "the child died", "the child lives", false},
    {"off again", &case_off_again, SIGSEGV, REPORT ": use after free: read", "went on", false},
};

static void check_case(const case_t* c) {
  static char output[64 * 1024];
  int         fds[2], status = 0;
  size_t      n = 0;
  ssize_t     got;
  size_t      n_reports = 0;
  if (pipe(fds) != 0) return;
  pid_t child = fork();
  if (child == 0) {
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    alarm(60);
    dup2(fds[1], 1);
    dup2(fds[1], 2);
    close(fds[0]);
    c->run();
    _exit(3);
  }
  close(fds[1]);
  while ((got = read(fds[0], output + n, sizeof(output) - 1 - n)) > 0) n += (size_t)got;
  output[n] = 0;
  close(fds[0]);
  waitpid(child, &status, 0);
  if (c->signal != 0)
    CHECK_FOR(WIFSIGNALED(status) && WTERMSIG(status) == c->signal, "%s: status %x, %s", c->name, status, output);
  else CHECK_FOR(WIFEXITED(status) && WEXITSTATUS(status) == 7, "%s: status %x, %s", c->name, status, output);
  CHECK_FOR(strstr(output, c->says) != NULL, "%s: no '%s' in '%s'", c->name, c->says, output);
  CHECK_FOR(strstr(output, c->says_not) == NULL, "%s: '%s' in '%s'", c->name, c->says_not, output);
  for (const char* at = output; (at = strstr(at, REPORT)) != NULL; at++) n_reports++;
  if (c->run == &case_threads_at_once) CHECK_FOR(n_reports == N_FAULTING, "%zu reports in '%s'", n_reports, output);
}

int main(int argc, char** argv) {
  if (TEST_SANITIZED) {
    struct sigaction before, after;
    sigaction(SIGSEGV, NULL, &before);
    switch_on();
    mi_free(mi_malloc(100));
    sigaction(SIGSEGV, NULL, &after);
    CHECK(before.sa_handler == after.sa_handler); // the sanitizer's handler stays
    return check_result();
  }
  if (argc > 0 && strcmp(argv[0], "measured") == 0) case_measured();
  if (MI_TRACK) {
    test_skip("faults", "nothing is guarded in builds for tools");
    return skip_code;
  }
  watchdog(300);
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    if (!MI_HARDENED || !cases[i].is_later) check_case(&cases[i]);
  }
  return check_result();
}
