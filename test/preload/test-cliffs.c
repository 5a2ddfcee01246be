// Proves: there is no cliff: what has made other allocators many times slower than the C library's costs here at most
// three times its CPU time, and in most cases less than it; and about as much memory.
//
// Each workload runs as a child of its own, with the preloaded library and without, in turn; the least of three runs
// counts.  Libraries that fill freed memory, or are not optimised, may take longer; those that fill what is new also touch
// all of it.
#define _GNU_SOURCE
#include "../check.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "../modes/support.h"
#include "base/mode.h"

enum { fills_new = MI_FILL && !MI_HARDENED };

// What frees may leave where the library has no thread, however busy the machine is (docs/design/arena.md, purge policy).
static const size_t allowance_max = 32 * MiB;

static void fail(void) {
  fprintf(stderr, "no memory\n");
  _exit(1);
}

static void* get(size_t size) {
  char* p = (char*)malloc(size);
  if (p == NULL) fail();
  p[0] = p[size - 1] = 1;
  return p;
}

// The compiler must not know that it is the block we had: it would drop what was written to it.
static void put(void* p) {
  free(hidden_pointer(p));
}

static void run_all(size_t n, void* (*job)(void*)) {
  pthread_t threads[128];
  for (size_t i = 0; i < n; i++) {
    if (pthread_create(&threads[i], NULL, job, (void*)(uintptr_t)(i + 1)) != 0) fail();
  }
  for (size_t i = 0; i < n; i++) pthread_join(threads[i], NULL);
}

// Threads that come and go, and leave pages behind that are still in use.
static _Atomic(void*) left_over[4096];

static void* short_thread(void* arg) {
  rng_t rng = rng_make((uint64_t)(uintptr_t)arg + (uint64_t)(uintptr_t)&rng);
  void* p[200];
  for (size_t i = 0; i < COUNT_OF(p); i++) p[i] = get(16 + rng_below(&rng, 2000));
  for (size_t i = 0; i < COUNT_OF(p); i++) {
    if (i % 10 == 0) p[i] = atomic_exchange(&left_over[rng_below(&rng, COUNT_OF(left_over))], p[i]);
    put(p[i]);
  }
  return NULL;
}

static void thread_churn(void) {
  for (size_t i = 0; i < 800; i++) run_all(8, &short_thread);
}

// Many more threads than processors, all allocating, with hand-over.
static void* busy_thread(void* arg) {
  rng_t rng = rng_make((uint64_t)(uintptr_t)arg);
  for (size_t i = 0; i < 40000; i++) {
    void* p = get(16 + rng_below(&rng, 500));
    if (i % 4 == 0) p = atomic_exchange(&left_over[rng_below(&rng, 256)], p);
    put(p);
    if (i % 1000 == 0) sched_yield();
  }
  return NULL;
}

// A thread that uses a size class has an OS page of it, which with 4 KiB is nothing beside the rest.
enum { n_busy_threads = 100, n_busy_classes = 17 };

static void oversubscribed(void) {
  run_all(n_busy_threads, &busy_thread);
}

// Epoch-based reclamation: blocks are freed late, in large batches, by whichever thread comes along.
enum { batch_size = 8192, n_batches = 16 };
static void*           batches[n_batches][batch_size];
static pthread_mutex_t batch_locks[n_batches] = {PTHREAD_MUTEX_INITIALIZER};

static void* epoch_thread(void* arg) {
  rng_t rng = rng_make((uint64_t)(uintptr_t)arg);
  for (size_t round = 0; round < 100; round++) {
    size_t b = rng_below(&rng, n_batches);
    pthread_mutex_lock(&batch_locks[b]);
    for (size_t i = 0; i < batch_size; i++) put(batches[b][i]);
    for (size_t i = 0; i < batch_size; i++) batches[b][i] = get(64 + rng_below(&rng, 4) * 64);
    pthread_mutex_unlock(&batch_locks[b]);
  }
  return NULL;
}

static void batch_frees(void) {
  for (size_t i = 0; i < n_batches; i++) pthread_mutex_init(&batch_locks[i], NULL);
  run_all(4, &epoch_thread);
}

// Blocks of 5 to 40 MB, of which only a part is touched.
enum { n_large = fills_new ? 300 : 6000, n_large_live = 8, large_min = 5000000, large_max = 40000000 };

static void large_blocks(void) {
  rng_t rng = rng_make(7);
  void* p[n_large_live] = {NULL};
  for (size_t i = 0; i < n_large; i++) {
    size_t k = rng_below(&rng, COUNT_OF(p)), size = large_min + rng_below(&rng, large_max - large_min);
    put(p[k]);
    p[k] = get(size);
    memset(p[k], 1, 100000);
  }
  for (size_t k = 0; k < COUNT_OF(p); k++) put(p[k]);
}

// The same, all touched: what is given back has to be faulted in again.
static void touched_blocks(void) {
  rng_t rng = rng_make(8);
  for (size_t i = 0; i < 60; i++) {
    size_t size = 1000000 + rng_below(&rng, 9000000);
    void*  p = get(size);
    memset(p, 1, size);
    put(p);
  }
}

static void random_replacement(void) {
  static void* p[200000];
  rng_t        rng = rng_make(9);
  for (size_t i = 0; i < 2500000; i++) {
    size_t k = rng_below(&rng, COUNT_OF(p));
    put(p[k]);
    p[k] = get(16 + (rng_next(&rng) & 255));
  }
  for (size_t k = 0; k < COUNT_OF(p); k++) put(p[k]);
}

