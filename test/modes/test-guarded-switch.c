// Proves: guarded mode can be switched on and off at any time under a thread that takes nothing but fast paths, while rounds take
// from threads that seem idle what they hold: no block is given twice, and the thread goes on.
#include "../check.h"
#include <mimalloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include "support.h"

enum { n_blocks = 6, n_switches = 150, gap_ms = 6 };

static atomic_bool   must_stop;
static atomic_size_t n_turns, n_twice;

static void* work(void* arg) {
  uintptr_t* blocks[n_blocks];
  while (!atomic_load(&must_stop)) {
    for (size_t i = 0; i < n_blocks; i++) {
      blocks[i] = (uintptr_t*)mi_malloc(64);
      *blocks[i] = i;
    }
    for (size_t i = 0; i < n_blocks; i++) {
      if (*blocks[i] != i) atomic_fetch_add(&n_twice, 1);
    }
    for (size_t i = n_blocks; i > 0; i--) mi_free(blocks[i - 1]);
    atomic_fetch_add(&n_turns, 1);
  }
  return arg;
}

// Does the thread still work?
static bool goes_on(void) {
  size_t before = atomic_load(&n_turns);
  double end = now_seconds() + 60;
  while (atomic_load(&n_turns) == before && now_seconds() < end) sleep_ms(1);
  return atomic_load(&n_turns) != before;
}

int main(int argc, char** argv) {
  pthread_t thread;
  void*     in_use[16];
  test_seed(argc, argv);
  watchdog(300);
  mi_option_set(mi_option_purge_delay, 1); // a round each millisecond
  for (size_t i = 0; i < COUNT_OF(in_use); i++)
    in_use[i] = memset(mi_malloc(500000), 1, 500000); // so that rounds are worth it
  CHECK_EQ(pthread_create(&thread, NULL, &work, NULL), 0);
  bool ok = true;
  for (size_t i = 0; ok && i < n_switches && atomic_load(&n_twice) == 0; i++) {
    sleep_ms(gap_ms);
    mi_option_set(mi_option_guarded_sample_rate, 4000);
    sleep_ms(gap_ms);
    mi_option_set(mi_option_guarded_sample_rate, 0);
    ok = goes_on();
  }
  CHECK(ok);
  CHECK_EQ(atomic_load(&n_twice), 0);
  if (!ok) return check_result(); // it cannot be joined
  atomic_store(&must_stop, true);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  for (size_t i = 0; i < COUNT_OF(in_use); i++) mi_free(in_use[i]);
  return check_result();
}
