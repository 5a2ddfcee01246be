// Proves: a process can end in every way (return, exit, quick_exit, _exit, abort, the last thread, another program in its place)
// while its threads are inside the allocator, with handlers that allocate and free; it neither hangs nor crashes.
#include "../check.h"
#include <mimalloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "support.h"

enum { n_workers = 4, exit_code = 7, child_seconds = 100, long_seconds = 5, must_end = 1 << 30 };
typedef enum way_e {
  by_return,
  by_exit,
  by_quick_exit,
  by_underscore_exit,
  by_thread_exit,
  by_other_thread,
  by_abort,
  by_exec,
  n_ways
} way_t;
static const char* const way_names[] = {"return",           "exit",  "quick_exit", "_exit", "pthread_exit",
                                        "exit in a thread", "abort", "exec"};

static atomic_size_t  n_rounds;
static _Atomic(void*) handed[32];
static atomic_int     is_ending;
static void*          held[100];

static void* work(void* arg) {
  rng_t rng = rng_make((uint64_t)(uintptr_t)arg);
  bool  ends = ((uintptr_t)arg & must_end) != 0; // when the process ends with its last thread, the workers must end too
  for (size_t n = 0; !ends || n < 2000; n++) {
    size_t kind = rng_below(&rng, 100);
    void*  p = mi_malloc(kind < 90 ? rng_size(&rng, 5000) : rng_size(&rng, 3 * MiB));
    mi_free(atomic_exchange(&handed[rng_below(&rng, COUNT_OF(handed))], p));
    if (kind == 5) mi_collect(false);
    atomic_fetch_add(&n_rounds, 1);
  }
  return NULL;
}

static void use_allocator(void) {
  for (size_t size = 1; size < 5 * MiB; size = size * 3 + 1) {
    char* p = (char*)mi_calloc(1, size);
    if (p == NULL || p[size - 1] != 0) _exit(50);
    p = (char*)mi_realloc(p, 2 * size);
    if (p == NULL) _exit(51);
    mi_free(p);
  }
}

static void at_exit_handler(void) {
  use_allocator();
  for (size_t i = 0; i < COUNT_OF(held); i++) {
    if (held[i] != NULL && pattern_check(held[i], 100 * i, i) != 100 * i) _exit(52);
    mi_free(held[i]);
    held[i] = NULL;
  }
}

// Runs after the allocator's own destructor, when that has no priority.
__attribute__((destructor(101))) static void very_late(void) {
  if (atomic_load(&is_ending) != 0) use_allocator();
}

static void* exit_from_thread(void* arg) {
  (void)arg;
  exit(exit_code);
}

// From a signal handler, with SIGABRT blocked in no thread: whoever is in the allocator stays there.
static void on_terminate(int number) {
  (void)number;
  abort();
}

static void exec_again(void) {
  char  setting[] = "MI_TEST_EXECED=1", name[] = "test-exit";
  char* arguments[] = {name, NULL};
  putenv(setting);
  test_exec(arguments, environ);
  _exit(56);
}

static int child_main(way_t way, size_t number) {
  alarm(child_seconds);
  signal(SIGALRM, SIG_DFL);
  struct rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core); // of those that abort
  atexit(&at_exit_handler);
#if defined(__GLIBC__)
  at_quick_exit(&at_exit_handler);
#endif
  atomic_store(&is_ending, 1);
  for (size_t i = 0; i < COUNT_OF(held); i++) {
    held[i] = mi_malloc(100 * i);
    pattern_fill(held[i], 0, 100 * i, i);
  }
  for (size_t i = 0; i < n_workers; i++) {
    pthread_t t;
    uintptr_t seed = (number * n_workers + i + 1) | (way == by_thread_exit ? (uintptr_t)must_end : 0);
    if (pthread_create(&t, NULL, &work, (void*)seed) != 0) _exit(53);
    pthread_detach(t);
  }
  while (atomic_load(&n_rounds) < 50 + number * 17 % 300) sched_yield();
  pthread_t t;
  switch (way) {
    case by_exit: exit(exit_code);
#if defined(__GLIBC__)
    case by_quick_exit: quick_exit(exit_code);
#else
    case by_quick_exit: _exit(exit_code);
#endif
    case by_underscore_exit: _exit(exit_code);
    case by_thread_exit: pthread_exit(NULL);
    case by_other_thread:
      if (pthread_create(&t, NULL, &exit_from_thread, NULL) != 0) _exit(54);
      pthread_join(t, NULL);
      _exit(55);
    case by_abort:
      signal(SIGTERM, &on_terminate);
      if (number % 2 == 0) abort();
      kill(getpid(), SIGTERM); // to any thread
      for (;;) sleep_ms(1000);
    case by_exec: exec_again(); return 57;
    default: return exit_code;
  }
}

static bool is_as_wanted(way_t way, int status) {
  if (way == by_abort) return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
  return WIFEXITED(status) && WEXITSTATUS(status) == (way == by_thread_exit ? 0 : exit_code);
}

int main(int argc, char** argv) {
  if (test_env("MI_TEST_EXECED", 0) != 0) {
    use_allocator();
    return exit_code;
  }
  test_seed(argc, argv);
  if (sizeof(void*) < 8) {
    test_skip("exit", "the flag in the threads' seeds needs 64 bits");
    return skip_code;
  }
  watchdog(120);
  size_t n_each = (TEST_SANITIZED ? 3 : 25) * test_scale();
  for (way_t way = 0; way < n_ways; way++) {
    size_t n = way == by_thread_exit ? n_each / 5 + 1 : n_each;
    for (size_t i = 0; i < n; i++) {
      if (TEST_TSAN && way == by_thread_exit) continue;
      if (way == by_exec && !test_can_exec()) continue;
      double seconds = long_seconds;
      for (int tries = 0; tries < 5 && seconds >= long_seconds; tries++) {
        double start = now_seconds();
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0) return child_main(way, i);
        int status = 0;
        waitpid(pid, &status, 0);
        CHECK_FOR(is_as_wanted(way, status), "%s, number %zu: status %x", way_names[way], i, (unsigned)status);
        seconds = now_seconds() - start;
      }
      // A thread of the allocator's own must not keep the process alive for long.  Other processes may, not each time.
      CHECK_FOR(TEST_SANITIZED || seconds < long_seconds, "%s, number %zu: %.1f s", way_names[way], i, seconds);
    }
  }
  return check_result();
}
