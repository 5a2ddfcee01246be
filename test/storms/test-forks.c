// Proves: a process forks thousands of times while its threads allocate without a rest, with several children alive at a time:
// each child finds the blocks of all threads whole, can free them, start threads and fork again, and no page is left in the middle of
// what a thread was doing that it does not have; neither the process nor a child grows.
//
// 300 forks; 10^4 with MI_TEST_SCALE=34 (make storms).
#include <sys/wait.h>

#include "base/mode.h"
#include "storm.h"

enum { n_workers = 3, n_at_once = 4, child_seconds = 60, n_kept = 64 };

static void* kept[n_kept]; // of the forking thread

static void* short_life(void* arg) {
  rng_t rng = rng_make((uint64_t)(uintptr_t)arg);
  for (size_t i = 0; i < 50; i++) storm_step(&rng);
  return NULL;
}

// Opens and gives back chunks all the time, with the locks that this takes.
static void* churn(void* arg) {
  void* blocks[6];
  (void)arg;
  while (!atomic_load(&storm_must_stop)) {
    for (size_t i = 0; i < COUNT_OF(blocks); i++) blocks[i] = mi_malloc(600 * KiB + i * MiB / 2);
    for (size_t i = 0; i < COUNT_OF(blocks); i++) mi_free(blocks[i]);
    mi_collect(true);
  }
  return NULL;
}

// The others are gone.  What they had in hand is not ours to look at; what is in a slot was whole before it came there.
static int child_main(size_t number) {
  size_t before = rss_now();
  alarm(child_seconds);
  signal(SIGALRM, SIG_DFL);
  atomic_store(&storm_n_wrong, 0);
  if (number % 4 == 0 && !mi_heap_check(NULL)) return 6;
  for (size_t i = 0; i < n_kept; i++) {
    if (!storm_is_whole(kept[i])) return 1;
    if ((number + i) % 2 == 0) mi_free(kept[i]);
  }
  storm_clear();
  rng_t rng = rng_make(number);
  for (size_t i = 0; i < 200; i++) storm_step(&rng);
  if (number % 4 == 0 && !TEST_SANITIZED) {
    pthread_t t;
    if (pthread_create(&t, NULL, &short_life, (void*)(uintptr_t)number) != 0) return 2;
    pthread_join(t, NULL);
  }
  if (number % 10 == 0) {
    pid_t pid = fork();
    if (pid == 0) {
      storm_clear();
      _exit(atomic_load(&storm_n_wrong) != 0);
    }
    int status = -1;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) return 3;
  }
  storm_clear();
  // Pages that it has written to are its own now: those of the slots, and of the structures that it has used.
  if (rss_is_meaningful() && minus(rss_now(), before) > 16 * MiB) return 4;
  return atomic_load(&storm_n_wrong) == 0 ? 0 : 5;
}

static pid_t begin_child(size_t number) {
  fflush(stdout);
  pid_t pid = fork();
  if (pid != 0) return pid;
  int code = child_main(number);
  if (number % 2 == 0 || TEST_SANITIZED) _exit(code);
  exit(code);
}

static void end_child(pid_t pid, size_t number) {
  int status = -1;
  if (pid > 0) waitpid(pid, &status, 0);
  CHECK_FOR(status == 0, "fork %zu: status %x", number, (unsigned)status);
}

static void fork_many(size_t n_forks, storm_memory_t* memory) {
  pid_t pids[n_at_once];
  for (size_t n = 0; n < n_forks + n_at_once; n++) {
    pid_t* pid = &pids[n % n_at_once];
    if (n >= n_at_once) end_child(*pid, n - n_at_once);
    if (n < n_forks) *pid = begin_child(n);
    if (n % 50 == 0) storm_look(memory);
  }
  printf("%zu forks\n", n_forks);
}

int main(int argc, char** argv) {
  uint64_t     seed = test_seed(argc, argv);
  rng_t        rng = rng_make(seed);
  storm_load_t load;
  if (TEST_TSAN) {
    test_skip("forks under load", "ThreadSanitizer cannot follow threads into a child");
    return skip_code;
  }
  watchdog(200);
  for (size_t i = 0; i < n_kept; i++) kept[i] = storm_get(&rng, 10 + i * i);
  pthread_t churner;
  storm_begin(&load, n_workers, seed);
  CHECK_EQ(pthread_create(&churner, NULL, &churn, NULL), 0);
  sleep_ms(100);
  storm_memory_t memory = storm_memory();
  fork_many(TEST_SANITIZED ? 40 : 300 * test_scale(), &memory);
  storm_end(&load);
  pthread_join(churner, NULL);
  for (size_t i = 0; i < n_kept; i++) storm_put(kept[i]);
  // The slots can hold 128 blocks of up to 2 MiB; with these sizes it is 2 MiB on average, and 20 now and then.
  storm_check(&memory, 48 * MiB, 8 * MiB, 60 + (MI_HARDENED ? 4000 : 0));
  return check_result();
}
