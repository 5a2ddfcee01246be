// Proves: after its start a process may shut itself in with the system calls that malloc of the C library makes (and a
// `write`): allocating, freeing, resizing, messages, and what is printed at the exit make no others, whatever the options, and with no
// other arguments than docs/design/prim.md lists.  A process may shut out the calls that change scheduling before it starts its first
// thread.  And the library's thread, if it is shut in as well, ends with the calls that the end of any thread makes.
//
// Each run is a child of its own, whose first forbidden call is caught and named.
#include "../check.h"
#include <mimalloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "base/mode.h"
#include "tasks.h"

#if !defined(__has_include) || !__has_include(<linux/seccomp.h>) || !defined(SYS_mmap) || !defined(SYS_seccomp)
int main(void) {
  test_skip("everything", "there is no seccomp");
  return skip_code;
}
#else
  #include <linux/filter.h>
  #include <linux/seccomp.h>

// ---- the sandbox ----------------------------------------------------------------------------------------------------

static const long allowed[] = {SYS_mmap,  SYS_munmap, SYS_mprotect,      SYS_mremap,     SYS_madvise, SYS_brk,
                               SYS_futex, SYS_write,  SYS_clock_gettime, SYS_exit_group, SYS_exit,    SYS_rt_sigreturn};

enum { N_ALLOWED = COUNT_OF(allowed), NO_SANDBOX = 3, FORBIDDEN = 4 };

// Filters look at arguments, too.  Memory that is tagged has a protection of its own.
typedef struct argument_s {
  long     call;
  size_t   which; // from 0 on
  uint32_t values[7];
  size_t   n_values;
} argument_t;

static const argument_t arguments[] = {
  #if !MI_TAGS
    {SYS_mmap, 2, {PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE}, 3},
    {SYS_mprotect, 2, {PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE}, 3},
  #endif
    {SYS_madvise,
     2,
     {MADV_NORMAL, MADV_DONTNEED, 8 /* MADV_FREE */, MADV_HUGEPAGE, MADV_NOHUGEPAGE, 22 /* MADV_POPULATE_READ */,
      23 /* MADV_POPULATE_WRITE */},
     7},
    {SYS_futex,
     1,
     {128 /* FUTEX_WAIT_PRIVATE */, 129 /* FUTEX_WAKE_PRIVATE */, 132 /* FUTEX_CMP_REQUEUE_PRIVATE */},
     3},
};

static void on_forbidden(int sig, siginfo_t* info, void* context) {
  char text[64];
  (void)sig;
  (void)context;
  snprintf(text, sizeof(text), "forbidden: system call %d\n", info->si_syscall);
  if (write(2, text, strlen(text)) < 0) _exit(FORBIDDEN);
  _exit(FORBIDDEN);
}

static struct sock_filter filter_make(unsigned short code, unsigned char yes, unsigned char no, uint32_t k) {
  struct sock_filter f;
  f.code = code;
  f.jt = yes;
  f.jf = no;
  f.k = k;
  return f;
}

static void enter_program(struct sock_filter* filter, size_t n, unsigned flags) {
  struct sock_fprog program;
  struct sigaction  action;
  program.len = (unsigned short)n;
  program.filter = filter;
  memset(&action, 0, sizeof(action));
  action.sa_sigaction = &on_forbidden;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSYS, &action, NULL);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) _exit(NO_SANDBOX);
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) != 0) _exit(NO_SANDBOX);
}

// What happens with the calls in the list, and with all others.
static void enter_filter(const long* calls, size_t n_calls, uint32_t listed, uint32_t other, unsigned flags) {
  struct sock_filter filter[N_ALLOWED + 4];
  size_t             n = 0;
  filter[n++] = filter_make(BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr));
  for (size_t i = 0; i < n_calls; i++) { // to the last instruction
    filter[n++] = filter_make(BPF_JMP | BPF_JEQ | BPF_K, (unsigned char)(n_calls - i), 0, (uint32_t)calls[i]);
  }
  filter[n++] = filter_make(BPF_RET | BPF_K, 0, 0, other);
  filter[n++] = filter_make(BPF_RET | BPF_K, 0, 0, listed);
  enter_program(filter, n, flags);
}

