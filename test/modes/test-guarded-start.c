// Proves: who switches guarded mode on goes on when faults are reported, also while another thread is just doing the same.
#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE // RTLD_NEXT
#endif
#include "../check.h"
#include <dlfcn.h>
#include <mimalloc.h>
#include <pthread.h>
#include <signal.h>
#include "base/atomic.h"
#include "base/mode.h"
#include "support.h"

static mi_atomic(uint32_t) stage;

enum { NOT_YET, BEGUN, FIRST_SETS, OTHER_IS_DONE }; // NOT_YET: some builds have a handler from the start

static int system_sigaction(int sig, const struct sigaction* action, struct sigaction* before) {
  static int (*next)(int, const struct sigaction*, struct sigaction*);
  if (next == NULL) next = (int (*)(int, const struct sigaction*, struct sigaction*))dlsym(RTLD_NEXT, "sigaction");
  return next(sig, action, before);
}

#if !TEST_TSAN && !TEST_ASAN // which have a function of their own by this name
// The library calls this one.  The first thread that sets the action of the signal stops there until the other one is done.
int sigaction(int sig, const struct sigaction* action, struct sigaction* before) {
  uint32_t expected = BEGUN;
  if (sig == SIGSEGV && action != NULL && mi_cas_strong(&stage, &expected, (uint32_t)FIRST_SETS, acq_rel, relaxed)) {
    while (mi_load_acquire(&stage) != OTHER_IS_DONE) sched_yield();
  }
  return system_sigaction(sig, action, before);
}
#endif

static void* switch_on(void* arg) {
  mi_option_set(mi_option_guarded_sample_rate, 1);
  return arg;
}

static bool has_handler(void) {
  struct sigaction now;
  return system_sigaction(SIGSEGV, NULL, &now) == 0 && ((now.sa_flags & SA_SIGINFO) != 0 || now.sa_handler != SIG_DFL);
}

int main(void) {
  pthread_t first;
  watchdog(60);
  mi_free(mi_malloc(1)); // the library is in the program, and has begun
  if (TEST_SANITIZED || MI_TRACK || has_handler()) {
    test_skip("the first thread that switches the mode on",
              "this build has a handler, its own or that of a tool, from the start");
    return skip_code;
  }
  mi_store_release(&stage, (uint32_t)BEGUN);
  CHECK_EQ(pthread_create(&first, NULL, &switch_on, NULL), 0);
  while (mi_load_acquire(&stage) != FIRST_SETS) sched_yield();
  switch_on(NULL);
  CHECK(has_handler());
  mi_store_release(&stage, (uint32_t)OTHER_IS_DONE);
  pthread_join(first, NULL);
  CHECK(has_handler());
  return check_result();
}
