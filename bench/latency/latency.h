// What main.c and workloads.c share: timed calls.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "../programs/bench.h"

typedef enum latency_call_e { LATENCY_MALLOC, LATENCY_FREE, LATENCY_CALLS } latency_call_t;

typedef struct latency_s latency_t; // of one thread

void latency_note(latency_t* l, latency_call_t call, uint64_t ticks, size_t size);

static inline uint64_t latency_ticks(void) {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
#endif
}

static inline void* latency_malloc(latency_t* l, size_t size) {
  uint64_t begin = latency_ticks();
  void*    p = malloc(size);
  uint64_t end = latency_ticks();
  latency_note(l, LATENCY_MALLOC, end - begin, size);
  return bench_not_null(p);
}

static inline void latency_free(latency_t* l, void* p, size_t size) {
  uint64_t begin = latency_ticks();
  free(p);
  uint64_t end = latency_ticks();
  latency_note(l, LATENCY_FREE, end - begin, size);
}

typedef struct workload_s {
  const char* name;
  void (*run)(latency_t* l, size_t index, size_t n_rounds); // one thread
} workload_t;

const workload_t* workload_named(const char* name);
void              workload_prepare(size_t n_threads);
