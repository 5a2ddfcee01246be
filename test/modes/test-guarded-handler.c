// Proves: guarded mode leaves the program's own handling of faults as it was.  Without the mode there is no handler; with
// it a fault that is not its business, and after the report also one that is, goes on to what was there before: a handler
// with its flags, mask and stack, the default action, or nothing.
#include "../check.h"
#include <mimalloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "base/mode.h"
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

// What the kernel itself needs, and 4 KiB.  Below it there is nothing.
static void case_small_stack(void) {
  stack_t stack;
  size_t  kernel_size = 2048;
#if defined(AT_MINSIGSTKSZ)
  if (getauxval(AT_MINSIGSTKSZ) != 0) kernel_size = getauxval(AT_MINSIGSTKSZ);
#endif
  char* room = (char*)mmap(NULL, 32 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(room, 4096, PROT_NONE);
  memset(&stack, 0, sizeof(stack));
  stack.ss_sp = room + 4096;
  stack.ss_size = (kernel_size + 4096 + 63) / 64 * 64;
  sigaltstack(&stack, NULL);
  install(&on_fault_simple, SA_ONSTACK);
  switch_on();
  fault_guarded();
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
    {"handler, foreign", &case_handler_foreign, 0, "handler", REPORT, false},
    {"handler, guarded", &case_handler_guarded, 0, "allocated by thread", "other signal", true},
    {"handler, guarded, is called", &case_handler_guarded, 0, "handler\n", "other signal", false},
    {"repair", &case_repair, 0, "handler\nwent on", REPORT, false},
    {"leave", &case_leave, 0, "went on", "other signal", false},
    {"reset hand", &case_reset_hand, SIGSEGV, "handler\n", REPORT, false},
    {"alternate stack", &case_alternate_stack, 0, "alternate stack", REPORT, false},
    {"small stack", &case_small_stack, 0, "handler\n", "other signal", false},
    {"small stack, report", &case_small_stack, 0, "allocated by thread", "other signal", true},
    {"ignored", &case_ignored, SIGSEGV, "went on", REPORT, false},
    {"ignored, guarded", &case_ignored_guarded, SIGSEGV, REPORT ": buffer overflow", "went on", true},
    {"sent", &case_sent, SIGSEGV, "", "went on", false},
    {"sent to a handler", &case_sent_to_handler, 0, "handler", REPORT, false},
    {"thread", &case_thread, SIGSEGV, REPORT ": buffer overflow", "went on", false},
    {"fork", &case_fork, SIGSEGV, "the child died", "the child lives", false},
    {"off again", &case_off_again, SIGSEGV, REPORT ": use after free: read", "went on", false},
};

static void check_case(const case_t* c) {
  static char output[8192];
  int         fds[2], status = 0;
  size_t      n = 0;
  ssize_t     got;
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
}

int main(void) {
  if (TEST_SANITIZED) {
    struct sigaction before, after;
    sigaction(SIGSEGV, NULL, &before);
    switch_on();
    mi_free(mi_malloc(100));
    sigaction(SIGSEGV, NULL, &after);
    CHECK(before.sa_handler == after.sa_handler); // the sanitizer's handler stays
    return check_result();
  }
  if (MI_TRACK) return 77; // nothing is guarded, and so there are no such faults
  watchdog(300);
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    if (!MI_HARDENED || !cases[i].is_later) check_case(&cases[i]);
  }
  return check_result();
}
