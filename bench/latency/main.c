// latency: how long single calls of malloc and free take, as a distribution.
//
//   latency WORKLOAD [THREADS] [ROUNDS]       prints one line for each of malloc and free:
//   WORKLOAD CALL calls p50 p99 p99.9 p99.99 max preempted waits faults size      times in nanoseconds
//
// Each call is timed by the processor's clock and counted in a histogram.  A call during which the kernel gave the processor to
// another thread or process says nothing about the allocator: it is counted as preempted, and not in the histogram.  That is known
// from the thread's number of such switches, which is read behind every slow call and every LOOK_EACH calls.  `waits`, `faults` and
// `size` are of the longest call: how often the thread has gone to sleep, how many page faults it had (also those of the program
// in the calls since the last look), and for which size of block it was.
//
// Workloads (workloads.c): mixed, server, large, swing.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "latency.h"

#define LOOK_EACH 16
#define SLOW_NS   5000

// ---- a histogram: 32 buckets for each power of two, so that a value is known to 3 percent ---------------------------------

enum { per_power = 32, n_buckets = per_power * 50 };

typedef struct histogram_s {
  uint64_t counts[n_buckets];
  uint64_t n, max, n_preempted;
  long     max_waits, max_faults; // of the longest call
  size_t   max_size;
} histogram_t;

struct latency_s {
  histogram_t   calls[LATENCY_CALLS];
  struct rusage seen; // when it was looked at last
  unsigned      n_until_look;
};

static double ticks_per_ns;

static size_t bucket_of(uint64_t x) {
  if (x < per_power) return (size_t)x;
  unsigned power = 63u - (unsigned)__builtin_clzll(x);
  size_t   bucket = (size_t)(power - 4) * per_power + (size_t)((x >> (power - 5)) & (per_power - 1));
  return bucket < n_buckets ? bucket : n_buckets - 1;
}

static uint64_t value_of(size_t bucket) {
  if (bucket < per_power) return bucket;
  return (uint64_t)(per_power + bucket % per_power) << (bucket / per_power - 1);
}

static uint64_t quantile(const histogram_t* h, double q) {
  uint64_t wanted = (uint64_t)(q * (double)h->n), sum = 0;
  for (size_t i = 0; i < n_buckets; i++) {
    sum += h->counts[i];
    if (sum > wanted) return value_of(i);
  }
  return h->max;
}

static void merge(histogram_t* to, const histogram_t* from) {
  for (size_t i = 0; i < n_buckets; i++) to->counts[i] += from->counts[i];
  to->n += from->n;
  to->n_preempted += from->n_preempted;
  if (from->max <= to->max) return;
  to->max = from->max;
  to->max_waits = from->max_waits;
  to->max_faults = from->max_faults;
  to->max_size = from->max_size;
}

// ---- one call -----------------------------------------------------------------------------------------------------------

static void look(latency_t* l, struct rusage* now) {
  getrusage(RUSAGE_THREAD, now);
  l->n_until_look = LOOK_EACH;
}

static void note_slow(latency_t* l, histogram_t* h, uint64_t ns, size_t size) {
  struct rusage now;
  look(l, &now);
  bool is_preempted = (now.ru_nivcsw != l->seen.ru_nivcsw);
  if (is_preempted) h->n_preempted++;
  else {
    h->counts[bucket_of(ns)]++;
    h->n++;
    if (ns > h->max) {
      h->max = ns;
      h->max_waits = now.ru_nvcsw - l->seen.ru_nvcsw;
      h->max_faults = now.ru_minflt - l->seen.ru_minflt;
      h->max_size = size;
    }
  }
  l->seen = now;
}

void latency_note(latency_t* l, latency_call_t call, uint64_t ticks, size_t size) {
  histogram_t* h = &l->calls[call];
  uint64_t     ns = (uint64_t)((double)ticks / ticks_per_ns);
  if (ns >= SLOW_NS) {
    note_slow(l, h, ns, size);
    return;
  }
  h->counts[bucket_of(ns)]++;
  h->n++;
  if (ns > h->max) {
    h->max = ns;
    h->max_size = size;
    h->max_waits = h->max_faults = 0;
  }
  if (--l->n_until_look == 0) look(l, &l->seen);
}

// ---- the run ------------------------------------------------------------------------------------------------------------

static void find_ticks_per_ns(void) {
  struct timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  uint64_t ticks = latency_ticks();
  do clock_gettime(CLOCK_MONOTONIC, &end);
  while ((end.tv_sec - begin.tv_sec) * 1000000000L + end.tv_nsec - begin.tv_nsec < 50000000L);
  double ns = (double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec);
  ticks_per_ns = (double)(latency_ticks() - ticks) / ns;
}

static latency_t         records[BENCH_THREADS_MAX];
static const workload_t* workload;
static size_t            n_rounds;

static void run_thread(size_t index) {
  latency_t* l = &records[index];
  look(l, &l->seen);
  workload->run(l, index, n_rounds);
}

static void print(const char* name, const char* call, const histogram_t* h) {
  printf("%s %s %llu", name, call, (unsigned long long)h->n);
  static const double quantiles[] = {0.5, 0.99, 0.999, 0.9999};
  for (size_t i = 0; i < 4; i++) printf(" %llu", (unsigned long long)quantile(h, quantiles[i]));
  printf(" %llu %llu %ld %ld %zu\n", (unsigned long long)h->max, (unsigned long long)h->n_preempted, h->max_waits,
         h->max_faults, h->max_size);
}

int main(int argc, char** argv) {
  static histogram_t sums[LATENCY_CALLS];
  workload = (argc > 1 ? workload_named(argv[1]) : NULL);
  if (workload == NULL) {
    fprintf(stderr, "usage: latency mixed|server|large|swing [THREADS] [ROUNDS]\n");
    return 2;
  }
  size_t n_threads = bench_argument(argc, argv, 2, "THREADS", 2, BENCH_THREADS_MAX);
  n_rounds = bench_argument(argc, argv, 3, "ROUNDS", 10, 100000);
  find_ticks_per_ns();
  workload_prepare(n_threads);
  bench_threads_run(n_threads, &run_thread);
  for (size_t i = 0; i < n_threads; i++) {
    for (size_t call = 0; call < LATENCY_CALLS; call++) merge(&sums[call], &records[i].calls[call]);
  }
  print(workload->name, "malloc", &sums[LATENCY_MALLOC]);
  print(workload->name, "free", &sums[LATENCY_FREE]);
  return 0;
}