// One call, with the values that an argument may have.
static void enter_argument(const argument_t* a) {
  struct sock_filter filter[COUNT_OF(a->values) + 5];
  const uint32_t     one = 1;
  size_t             n = 0, low = (*(const char*)&one == 1 ? 0 : 4); // half of the argument
  uint32_t           at = (uint32_t)(offsetof(struct seccomp_data, args) + a->which * sizeof(uint64_t) + low);
  filter[n++] = filter_make(BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr));
  filter[n++] = filter_make(BPF_JMP | BPF_JEQ | BPF_K, 0, (unsigned char)(a->n_values + 2), (uint32_t)a->call);
  filter[n++] = filter_make(BPF_LD | BPF_W | BPF_ABS, 0, 0, at);
  for (size_t i = 0; i < a->n_values; i++) { // to the last instruction
    filter[n++] = filter_make(BPF_JMP | BPF_JEQ | BPF_K, (unsigned char)(a->n_values - i), 0, a->values[i]);
  }
  filter[n++] = filter_make(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_TRAP);
  filter[n++] = filter_make(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
  enter_program(filter, n, 0);
}

static void enter_sandbox(void) {
  for (size_t i = 0; i < COUNT_OF(arguments); i++) enter_argument(&arguments[i]);
  enter_filter(allowed, N_ALLOWED, SECCOMP_RET_ALLOW, SECCOMP_RET_TRAP, 0);
}

// ---- the first thread -----------------------------------------------------------------------------------------------

static void* allocate_in_thread(void* arg) {
  mi_free(mi_malloc(100));
  return library_task_comes() ? arg : NULL;
}

static void start_first_thread(void) {
  static const long scheduling[] = {SYS_sched_setaffinity, SYS_sched_setscheduler, SYS_sched_setattr,
                                    SYS_sched_setparam, SYS_setpriority};
  pthread_t         thread;
  int               status = 0;
  void*             result = NULL;
  enter_filter(scheduling, COUNT_OF(scheduling), SECCOMP_RET_TRAP, SECCOMP_RET_ALLOW, 0);
  if (pthread_create(&thread, NULL, &allocate_in_thread, &status) != 0) _exit(1);
  if (pthread_join(thread, &result) != 0) _exit(1);
  _exit(result == &status ? 0 : 2);
}

static void check_first_thread(void) {
  int   status = -1;
  pid_t child = fork();
  if (child == 0) start_first_thread();
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_FOR(status == 0, "the first thread: status %x", (unsigned)status);
}

// ---- the end of the library's thread ----------------------------------------------------------------------------------

// It has threads no more when all of them are shut in, but for the library's.
static void end_all_inside(const atomic_bool* may_end) {
  long      calls[N_ALLOWED + 1];
  pthread_t thread;
  int       status = 0;
  if (pthread_create(&thread, NULL, &allocate_in_thread, &status) != 0) _exit(1);
  if (pthread_join(thread, NULL) != 0) _exit(1);
  memcpy(calls, allowed, sizeof(allowed));
  calls[N_ALLOWED] = SYS_rt_sigprocmask; // by libc
  enter_filter(calls, N_ALLOWED + 1, SECCOMP_RET_ALLOW, SECCOMP_RET_TRAP, SECCOMP_FILTER_FLAG_TSYNC);
  while (!atomic_load(may_end)) mi_free(mi_malloc(100));
  _exit(0);
}

static bool has_one_thread(pid_t pid) {
  char path[64], text[4096];
  snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
  return read_file(path, text, sizeof(text)) > 0 && strstr(text, "\nThreads:\t1\n") != NULL &&
         strstr(text, "\nSeccomp:\t2\n") != NULL;
}

