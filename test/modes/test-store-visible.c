// Shows what the design takes for granted where it has no barrier between two threads: a store is visible to other processors a
// round later, whatever the processor that made it does.  Two threads store, each to a word of its own, and then load that of the
// other, without a fence.  Both may find the old value when they load at once; never when the second one waits for a
// millisecond first, and the first one's load came before its wait.
#include "../check.h"
#include <pthread.h>
#include <stdatomic.h>
#include "support.h"

enum { n_at_once = 200000, n_waiting = 400, part_seconds = 3, cache_line = 128, wait_ns = 1000000 };

#define TURN_LAST UINT32_MAX // there is no other try

typedef struct word_s {
  _Alignas(cache_line) atomic_uint value;
} word_t;

static word_t      inside, asked; // the thread that enters stores the first and loads the second
static word_t      turn, answer;  // the number of the try; what the first thread found, and the try
static const char* what;

static void* enter(void* arg) {
  (void)arg;
  for (unsigned n = 0, next;; n = next) {
    while ((next = atomic_load_explicit(&turn.value, memory_order_acquire)) == n) {
    }
    if (next == TURN_LAST) return NULL;
    atomic_store_explicit(&inside.value, next, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    bool found = (atomic_load_explicit(&asked.value, memory_order_relaxed) == next);
    atomic_store_explicit(&answer.value, 2 * next + found, memory_order_release);
  }
}

static void pause_ns(uint64_t ns) {
  double end = now_seconds() + (double)ns * 1e-9;
  while (ns > 0 && now_seconds() < end) {
  }
}

// How often neither has seen the other.
static unsigned count_missed(unsigned tries, uint64_t ns) {
  pthread_t thread;
  unsigned  n_missed = 0, found, n = 0;
  double    end = now_seconds() + part_seconds;
  atomic_store(&turn.value, 0);
  CHECK_EQ(pthread_create(&thread, NULL, &enter, NULL), 0);
  while (n < tries && now_seconds() < end) {
    atomic_store_explicit(&turn.value, ++n, memory_order_release);
    for (volatile unsigned i = 0; i < n % 64; i = i + 1) { // to meet the other one
    }
    atomic_store_explicit(&asked.value, n, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    pause_ns(ns);
    bool sees = (atomic_load_explicit(&inside.value, memory_order_relaxed) == n);
    while ((found = atomic_load_explicit(&answer.value, memory_order_acquire)) / 2 != n) {
    }
    n_missed += (!sees && found % 2 == 0);
  }
  atomic_store(&turn.value, TURN_LAST);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  printf("%s: %u of %u missed\n", what, n_missed, n);
  return n_missed;
}

int main(void) {
  if (TEST_SANITIZED || sysconf(_SC_NPROCESSORS_ONLN) < 2) {
    test_skip("visibility", "a sanitizer orders what the test leaves open, or there is one processor");
    return skip_code;
  }
  watchdog(200);
  what = "at once";
  count_missed(n_at_once, 0);
  what = "a millisecond later";
  CHECK_EQ(count_missed(n_waiting * (unsigned)test_scale(), wait_ns), 0);
  return check_result();
}
