// Proves: in the child of a fork one thread may delete or destroy a heap while another makes its first allocation, and so takes over
// what the threads that the child does not have had: blocks of a deleted heap stay as they are, and none is given twice.
#include "../check.h"
#include <mimalloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>
#include "support.h"

enum { n_of_heap = 4000, n_others = 1000, n_forks = 40, block_size = 16000, child_seconds = 100 };

static atomic_bool may_go, is_ready, is_over;
static size_t*     of_heap[n_of_heap];
static size_t*     others[2 * n_others];

static void* wait_for_end(void* arg) {
  mi_free(mi_malloc(1000));
  while (!atomic_load(&is_over)) sleep_ms(2);
  return arg;
}

static void* return_at_once(void* arg) {
  return arg;
}

static void allocate_others(size_t first) {
  for (size_t i = first; i < first + n_others; i++) {
    others[i] = (size_t*)mi_malloc(block_size);
    *others[i] = i;
  }
}

static void* take_over(void* arg) {
  atomic_store(&is_ready, true);
  while (!atomic_load(&may_go)) {
  }
  allocate_others(0);
  return arg;
}

// Status of the child: 0 when all is well.
static int run_child(mi_heap_t* heap, bool is_deleted) {
  pthread_t thread;
  alarm(child_seconds);
  if (pthread_create(&thread, NULL, &take_over, NULL) != 0) return 1;
  while (!atomic_load(&is_ready)) {
  }
  atomic_store(&may_go, true);
  if (is_deleted) mi_heap_delete(heap);
  else mi_heap_destroy(heap);
  pthread_join(thread, NULL);
  allocate_others(n_others);
  for (size_t i = 0; i < COUNT_OF(others); i++) {
    if (*others[i] != i) return 2;
  }
  for (size_t i = 0; is_deleted && i < n_of_heap; i++) {
    if (*of_heap[i] != ~i) return 3;
  }
  return 0;
}

static void check_forks(bool is_deleted) {
  mi_heap_t* heap = mi_heap_new();
  pthread_t  thread;
  for (size_t i = 0; i < n_of_heap; i++) {
    of_heap[i] = (size_t*)mi_heap_malloc(heap, block_size);
    *of_heap[i] = ~i;
  }
  for (size_t i = 0; i < n_forks; i++) {
    int status = -1;
    CHECK_EQ(pthread_create(&thread, NULL, &return_at_once, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    pid_t pid = fork();
    if (pid == 0) _exit(run_child(heap, is_deleted));
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK_FOR(status == 0, "%s, fork %zu: status %x", is_deleted ? "delete" : "destroy", i, (unsigned)status);
  }
  mi_heap_destroy(heap);
}

int main(int argc, char** argv) {
  pthread_t thread;
  test_seed(argc, argv);
  if (TEST_TSAN) {
    test_skip("everything", "ThreadSanitizer knows no threads in the child of a fork that left threads behind");
    return skip_code;
  }
  watchdog(250);
  if (getenv("MIMALLOC_BACKGROUND_THREAD") == NULL) { // without it the two meet more often
    setenv("MIMALLOC_BACKGROUND_THREAD", "0", 1);
    execv("/proc/self/exe", argv);
  }
  CHECK_EQ(pthread_create(&thread, NULL, &wait_for_end, NULL), 0);
  sleep_ms(20);
  check_forks(false);
  check_forks(true);
  atomic_store(&is_over, true);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  return check_result();
}
