// Proves: libc may free with a lock held that starting a thread takes, as it does with what belonged to threads whose
// stacks it gives back: the allocator starts none then, though it has much to give back to the system; later it does.
#include "../check.h"
#include <mimalloc.h>
#include <pthread.h>
#include <sys/wait.h>
#include "support.h"

// libc keeps the stacks of threads that have ended, up to 40 MiB of them.
enum { n_threads = 1000, n_blocks = 200000, block_size = 100, limit_s = 60 };

static pthread_barrier_t all_run;

static void* wait_for_all(void* arg) {
  if (arg != NULL) pthread_barrier_wait(&all_run);
  return NULL;
}

static void run_threads(size_t n, size_t stack_size) {
  static pthread_t threads[n_threads];
  pthread_attr_t   attr;
  pthread_attr_init(&attr);
  pthread_attr_setstacksize(&attr, stack_size);
  pthread_barrier_init(&all_run, NULL, (unsigned)n);
  for (size_t i = 0; i < n; i++) CHECK_EQ(pthread_create(&threads[i], &attr, &wait_for_all, (void*)&all_run), 0);
  for (size_t i = 0; i < n; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
  pthread_attr_destroy(&attr);
}

static size_t thread_count(void) {
  char        text[4096];
  const char* at = (read_file("/proc/self/status", text, sizeof(text)) > 0 ? strstr(text, "\nThreads:") : NULL);
  return at == NULL ? 0 : (size_t)strtoull(at + strlen("\nThreads:"), NULL, 10);
}

static void* malloc_once(void* arg) {
  mi_free(mi_malloc(block_size));
  return arg;
}

static void release_stacks(void) {
  static void* blocks[n_blocks];
  pthread_t    thread;
  mi_option_set(mi_option_purge_delay, -1);
  // The library knows of other threads.
  CHECK_EQ(pthread_create(&thread, NULL, &malloc_once, NULL), 0);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  run_threads(n_threads, 32 * KiB);
  for (size_t i = 0; i < n_blocks; i++) blocks[i] = mi_malloc(block_size);
  for (size_t i = 0; i < n_blocks; i++) mi_free(blocks[i]);
  CHECK_EQ(thread_count(), 1);
  // Now there is much to give back, and no thread for it.
  mi_option_set(mi_option_purge_delay, 100);
  run_threads(1, 64 * MiB); // libc gives all that it has kept back
  for (size_t i = 0; i < n_blocks; i++) blocks[i] = mi_malloc(block_size);
  for (size_t i = 0; i < n_blocks; i++) mi_free(blocks[i]);
  mi_free(mi_malloc(3 * MiB));
  CHECK_EQ(thread_count(), 2);
}

int main(void) {
  if (TEST_SANITIZED || thread_count() == 0) {
    test_skip("stacks of threads", "the sanitizer has threads and stacks of its own, or /proc is missing");
    return skip_code;
  }
  // Whoever starts a thread holds all signals back, so that nothing but this ends a process that hangs there.
  pid_t pid = fork();
  if (pid == 0) {
    release_stacks();
    _exit(check_result());
  }
  int    status = 0;
  double start = now_seconds();
  while (waitpid(pid, &status, WNOHANG) == 0) {
    sleep_ms(10);
    if (now_seconds() > start + limit_s) kill(pid, SIGKILL);
  }
  CHECK_FOR(status == 0, "status %x", (unsigned)status);
  return check_result();
}