static void growing_blocks(void) {
  for (size_t round = 0; round < 60; round++) {
    char* p = NULL;
    for (size_t size = 16, old_size = 0; size < 4000000; old_size = size, size += size / 16 + 16) {
      p = (char*)realloc(p, size);
      if (p == NULL) fail();
      memset(p + old_size, 1, size - old_size);
    }
    put(p);
  }
}

static void medium_zeroed(void) {
  rng_t rng = rng_make(10);
  void* p[64] = {NULL};
  for (size_t i = 0; i < 40000; i++) {
    size_t k = rng_below(&rng, COUNT_OF(p));
    put(p[k]);
    p[k] = calloc(1, 1000 + rng_below(&rng, 100000));
    if (p[k] == NULL) fail();
  }
  for (size_t k = 0; k < COUNT_OF(p); k++) put(p[k]);
}

// One thread allocates, another frees.
static _Atomic(void*) pipe_slots[1024];
static atomic_bool    pipe_is_done;

static void* pipe_end(void* arg) {
  (void)arg;
  while (!atomic_load(&pipe_is_done)) {
    for (size_t i = 0; i < COUNT_OF(pipe_slots); i++) put(atomic_exchange(&pipe_slots[i], NULL));
    sched_yield();
  }
  return NULL;
}

static void pipeline(void) {
  pthread_t t;
  if (pthread_create(&t, NULL, &pipe_end, NULL) != 0) fail();
  for (size_t i = 0; i < 3000000; i++) put(atomic_exchange(&pipe_slots[i % COUNT_OF(pipe_slots)], get(16 + i % 300)));
  atomic_store(&pipe_is_done, true);
  pthread_join(t, NULL);
}

static const struct {
  const char* name;
  void (*run)(void);
} workloads[] = {
    {"thread churn", thread_churn},     {"oversubscribed", oversubscribed}, {"batch frees", batch_frees},
    {"large blocks", large_blocks},     {"touched blocks", touched_blocks}, {"random replacement", random_replacement},
    {"growing blocks", growing_blocks}, {"medium zeroed", medium_zeroed},   {"pipeline", pipeline},
};

// CPU seconds of one run, and the peak resident size; negative when it failed.
static double run_child(size_t index, const char* library, size_t* peak) {
  char number[32];
  snprintf(number, sizeof(number), "%zu", index);
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    if (library != NULL) setenv("LD_PRELOAD", library, 1);
    else unsetenv("LD_PRELOAD");
    setenv("MI_TEST_WORKLOAD", number, 1);
    char* arguments[] = {(char*)(uintptr_t)"test-cliffs", NULL};
    test_exec(arguments, environ);
    _exit(99);
  }
  struct rusage usage;
  int           status = 0;
  if (wait4(pid, &status, 0, &usage) != pid || status != 0) return -1;
  *peak = (size_t)usage.ru_maxrss * KiB;
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

int main(int argc, char** argv) {
  size_t workload = test_env("MI_TEST_WORKLOAD", COUNT_OF(workloads));
  if (workload < COUNT_OF(workloads)) {
    workloads[workload].run();
    return 0;
  }
  if (!test_can_exec()) return skip_code;
  test_seed(argc, argv);
  const char* library = getenv("LD_PRELOAD");
  if (library == NULL) {
    test_skip("cliffs", "start it with LD_PRELOAD set to the library");
    return skip_code;
  }
  watchdog(240);
  double factor = (MI_DEBUG > 0 ? 10 : MI_FILL ? 6 : 3);
  for (size_t i = 0; i < COUNT_OF(workloads); i++) {
    double with = 1e9, without = 1e9;
    size_t peak_with = 0, peak_without = 0;
    for (int run = 0; run < 3; run++) {
      double a = run_child(i, NULL, &peak_without), b = run_child(i, library, &peak_with);
      CHECK_FOR(a >= 0 && b >= 0, "%s", workloads[i].name);
      if (a < without) without = a;
      if (b < with) with = b;
      if (with < without * 1.2) break; // no doubt any more
    }
    printf("%-20s %6.2f s, C library %6.2f s: %5.2f; peak %7.1f MiB, %7.1f\n", workloads[i].name, with, without,
           with / (without + 1e-9), (double)peak_with / (double)MiB, (double)peak_without / (double)MiB);
    // At 2 GB/s, which even a busy machine does.
    size_t n_filled =
        (fills_new && workloads[i].run == large_blocks) ? (size_t)n_large * (large_max + large_min) / 2 : 0;
    size_t n_kept = (n_filled > 0 ? n_large_live * large_max : 0);
    if (MI_HARDENED && workloads[i].run == growing_blocks) continue; // guarded ones move whenever they are resized
    CHECK_FOR(with < factor * without + 0.05 + (double)n_filled / 2e9, "%s: %.3f s, %.3f s", workloads[i].name, with,
              without);
    if (workloads[i].run == oversubscribed)
      n_kept = n_busy_threads * n_busy_classes * ((size_t)getpagesize() - 4 * KiB);
    CHECK_FOR(peak_with <= 2 * peak_without + allowance_max + n_kept, "%s: %zu KiB, %zu KiB", workloads[i].name,
              peak_with / KiB, peak_without / KiB);
  }
  return check_result();
}
