// Proves: a thread past its exit that allocates makes rounds only when it has let go of the lock of late theaps, which whoever ends a
// heap or forks takes after the locks of a round.
#include <pthread.h>
#include "../check.h"
#include "../modes/support.h"
#include "heap/event.h"
#include "heap/late.h"
#include "heap/thread.h"
#include "mimalloc.h"

enum { n_blocks = 4000, waits_ms = 60000 }; // on a busy machine a new thread waits for its turn

static void* blocks[n_blocks];
static bool  is_late; // the thread of the test is past its exit
static int   n_polls, n_locked;

static void* take_lock(void* has_it) {
  _mi_late_lock();
  _mi_late_unlock();
  __atomic_store_n((bool*)has_it, true, __ATOMIC_RELEASE);
  return NULL;
}

// In place of a round: can another thread have the lock?  (If not it is waited for when the block is there.)
static void poll(bool wake) {
  static bool      has_it[n_blocks];
  static pthread_t thread;
  (void)wake;
  if (!is_late || n_locked > 0) return;
  bool* flag = &has_it[n_polls++ % n_blocks];
  *flag = false;
  if (pthread_create(&thread, NULL, &take_lock, flag) != 0) return;
  for (int i = 0; i < waits_ms && !__atomic_load_n(flag, __ATOMIC_ACQUIRE); i++) sleep_ms(1);
  // winpthreads loses threads that are detached at once
  if (__atomic_load_n(flag, __ATOMIC_ACQUIRE)) pthread_join(thread, NULL);
  else n_locked++;
}

static void* end_early(void* arg) {
  mi_free(mi_malloc(64));
  _mi_thread_release(true);
  is_late = true;
  for (size_t i = 0; i < n_blocks; i++) blocks[i] = mi_malloc(16 + i % 8 * 100);
  is_late = false;
  return arg;
}

int main(void) {
  watchdog(60);
  pthread_t thread;
  mi_option_set(mi_option_purge_delay, -1); // no thread of ours
  mi_free(mi_malloc(1));
  _mi_event_register(&poll);
  mi_store_relaxed(&_mi_event_wanted, true);
  pthread_create(&thread, NULL, &end_early, NULL);
  pthread_join(thread, NULL);
  mi_store_relaxed(&_mi_event_wanted, false);
  CHECK_FOR(n_polls > 8, "%d polls", n_polls);
  CHECK_EQ(n_locked, 0);
  for (size_t i = 0; i < n_blocks; i++) CHECK(blocks[i] != NULL);
  for (size_t i = 0; i < n_blocks; i++) mi_free(blocks[i]);
  return check_result();
}
