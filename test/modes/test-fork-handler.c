// Proves: in a process with one thread a handler of a signal may fork, whatever it interrupts.  The parent goes on; the child may end
// in the handler, or leave it and go on with what was interrupted.
#include "../check.h"
#include <mimalloc.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include "support.h"

extern char __libc_single_threaded __attribute__((weak));

enum { n_blocks = 100, n_forks = 300, child_steps = 500, child_seconds = 60 };

static void*                 blocks[n_blocks];
static volatile sig_atomic_t forks, n_bad;
static volatile sig_atomic_t is_child; // one that has left the handler

// Every second child leaves the handler.
static void on_alarm(int number) {
  int saved = errno, status = 0;
  (void)number;
  pid_t pid = (is_child ? -1 : fork());
  if (pid == 0 && forks % 2 == 0) _exit(0);
  if (pid == 0) {
    alarm(child_seconds);
    is_child = 1;
  }
  if (pid > 0) {
    if (waitpid(pid, &status, 0) != pid || status != 0) n_bad++;
    forks++;
  }
  errno = saved;
}

static void step(rng_t* rng) {
  size_t i = rng_below(rng, n_blocks);
  size_t size = 1 + (rng_below(rng, 4) > 0 ? rng_below(rng, 2000) : rng_below(rng, 2 * MiB));
  mi_free(blocks[i]);
  blocks[i] = mi_malloc(size);
  *(char*)blocks[i] = 1;
}

static int child_goes_on(rng_t* rng) {
  for (size_t i = 0; i < child_steps; i++) step(rng);
  for (size_t i = 0; i < n_blocks; i++) mi_free(blocks[i]);
  return mi_heap_check(NULL) ? 0 : 1;
}

int main(int argc, char** argv) {
  rng_t            rng = rng_make(test_seed(argc, argv));
  struct sigaction action;
  if (TEST_SANITIZED || &__libc_single_threaded == NULL || !__libc_single_threaded) {
    test_skip("forks", "it is not known that there is one thread");
    return skip_code;
  }
  watchdog(250);
  memset(&action, 0, sizeof(action));
  action.sa_handler = &on_alarm;
  action.sa_flags = SA_RESTART;
  CHECK_EQ(sigaction(SIGPROF, &action, NULL), 0);
  for (int n = 0; forks < n_forks; n++) {
    struct itimerval timer = {{0, 0}, {0, 1 + (suseconds_t)rng_below(&rng, 1500)}};
    sig_atomic_t     before = forks;
    CHECK_EQ(setitimer(ITIMER_PROF, &timer, NULL), 0);
    while (forks == before && !is_child) step(&rng);
    if (is_child) return child_goes_on(&rng);
  }
  CHECK_EQ(n_bad, 0);
  for (size_t i = 0; i < n_blocks; i++) mi_free(blocks[i]);
  CHECK(mi_heap_check(NULL));
  printf("%d forks\n", (int)forks);
  return check_result();
}
