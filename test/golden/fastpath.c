// The program that test/golden/golden.py counts instructions in: calls into the allocator, a phase at a time.
//
// Each phase calls one function (or a pair of them) a known number of times between two requests to callgrind: one that
// sets its counters to zero, and one that writes them out under the name of the phase, "CALL/PATTERN/COUNT".  What this
// file itself executes is not counted by golden.py, so loops cost nothing.
//
//   hit    few blocks after a warm-up: every call finds what it needs at once
//   bulk   many blocks, over and over: refills, overflows and new pages have their share
//   lone   malloc and free in turn, counted together
//
// -DGOLDEN_SYSTEM_MALLOC counts the C library's malloc, to try the tool out.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <valgrind/callgrind.h>

#if defined(GOLDEN_SYSTEM_MALLOC)
  #include <malloc.h>
  #define mi_malloc      malloc
  #define mi_calloc      calloc
  #define mi_realloc     realloc
  #define mi_free        free
  #define mi_usable_size malloc_usable_size
#else
  #include <mimalloc.h>
#endif

#define KiB ((size_t)1 << 10)
#define MiB ((size_t)1 << 20)

enum { n_hit = 4, n_warm = 8, max_blocks = 4096 };

static void* blocks[max_blocks];

// The library's clock: it stands still.  Slow paths make a round when the clock says so (src/heap/background.h), and by the
// system's clock the rounds would fall into other calls in each run, into more of them the busier the machine is.
int clock_gettime(clockid_t clock, struct timespec* now) {
  (void)clock;
  now->tv_sec = 1000;
  now->tv_nsec = 0;
  return 0;
}

// Counting is off but for the calls: callgrind starts with --collect-atstart=no.
static void begin(void) {
  CALLGRIND_ZERO_STATS;
  CALLGRIND_TOGGLE_COLLECT;
}

// `count` calls were made since begin().
static void end(const char* call, const char* pattern, size_t count) {
  char name[80];
  CALLGRIND_TOGGLE_COLLECT;
  snprintf(name, sizeof(name), "%s/%s/%zu", call, pattern, count);
  CALLGRIND_DUMP_STATS_AT(name);
}

static void end_size(const char* call, size_t size, const char* pattern, size_t count) {
  char name[40];
  CALLGRIND_TOGGLE_COLLECT;
  snprintf(name, sizeof(name), "%s %zu", call, size);
  CALLGRIND_TOGGLE_COLLECT;
  end(name, pattern, count);
}

static void take(size_t n, size_t size) {
  for (size_t i = 0; i < n; i++) blocks[i] = mi_malloc(size);
}

// In the order in which they were taken.
static void give(size_t n) {
  for (size_t i = 0; i < n; i++) mi_free(blocks[i]);
}

// ---- phases ---------------------------------------------------------------------------------------------------------

static void hit(size_t size) {
  for (int i = 0; i < 3; i++) {
    take(n_warm, size);
    give(n_warm);
  }
  begin();
  take(n_hit, size);
  end_size("malloc", size, "hit", n_hit);
  begin();
  give(n_hit);
  end_size("free", size, "hit", n_hit);
}

// n blocks, `rounds` times; the first rounds, in which memory is taken from the system, are not counted.
static void bulk(size_t size, size_t n, size_t rounds) {
  for (int i = 0; i < 4; i++) {
    take(n, size);
    give(n);
  }
  // Both calls in one phase could not be told apart, so each is counted in every other round.
  for (int counts_free = 0; counts_free < 2; counts_free++) {
    begin();
    for (size_t i = 0; i < rounds; i++) {
      if (counts_free) CALLGRIND_TOGGLE_COLLECT;
      take(n, size);
      CALLGRIND_TOGGLE_COLLECT;
      give(n);
      if (!counts_free) CALLGRIND_TOGGLE_COLLECT;
    }
    end_size(counts_free ? "free" : "malloc", size, "bulk", n * rounds);
  }
}

static void lone(size_t size, size_t n) {
  for (int i = 0; i < 4; i++) mi_free(mi_malloc(size));
  begin();
  for (size_t i = 0; i < n; i++) mi_free(mi_malloc(size));
  end_size("malloc+free", size, "lone", n);
}