static void check_end(void) {
  int          status = -1;
  atomic_bool* may_end =
      (atomic_bool*)mmap(NULL, sizeof(*may_end), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(may_end != MAP_FAILED);
  pid_t child = fork();
  if (child == 0) end_all_inside(may_end);
  pid_t ended = 0;
  while (ended == 0 && !has_one_thread(child)) {
    ended = waitpid(child, &status, WNOHANG);
    sleep_ms(5);
  }
  atomic_store(may_end, true);
  if (ended == 0) CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_FOR(status == 0, "the end of the library's thread: status %x", (unsigned)status);
}

// ---- the work -------------------------------------------------------------------------------------------------------

enum { N_BLOCKS = 2000, N_STEPS = 20000 };
static void* blocks[N_BLOCKS];

static void free_all(void) {
  for (size_t i = 0; i < N_BLOCKS; i++) {
    mi_free(blocks[i]);
    blocks[i] = NULL;
  }
}

// Time passes, in which memory may go back.
static void spin_ms(int64_t ms) {
  double end = now_seconds() + (double)ms / 1000;
  while (now_seconds() < end) mi_free(mi_malloc(100));
}

static void work_small(rng_t* r) {
  for (size_t step = 0; step < N_STEPS; step++) {
    size_t i = rng_below(r, N_BLOCKS);
    size_t max = (step % 500 == 0 ? 3 * MiB : 2000);
    mi_free(blocks[i]);
    blocks[i] = (step % 3 == 0 ? mi_zalloc(rng_size(r, max)) : mi_malloc(rng_size(r, max)));
    if (step % 5 == 0) blocks[i] = mi_realloc(blocks[i], rng_size(r, max));
    if (step % 7 == 0) mi_free(mi_malloc_aligned(rng_size(r, max), (size_t)16 << rng_below(r, 12)));
  }
}

static void work_large(void) {
  for (int i = 0; i < 3; i++) {
    char* p = (char*)mi_malloc(50 * MiB);
    if (p != NULL) memset(p, 1, 5 * MiB);
    p = (char*)mi_reallocf(p, 90 * MiB);
    if (p != NULL) p[89 * MiB] = 1;
    mi_free(p);
    mi_free(mi_malloc_aligned(10 * MiB, 2 * MiB));
    spin_ms(10);
  }
}

// More than one region has, where they are small.
static void work_many(void) {
  for (size_t i = 0; i < 200; i++) {
    blocks[i] = mi_malloc(MiB);
    if (blocks[i] != NULL) memset(blocks[i], 1, 100);
  }
  free_all();
}

static void work_heaps(void) {
  for (int i = 0; i < 20; i++) {
    mi_heap_t* heap = mi_heap_new();
    for (size_t k = 0; k < 1000; k++) blocks[k] = mi_heap_malloc(heap, k);
    if (i % 2 == 0) mi_heap_destroy(heap);
    else mi_heap_delete(heap);
    if (i % 2 == 0) memset(blocks, 0, sizeof(blocks));
    free_all();
  }
}

  #if defined(MI_XMALLOC) && MI_XMALLOC
    #define MI_ENDS_ON_OOM 1
  #else
    #define MI_ENDS_ON_OOM 0
  #endif

// Errors that do not end the process.
static void work_failing(void) {
  if (!MI_ENDS_ON_OOM) mi_free(mi_malloc(hidden(PTRDIFF_MAX)));
  mi_option_set(mi_option_allow_thp, -5);
}

static int run_inside(void) {
  rng_t r = rng_make(20401);
  void* first = mi_malloc(100);
  enter_sandbox();
  mi_free(first);
  work_small(&r);
  free_all();
  work_large();
  work_many();
  work_heaps();
  work_failing();
  mi_collect(false);
  mi_collect(true);
  blocks[0] = mi_malloc(1000); // for those who look for leaks
  mi_thread_done();
  return 0;
}

// ---- the runs -------------------------------------------------------------------------------------------------------

typedef struct case_s {
  const char* name;
  const char* setting;
  const char* says;          // what there must be in the output
  size_t      address_space; // 0: no limit
} case_t;

static const case_t cases[] = {
    {"default", "A=1", "", 0},
    {"statistics", "MIMALLOC_SHOW_STATS=1", "elapsed:", 0},
    {"verbose", "MIMALLOC_VERBOSE=1", "process done", 0},
    {"all messages", "MIMALLOC_VERBOSE=2", "numa nodes:", 0},
    {"errors", "MIMALLOC_SHOW_ERRORS=1", "is out of range", 0},
    {"leaks", "MIMALLOC_SHOW_LEAKS=1", "", 0},
    {"purge at once", "MIMALLOC_PURGE_DELAY=0", "", 0},
    {"purge late", "MIMALLOC_PURGE_DELAY=1", "", 0},
    {"purge by advice", "MIMALLOC_PURGE_DECOMMITS=0", "", 0},
    {"huge pages", "MIMALLOC_ALLOW_THP=2", "", 0},
    {"large pages", "MIMALLOC_ALLOW_LARGE_OS_PAGES=1", "", 0},
    {"memory of its own", "MIMALLOC_RESERVE_OS_MEMORY=128M", "", 0},
    {"guarded, all", "MIMALLOC_GUARDED_SAMPLE_RATE=1", "", 0},
    {"guarded, some", "MIMALLOC_GUARDED_SAMPLE_RATE=50", "", 0},
    {"guarded, few", "MIMALLOC_GUARDED_SAMPLE_RATE=2000", "", 0},
    {"small regions", "MIMALLOC_ARENA_RESERVE=32M", "", 0},
    {"published", "MIMALLOC_PUBLISH=1", "", 0},
    {"a limit", "MIMALLOC_LIMIT=80%", "", 0},
    {"a soft limit", "MIMALLOC_LIMIT_SOFT=1M", "", 0},
    {"a soft limit that a block crosses when it grows", "MIMALLOC_LIMIT_SOFT=64M", "", 0},
    {"little retained", "MIMALLOC_RETAIN=1%", "", 0},
    {"limited", "A=1", "", GiB},
};

static void start_inside(const case_t* c) {
  const char* const environment[] = {c->setting, NULL};
  const char* const arguments[] = {"inside", NULL};
  struct rlimit     limit = {c->address_space, c->address_space};
  if (c->address_space != 0 && setrlimit(RLIMIT_AS, &limit) != 0) _exit(NO_SANDBOX);
  execve("/proc/self/exe", (char* const*)(uintptr_t)arguments, (char* const*)(uintptr_t)environment);
  _exit(NO_SANDBOX);
}

// Its exit status, and the end of what it says.
static int run_case(const case_t* c, char* text, size_t size) {
  int    fds[2], status = 0;
  size_t length = 0;
  if (pipe(fds) != 0) return NO_SANDBOX;
  pid_t child = fork();
  if (child == 0) {
    alarm(120);
    dup2(fds[1], 1);
    dup2(fds[1], 2);
    close(fds[0]);
    start_inside(c);
  }
  close(fds[1]);
  for (ssize_t n; (n = read(fds[0], text + length, size - 1 - length)) > 0;) {
    length += (size_t)n;
    if (length < size - 1) continue;
    memmove(text, text + size / 2, length - size / 2);
    length -= size / 2;
  }
  text[length] = 0;
  close(fds[0]);
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

int main(int argc, char** argv) {
  static char text[256 * 1024];
  if (argc > 0 && strcmp(argv[0], "inside") == 0) return run_inside();
  if (TEST_SANITIZED || MI_TRACK) {
    test_skip("filters of system calls", "tools make calls of their own");
    return skip_code;
  }
  watchdog(600);
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    int status = run_case(&cases[i], text, sizeof(text));
    if (status == NO_SANDBOX) {
      test_skip(cases[i].name, "there is no sandbox here");
      return skip_code;
    }
    const char* fault = strstr(text, "forbidden:");
    CHECK_FOR(status == 0, "%s: status %d, %s", cases[i].name, status, fault != NULL ? fault : text);
    CHECK_FOR(strstr(text, cases[i].says) != NULL, "%s: no '%s'", cases[i].name, cases[i].says);
  }
  check_first_thread();
  check_end();
  return check_result();
}
#endif
