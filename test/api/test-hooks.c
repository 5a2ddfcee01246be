// Proves: a function that the program registers is called with the argument that was registered with it, never with that of another,
// while other threads register others; and in the child of a fork too.  There is a function at any time: none of what happens
// meanwhile is missed.
#include "../check.h"
#include "../modes/support.h"
#include <mimalloc-limit.h>
#include <mimalloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

enum { n_collects = 2000000, n_refusals = 3000, n_forks = 400, n_errors = TEST_TSAN ? 20000 : 400000, n_threads = 3 };

static char        first, second; // what the two functions are registered with
static atomic_bool is_over;
static atomic_long n_calls, n_wrong;

static void note(const void* arg, const void* wanted) {
  n_calls++;
  if (arg != wanted) n_wrong++;
}

static void free_first(bool force, unsigned long long beat, void* arg) {
  (void)force, (void)beat;
  note(arg, &first);
}

static void free_second(bool force, unsigned long long beat, void* arg) {
  (void)force, (void)beat;
  note(arg, &second);
}

static void limit_first(mi_limit_event_t event, mi_heap_t* heap, size_t used, void* arg) {
  (void)event, (void)heap, (void)used;
  note(arg, &first);
}

static void limit_second(mi_limit_event_t event, mi_heap_t* heap, size_t used, void* arg) {
  (void)event, (void)heap, (void)used;
  note(arg, &second);
}

static void error_first(int err, void* arg) {
  (void)err;
  note(arg, &first);
}

static void error_second(int err, void* arg) {
  (void)err;
  note(arg, &second);
}

static void* exchange(void* arg) {
  while (!is_over) {
    mi_register_deferred_free(&free_first, &first);
    mi_limit_hook(&limit_first, &first);
    mi_register_error(&error_first, &first);
    mi_register_deferred_free(&free_second, &second);
    mi_limit_hook(&limit_second, &second);
    mi_register_error(&error_second, &second);
  }
  return arg;
}

static void check_calls(const char* what) {
  printf("%s: %ld calls\n", what, (long)n_calls);
  CHECK_FOR(n_calls > 0, "%s was not called", what);
  CHECK_FOR(n_wrong == 0, "%s: %ld of %ld calls with another's argument", what, (long)n_wrong, (long)n_calls);
  n_calls = n_wrong = 0;
}

static void check_deferred(size_t n) {
  n_calls = 0;
  for (size_t i = 0; i < n; i++) mi_collect(false);
  check_calls("the deferred free");
}

// The hook is called for the first request that is refused after one that was granted.
static void check_limit(size_t n) {
  mi_heap_t* heap = mi_heap_new();
  CHECK_EQ(mi_heap_limit_set(heap, 8 * MiB, 0), 0);
  n_calls = 0;
  for (size_t i = 0; i < n; i++) {
    CHECK(mi_heap_malloc(heap, 16 * MiB) == NULL);
    mi_free(mi_heap_malloc(heap, 2 * MiB));
  }
  check_calls("the hook of limits");
  mi_heap_delete(heap);
}

// Each is reported, though the threads that register functions are stopped anywhere.
static void check_errors(size_t n) {
  volatile size_t too_large = (size_t)PTRDIFF_MAX + 1;
  n_calls = 0;
  for (size_t i = 0; i < n; i++) CHECK(mi_malloc(too_large) == NULL);
  CHECK_FOR(n_calls == (long)n, "%ld calls for %zu errors", (long)n_calls, n);
  check_calls("the function for errors");
}

// The threads that register are somewhere within, and are not there any more.
static void check_forks(void) {
  for (int i = 0; i < n_forks; i++) {
    int   status = -1;
    pid_t child = fork();
    if (child == 0) {
      watchdog(20);
      check_deferred(1);
      check_errors(1);
      mi_register_deferred_free(&free_first, &first);
      mi_limit_hook(&limit_first, &first);
      check_deferred(3);
      check_limit(2);
      _exit(check_result());
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
  }
}

int main(void) {
  pthread_t threads[n_threads];
  watchdog(120);
  mi_option_set(mi_option_show_errors, 0);
  mi_register_deferred_free(&free_first, &first);
  mi_limit_hook(&limit_first, &first);
  mi_register_error(&error_first, &first);
  for (int i = 0; i < n_threads; i++) pthread_create(&threads[i], NULL, &exchange, NULL);
  check_deferred(n_collects);
  check_limit(n_refusals);
  check_errors(n_errors);
  fflush(NULL);
  if (!TEST_TSAN) check_forks();
  is_over = true;
  for (int i = 0; i < n_threads; i++) pthread_join(threads[i], NULL);
  return check_result();
}
