// Proves: a thread of real-time priority never waits for one of usual priority by computing.  If both have the same processor,
// the other one would not run until the system takes the processor away from the real-time thread (0.95 s in each second), or
// never.
//
// Both threads share one processor and use the same things of the library.  The one of real-time priority comes every few
// microseconds, and so interrupts the other at any of its instructions.  What counts is the processor's time that a single
// call takes.
#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE
#endif
#include "../check.h"
#include <mimalloc.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include "base/mode.h"
#include "support.h"

enum { RUN_MS = 1500, PAUSE_NS = 20000 };

static const double call_max_seconds = 0.3;

typedef struct work_s {
  const char* name;
  void (*usual)(void);     // again and again
  void (*real_time)(void); // from time to time
} work_t;

static bool is_over, is_refused; // atomically
static int  the_cpu;

// ---- threads --------------------------------------------------------------------------------------------------------

static bool pin(void) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(the_cpu, &set);
  return pthread_setaffinity_np(pthread_self(), sizeof(set), &set) == 0;
}

static bool become_real_time(void) {
  struct sched_param param;
  memset(&param, 0, sizeof(param));
  param.sched_priority = 1;
  return pthread_setschedparam(pthread_self(), SCHED_FIFO, &param) == 0;
}

static void* run_usual(void* arg) {
  const work_t* work = (const work_t*)arg;
  if (!pin()) __atomic_store_n(&is_refused, true, __ATOMIC_SEQ_CST);
  while (!__atomic_load_n(&is_over, __ATOMIC_SEQ_CST)) work->usual();
  return NULL;
}

static void* run_real_time(void* arg) {
  const work_t*   work = (const work_t*)arg;
  struct timespec pause = {0, PAUSE_NS};
  double          longest = 0;
  size_t          n_calls = 0;
  if (!pin() || !become_real_time()) {
    __atomic_store_n(&is_refused, true, __ATOMIC_SEQ_CST);
    return NULL;
  }
  for (double end = now_seconds() + RUN_MS / 1000.0; now_seconds() < end; n_calls++) {
    clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    double start = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
    work->real_time();
    double seconds = clock_seconds(CLOCK_THREAD_CPUTIME_ID) - start;
    if (seconds > longest) longest = seconds;
    if (longest > call_max_seconds) break;
  }
  printf("%s: %zu calls, the longest %.6f s\n", work->name, n_calls, longest);
  fflush(stdout);
  CHECK_FOR(longest < call_max_seconds, "%s: %.3f s", work->name, longest);
  return NULL;
}

// ---- what they do ---------------------------------------------------------------------------------------------------

static void ignore_output(const char* text, void* arg) {
  (void)text;
  (void)arg;
}

static void ignore_error(int err, void* arg) {
  (void)err;
  (void)arg;
}

static void register_functions(void) {
  mi_register_output(&ignore_output, NULL);
  mi_register_error(&ignore_error, NULL);
}

static void* block_in_arena; // which is found among the regions

enum { GIVEN = 64 << 20 };

static void prepare_arena(void) {
  char*         given;
  mi_arena_id_t arena;
  given =
      (char*)mmap(NULL, 2 * (size_t)GIVEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (given == (char*)MAP_FAILED) return;
  given = (char*)(((uintptr_t)given + GIVEN - 1) / GIVEN * GIVEN);
  if (!mi_manage_os_memory_ex(given, GIVEN, true, false, true, -1, true, &arena)) return;
  mi_heap_t* heap = mi_heap_new_in_arena(arena);
  if (heap != NULL) block_in_arena = mi_heap_malloc(heap, 100);
}

// Blocks of such alignments have regions of their own.
static void add_region(void) {
  mi_free(mi_malloc_aligned(100, 64 * MiB));
}

static void find_region(void) {
  for (int i = 0; i < 10; i++) {
    if (mi_usable_size(block_in_arena) < 100) abort();
  }
}

static void allocate(void) {
  void* blocks[20];
  for (size_t i = 0; i < COUNT_OF(blocks); i++) blocks[i] = mi_malloc(i % 4 == 0 ? 700 * KiB : 100 * i);
  for (size_t i = 0; i < COUNT_OF(blocks); i++) mi_free(blocks[i]);
}

static void use_heap(void) {
  mi_heap_t* heap = mi_heap_new();
  for (size_t i = 0; i < 20; i++) (void)!mi_heap_malloc(heap, 1000 * i);
  mi_heap_destroy(heap);
}

static void check_work(const work_t* work) {
  pthread_t usual, real_time;
  __atomic_store_n(&is_over, false, __ATOMIC_SEQ_CST);
  pthread_create(&usual, NULL, &run_usual, (void*)(uintptr_t)work);
  pthread_create(&real_time, NULL, &run_real_time, (void*)(uintptr_t)work);
  pthread_join(real_time, NULL);
  __atomic_store_n(&is_over, true, __ATOMIC_SEQ_CST);
  pthread_join(usual, NULL);
}

int main(void) {
  static const work_t works[] = {{"functions", &register_functions, &register_functions},
                                 {"regions", &add_region, &find_region},
                                 {"blocks", &allocate, &allocate},
                                 {"heaps", &use_heap, &use_heap}};
  cpu_set_t           set;
  if (TEST_SANITIZED || sched_getaffinity(0, sizeof(set), &set) != 0 || CPU_COUNT(&set) < 2) {
    test_skip("everything", "it takes two processors");
    return skip_code;
  }
  watchdog(120);
  while (!CPU_ISSET(the_cpu, &set)) the_cpu++;
  prepare_arena();
  for (size_t i = 0; i < COUNT_OF(works) && !is_refused; i++) {
    if (works[i].real_time != &find_region || block_in_arena != NULL) check_work(&works[i]);
  }
  mi_register_output(NULL, NULL);
  if (is_refused) {
    test_skip("everything", "real-time priority is not allowed");
    return skip_code;
  }
  return check_result();
}
