// What the benchmark programs share: their arguments, random numbers, threads, and the way to fail.  C11 and C++17.
//
// A program has a fixed amount of work that depends on its arguments alone, prints one line with a checksum that depends
// on nothing else (not on the allocator, the addresses or the scheduling), and exits with 0.  Wrong content in a block
// is bench_fail: exit code 1.  Wrong arguments: exit code 2.  A thread that must wait sleeps or blocks; spinning would be
// measured as CPU time of the allocator.
#pragma once

#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define BENCH_THREADS_MAX 256

// Ends the program: the allocator did not keep what the program wrote, or has no memory.
__attribute__((noreturn, format(printf, 1, 2))) static inline void bench_fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  printf("FAILED: ");
  vprintf(format, arguments);
  printf("\n");
  va_end(arguments);
  fflush(stdout);
  _Exit(1);
}

// The i-th argument, a number from 1 to max; `otherwise` where there are fewer arguments.
static inline size_t bench_argument(int argc, char** argv, int i, const char* name, size_t otherwise, size_t max) {
  if (i >= argc) return otherwise;
  char*              end;
  unsigned long long value = strtoull(argv[i], &end, 10);
  if (value < 1 || value > max || *end != 0) {
    fprintf(stderr, "%s: argument %d, %s, is '%s'; it must be a number from 1 to %zu\n", argv[0], i, name, argv[i],
            max);
    exit(2);
  }
  return (size_t)value;
}

static inline void* bench_not_null(void* block) {
  if (block == NULL) bench_fail("out of memory");
  return block;
}

// ---- random numbers: xorshift64* (S. Vigna, "An experimental exploration of Marsaglia's xorshift generators", 2016)

// A state that is never 0, and far from that of the neighbouring seeds (splitmix64).
static inline uint64_t bench_random_seed(uint64_t seed) {
  uint64_t z = (seed + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return (z ^ (z >> 31)) | 1;
}

static inline uint64_t bench_random(uint64_t* state) {
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return *state * 0x2545F4914F6CDD1Du;
}

// 0 to n - 1, for n up to 2^32.
static inline size_t bench_random_below(uint64_t* state, size_t n) {
  return (size_t)(((bench_random(state) >> 32) * n) >> 32);
}

// ---- threads

typedef struct bench_thread_s {
  pthread_t handle;
  void (*run)(size_t index);
  size_t index;
} bench_thread_t;

static inline void* bench_thread_main(void* argument) {
  bench_thread_t* thread = (bench_thread_t*)argument;
  thread->run(thread->index);
  return NULL;
}

static inline void bench_thread_start(bench_thread_t* thread, void (*run)(size_t index), size_t index) {
  thread->run = run;
  thread->index = index;
  if (pthread_create(&thread->handle, NULL, &bench_thread_main, thread) != 0) bench_fail("no more threads");
}

static inline void bench_thread_join(bench_thread_t* thread) {
  pthread_join(thread->handle, NULL);
}

// run(0) ... run(n - 1), each in a thread of its own; returns when all have ended.
static inline void bench_threads_run(size_t n, void (*run)(size_t index)) {
  static bench_thread_t threads[BENCH_THREADS_MAX];
  for (size_t i = 0; i < n; i++) bench_thread_start(&threads[i], run, i);
  for (size_t i = 0; i < n; i++) bench_thread_join(&threads[i]);
}