static void zeroed(void) {
  for (int i = 0; i < 3; i++) {
    for (int k = 0; k < n_warm; k++) blocks[k] = mi_calloc(1, 64);
    give(n_warm);
  }
  begin();
  for (int k = 0; k < n_hit; k++) blocks[k] = mi_calloc(1, 64);
  end("calloc 64", "hit", n_hit);
  give(n_hit);
}

static void resized(void) {
  take(n_hit, 100);
  for (int i = 0; i < n_hit; i++) blocks[i] = mi_realloc(blocks[i], 104);
  give(n_hit);
  take(n_hit, 100);
  begin();
  for (int i = 0; i < n_hit; i++) blocks[i] = mi_realloc(blocks[i], 104);
  end("realloc 100 to 104", "hit", n_hit);
  give(n_hit);
}

static void asked(void) {
  static volatile size_t sum;
  take(n_hit, 100);
  sum = mi_usable_size(blocks[0]);
  begin();
  for (int i = 0; i < n_hit; i++) sum = sum + mi_usable_size(blocks[i]);
  end("usable_size", "hit", n_hit);
  give(n_hit);
}

// A thread frees what another one allocated; the first blocks are its warm-up.
static void* free_all(void* n_warm_up) {
  size_t warm_up = *(size_t*)n_warm_up;
  give(warm_up);
  begin();
  for (size_t i = warm_up; i < max_blocks; i++) mi_free(blocks[i]);
  end("free of another thread's 64", "bulk", max_blocks - warm_up);
  return NULL;
}

static void from_another_thread(void) {
  size_t    warm_up = 64;
  pthread_t thread;
  take(max_blocks, 64);
  if (pthread_create(&thread, NULL, &free_all, &warm_up) != 0) exit(1);
  pthread_join(thread, NULL);
}

#if !defined(GOLDEN_SYSTEM_MALLOC)

// operator new and delete, by their symbols: new, new[], nothrow new; delete, delete with a size, delete[] with a size.
void* operator_new(size_t size) __asm__("_Znwm");
void* operator_new_array(size_t size) __asm__("_Znam");
void* operator_new_nothrow(size_t size, const void* tag) __asm__("_ZnwmRKSt9nothrow_t");
void  operator_delete(void* p) __asm__("_ZdlPv");
void  operator_delete_sized(void* p, size_t size) __asm__("_ZdlPvm");
void  operator_delete_array_sized(void* p, size_t size) __asm__("_ZdaPvm");

  #define PHASE(name, call) \
    do { \
      begin(); \
      for (int k = 0; k < n_hit; k++) call; \
      end(name, "hit", n_hit); \
    } while (0)

static void operators(void) {
  for (int i = 0; i < 3; i++) {
    take(n_warm, 64);
    give(n_warm);
  }
  PHASE("new 64", blocks[k] = operator_new(64));
  PHASE("delete 64", operator_delete(blocks[k]));
  PHASE("new[] 64", blocks[k] = operator_new_array(64));
  PHASE("delete 64 with size", operator_delete_sized(blocks[k], 64));
  PHASE("new 64 nothrow", blocks[k] = operator_new_nothrow(64, NULL));
  PHASE("delete[] 64 with size", operator_delete_array_sized(blocks[k], 64));
}

#else

static void operators(void) {}

#endif

// ---- all of them ----------------------------------------------------------------------------------------------------

int main(void) {
  static const size_t sizes[] = {16, 64, 1000, 4096, 100000, 1 * MiB};
  static const size_t n_bulk[] = {1000, 1000, 1000, 500, 64, 8};
  if (!RUNNING_ON_VALGRIND) fputs("nothing is counted outside valgrind\n", stderr);
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) hit(sizes[i]);
  zeroed();
  resized();
  asked();
  lone(16, 1000);
  lone(100000, 1000);
  lone(1 * MiB, 200);
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) bulk(sizes[i], n_bulk[i], 8);
  from_another_thread();
  operators();
  return 0;
}
