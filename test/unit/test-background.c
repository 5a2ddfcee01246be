// Proves: the library's thread makes rounds while there may be something to do, or an observer, and sleeps without a timeout after
// some without work, also where the program has but one other thread; it says that it sleeps only then, and who wants a round wakes it.
#include <pthread.h>
#include "../check.h"
#include "../modes/support.h"
#include "arena/purge.h"
#include "heap/background.h"
#include "heap/event.h"
#include "mimalloc.h"
#include "prim/thread_exit.h"
#include "support/options.h"

enum { wait_ms = 30000, quiet_ms = 600 };

static pthread_mutex_t is_over = PTHREAD_MUTEX_INITIALIZER;

static void* wait_until_over(void* arg) {
  pthread_mutex_lock(&is_over);
  pthread_mutex_unlock(&is_over);
  return arg;
}

static pthread_t other_begin(void) {
  pthread_t other;
  pthread_mutex_lock(&is_over);
  CHECK_EQ(pthread_create(&other, NULL, &wait_until_over, NULL), 0);
  return other;
}

static void other_end(pthread_t other) {
  pthread_mutex_unlock(&is_over);
  pthread_join(other, NULL);
}

static uint32_t n_rounds(void) {
  return mi_load_relaxed(&_mi_event_round);
}

static bool sleeps(void) {
  return mi_load_relaxed(&_mi_event_wanted);
}

static bool sleeps_soon(void) {
  for (int ms = 0; ms < wait_ms && !sleeps(); ms++) sleep_ms(1);
  return sleeps();
}

static bool makes_rounds(uint32_t n) {
  uint32_t before = n_rounds();
  for (int ms = 0; ms < wait_ms && n_rounds() - before < n; ms++) sleep_ms(1);
  return n_rounds() - before >= n;
}

static void observe(mi_background_event_t event) {
  (void)event;
}

// BG6: a round is always due, and who does some work need not say so.
static void check_observed(void) {
  CHECK(makes_rounds(12) && !sleeps());
  _mi_background_observe(NULL);
}

// BG4
static void check_sleep(void) {
  CHECK(sleeps_soon());
  uint32_t before = n_rounds();
  sleep_ms(quiet_ms);
  CHECK(sleeps() && n_rounds() == before);
  _mi_event_wake();
  CHECK(makes_rounds(1));
}

// ---- a start that is refused (BG2) ------------------------------------------------------------------------------------

#if defined(__linux__) && !TEST_SANITIZED

static bool   is_refused;
static size_t n_tries;

// The library calls it for each try, and nobody else here does.
int pthread_attr_setstacksize(pthread_attr_t* attr, size_t size) {
  (void)attr, (void)size;
  n_tries++;
  return is_refused ? EAGAIN : 0;
}

static void check_refused(void) {
  enum { n_threads = 300 };
  is_refused = true;
  for (int i = 0; i < n_threads; i++) other_end(other_begin());
  printf("%zu tries for %d threads\n", n_tries, n_threads);
  CHECK(n_tries >= 2 && n_tries <= 20);
  is_refused = false;
  int n = 0;
  for (; n < 2 * n_threads && !_mi_purge_has_thread(); n++) other_end(other_begin());
  CHECK(n < 2 * n_threads);
}

#else
static void check_refused(void) {}
#endif

int main(void) {
  watchdog(240);
  mi_free(mi_malloc(1));
  if (!_mi_option_get_fast(mi_option_background_thread)) {
    test_skip("the library's thread", "this build has none");
    return skip_code;
  }
  CHECK(!sleeps());
  _mi_background_observe(&observe);
  CHECK(sleeps()); // there is no thread: whoever works looks at the clock
  _mi_background_observe(NULL);
  CHECK(!sleeps());
  _mi_background_observe(&observe);
  pthread_t other = other_begin();
  bool      is_watched = (_mi_prim_thread_watched() > 0);
  if (is_watched) check_observed();
  for (int i = 0; is_watched && i < 2; i++) check_sleep();
  other_end(other);
  if (is_watched) {
    for (int ms = 0; ms < wait_ms && _mi_purge_has_thread(); ms++) sleep_ms(1);
    check_refused();
  }
  if (!is_watched) test_skip("rounds of a thread", "the library is not told of the program's threads");
  return check_result();
}
