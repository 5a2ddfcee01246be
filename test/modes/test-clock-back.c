// Proves: where the system's clock goes back by a day, as in another time namespace or on another machine, free memory returns to the
// system all the same, while a thread works: in the process that this happens to while the library's thread waits, and in the child of a
// fork.
#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE
#endif
#include "../check.h"
#include <mimalloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include "support.h"

// Where it is not the clock of the system that goes back, but this function in place of libc's.
#if defined(__linux__) && defined(__LP64__) && !TEST_SANITIZED

  #include <sys/syscall.h>
  #include <sys/wait.h>
  #include <unistd.h>

static atomic_int days_back;

int clock_gettime(clockid_t clock, struct timespec* t) {
  long err = syscall(SYS_clock_gettime, clock, t);
  if (clock == CLOCK_MONOTONIC) t->tv_sec -= (time_t)atomic_load(&days_back) * 24 * 3600;
  return (int)err;
}

enum { n_blocks = 64, n_few = 1000, wait_ms = 20000 };

static pthread_barrier_t barrier;

// Holds 64 MiB until the clock has gone back, and then sleeps.
static void* work(void* arg) {
  static void* blocks[n_blocks];
  for (size_t i = 0; i < n_blocks; i++) blocks[i] = memset(mi_malloc(MiB), 1, MiB);
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  for (size_t i = 0; i < n_blocks; i++) mi_free(blocks[i]);
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  return arg;
}

// So that not all threads are idle: by more blocks than a bin has room for.
static void keep_busy(int ms) {
  static void* blocks[n_few];
  for (; ms > 0; ms -= 5) {
    for (size_t i = 0; i < n_few; i++) blocks[i] = mi_malloc(2000);
    for (size_t i = 0; i < n_few; i++) mi_free(blocks[i]);
    sleep_ms(5);
  }
}

static void check_returns(const char* what, int days) {
  pthread_t thread;
  size_t    before = rss_now();
  CHECK_EQ(pthread_create(&thread, NULL, &work, NULL), 0);
  pthread_barrier_wait(&barrier);
  sleep_ms(250); // the library's thread has made a round, and waits for the next
  CHECK(minus(rss_now(), before) > n_blocks * MiB / 2 || !rss_is_meaningful());
  atomic_fetch_add(&days_back, days);
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  int ms = 0;
  for (; ms < wait_ms && minus(rss_now(), before) > n_blocks * MiB / 4; ms += 50) keep_busy(50);
  CHECK_FOR(ms < wait_ms || !rss_is_meaningful(), "%s: %zu MiB are resident", what, minus(rss_now(), before) / MiB);
  pthread_barrier_wait(&barrier);
  pthread_join(thread, NULL);
}

static void check_child(void) {
  int   status = 1;
  pid_t child = fork();
  if (child == 0) {
    atomic_fetch_add(&days_back, 1);
    check_returns("child", 0);
    _exit(check_result());
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK_EQ(status, 0);
}

int main(void) {
  watchdog(120);
  pthread_barrier_init(&barrier, NULL, 2);
  check_returns("a day back", 1);
  check_child();
  return check_result();
}

#else

int main(void) {
  test_skip("a clock that goes back", "the program has no function in place of libc's here");
  return skip_code;
}

#endif
