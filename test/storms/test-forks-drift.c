// Proves: a process forks while a thread of it makes blocks of sizes that drift, so that pages become gap pages, and blocks are cut out
// of gaps, freed and joined at each moment of a fork (heap/gaps.h).  Each child, which does not have that thread, finds its blocks whole;
// what it makes itself overlaps none of them; it can free them, and all that counts them agrees.
//
// 40 forks; 1360 with MI_TEST_SCALE=34 (make storms).
#include <sys/wait.h>

#include "storm.h"

enum { n_slots = 30000, n_mine = 6000, turns_per_size = 60000, child_seconds = 60 };

static const size_t means[] = {44, 100, 210, 480, 210, 100};

static _Atomic(void*) slots[n_slots];
static atomic_bool    must_stop;
static atomic_size_t  n_turns;

static void* drift(void* arg) {
  rng_t rng = rng_make((uint64_t)(uintptr_t)arg);
  for (size_t turn = 0; !atomic_load_explicit(&must_stop, memory_order_relaxed); turn++) {
    size_t mean = means[turn / turns_per_size % COUNT_OF(means)];
    void*  p = storm_get(&rng, mean / 2 + rng_below(&rng, mean));
    storm_put(atomic_exchange(&slots[rng_below(&rng, n_slots)], p));
    atomic_store_explicit(&n_turns, turn, memory_order_relaxed);
  }
  return NULL;
}

static size_t count_wrong(void) {
  size_t n = 0;
  for (size_t i = 0; i < n_slots; i++) n += (atomic_load(&slots[i]) != NULL && !storm_is_whole(atomic_load(&slots[i])));
  return n;
}

static int child_main(size_t number) {
  static void* mine[n_mine];
  rng_t        rng = rng_make(number);
  alarm(child_seconds);
  signal(SIGALRM, SIG_DFL);
  if (count_wrong() > 0) return 1;
  for (size_t i = 0; i < n_mine; i++) mine[i] = storm_get(&rng, 20 + rng_below(&rng, 900));
  if (count_wrong() > 0) return 2;
  if (number % 4 == 0 && !mi_heap_check(NULL)) return 3;
  for (size_t i = 0; i < n_slots; i++) storm_put(atomic_exchange(&slots[i], NULL));
  for (size_t i = 0; i < n_mine; i++) storm_put(mine[i]);
  if (atomic_load(&storm_n_wrong) > 0) return 4;
  mi_collect(true);
  return mi_heap_check(NULL) ? 0 : 5;
}

int main(int argc, char** argv) {
  uint64_t seed = test_seed(argc, argv);
  if (TEST_TSAN) {
    test_skip("forks under load", "ThreadSanitizer cannot follow threads into a child");
    return skip_code;
  }
  watchdog(200);
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, NULL, &drift, (void*)(uintptr_t)(seed + 1)), 0);
  while (atomic_load(&n_turns) < 2 * turns_per_size) sleep_ms(10);
  for (size_t n = 0, n_forks = (TEST_SANITIZED ? 10 : 40 * test_scale()); n < n_forks; n++) {
    int   status = -1;
    pid_t pid = fork();
    if (pid == 0) _exit(child_main(n));
    if (pid > 0) waitpid(pid, &status, 0);
    CHECK_FOR(status == 0, "fork %zu: status %x", n, (unsigned)status);
    sleep_ms(n % 7);
  }
  atomic_store(&must_stop, true);
  pthread_join(thread, NULL);
  CHECK_EQ(atomic_load(&storm_n_wrong), 0);
  return check_result();
}
