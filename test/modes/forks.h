// Many forks of a process whose other threads keep the allocator busy until the moment of each, and rest while the child
// runs: they would only slow it down, tenfold on a machine with few processors, and what they then do the child never sees.
#pragma once

#include <mimalloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "../check.h"
#include "support.h"

#if TEST_TSAN
// The allocator's own thread starts in the child as soon as there is something to give back.
const char* __tsan_default_options(void);
const char* __tsan_default_options(void) {
  return "die_after_fork=0";
}
#endif

enum { child_seconds = 30 };

static pthread_mutex_t rest_lock = PTHREAD_MUTEX_INITIALIZER; // held by the forking thread while others are to rest
static atomic_bool     rest_is_due;

// The other threads call this often.
static inline void rest_if_due(void) {
  if (!atomic_load_explicit(&rest_is_due, memory_order_relaxed)) return;
  pthread_mutex_lock(&rest_lock);
  pthread_mutex_unlock(&rest_lock);
}

// In the parent, after the fork.
static inline void rest_begin(void) {
  pthread_mutex_lock(&rest_lock);
  atomic_store(&rest_is_due, true);
}

// When this returns all have run again for a while, and are wherever they are.
static inline void rest_end(void) {
  atomic_store(&rest_is_due, false);
  pthread_mutex_unlock(&rest_lock);
  sleep_ms(2);
}

static inline pid_t fork_child(size_t number, int (*run_child)(size_t number)) {
  fflush(stdout);
  pid_t pid = fork();
  if (pid != 0) return pid;
  alarm(child_seconds); // a lock that nobody will release shows as a death by SIGALRM
  signal(SIGALRM, SIG_DFL);
  int code = run_child(number);
  if (number % 2 == 0 || TEST_SANITIZED) _exit(code); // a leak check in a child of many threads proves nothing
  exit(code);
}

// Each child ends with the result of run_child, 0 if all was well: at once, or with all that is done at exit.
static inline void fork_often(size_t n_forks, int (*run_child)(size_t number)) {
  size_t n_bad = 0;
  n_forks = TEST_SANITIZED ? 50 : n_forks * (test_scale() > 10 ? 10 : test_scale());
  for (size_t n = 0; n < n_forks && n_bad < 5; n++) {
    int   status = 0;
    pid_t pid = fork_child(n, run_child);
    rest_begin();
    if (pid < 0 || waitpid(pid, &status, 0) != pid) status = -1;
    n_bad += (status != 0);
    CHECK_FOR(status == 0, "fork %zu: status %x", n, (unsigned)status);
    rest_end();
    mi_free(mi_malloc(100)); // the parent goes on
  }
  printf("%zu forks\n", n_forks);
}
