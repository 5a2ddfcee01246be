// Proves: the handler of errors, the output function and a handler of SIGABRT may use the library and fork when a fault was found
// while the library held a lock: it is said, once, when the thread holds none.
//
// The fault is found when a thread ends: what it has of a heap that is not its own goes back under the lock of the registry.
#include "../check.h"
#include <mimalloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include "base/mode.h"
#include "prim/lock.h"
#include "support.h"

static mi_heap_t* heap;
static int        n_errors, n_lines;

static void count_output(const char* text, void* arg) {
  (void)text;
  ++*(size_t*)arg;
}

// What takes most locks there are.
static void use_everything(void) {
  size_t n_written = 0;
  mi_stats_print_out(&count_output, &n_written);
  CHECK(n_written > 0);
  mi_collect(true);
  mi_free(mi_malloc(100));
  pid_t pid = fork();
  if (pid == 0) _exit(mi_malloc(100) != NULL ? 0 : 1);
  int status = -1;
  CHECK_EQ(waitpid(pid, &status, 0), pid);
  CHECK_EQ(status, 0);
}

static void on_error(int err, void* arg) {
  (void)arg;
  n_errors++;
  CHECK_EQ(err, EFAULT);
  use_everything();
}

static void on_output(const char* text, void* arg) {
  (void)arg;
  if (strstr(text, "corrupted") == NULL) return;
  n_lines++;
  use_everything();
}

// The link of a free block is overwritten; whoever reads it next is the end of the thread.
static void* damage(void* arg) {
  enum { n = 8 };
  uintptr_t* p[n];
  for (size_t i = 0; i < n; i++) p[i] = mi_heap_malloc(heap, 64);
  for (size_t i = 0; i < n; i++) mi_free(p[i]);
  for (size_t i = 0; i < n; i++) *p[i] ^= (uintptr_t)0x5A5A5A5A5A5AULL;
  return arg;
}

static void run_thread(void) {
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, NULL, &damage, NULL), 0);
  pthread_join(thread, NULL);
}

static void check_functions(void) {
  mi_register_error(&on_error, NULL);
  mi_register_output(&on_output, NULL);
  run_thread();
  CHECK_FOR(n_errors > 0, "%d errors", n_errors);
  CHECK_FOR(n_lines > 0, "%d lines", n_lines);
  mi_register_output(NULL, NULL);
  mi_register_error(NULL, NULL);
}

static void on_abort(int sig) {
  (void)sig;
  use_everything();
  _exit(check_result() == 0 ? 42 : 43);
}

static void check_abort(void) {
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    watchdog(60);
    signal(SIGABRT, &on_abort);
    run_thread();
    _exit(44);
  }
  int status = -1;
  CHECK_EQ(waitpid(pid, &status, 0), pid);
  CHECK_FOR(WIFEXITED(status) && WEXITSTATUS(status) == 42, "status %x", (unsigned)status);
}

int main(void) {
  watchdog(60);
  if (!MI_LOCK_COUNTED || MI_TRACK || TEST_SANITIZED) {
    test_skip("everything", "this build does not check links of free blocks, or a tool sees who writes to one");
    return skip_code;
  }
  mi_option_set(mi_option_show_errors, 1);
  heap = mi_heap_new();
  check_functions();
  check_abort();
  return check_result();
}
