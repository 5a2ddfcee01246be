// What a replay cost.
#define _GNU_SOURCE
#include "report.h"
#include "../programs/bench.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

typedef struct cost_s {
  double cpu_s, wall_s;
  long   faults;
} cost_t;

static int              statm = -1;
static uint64_t         base; // resident bytes at the start
static cost_t           at_start;
static _Atomic int64_t  live;
static _Atomic uint64_t rss_sum_kib, live_sum_kib, samples;
static pthread_mutex_t  most_lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t          most_live; // of all samples
static uint64_t         most_rss;  // the smallest in a sample with as much

static cost_t cost_now(void) {
  struct rusage   usage;
  struct timespec now;
  getrusage(RUSAGE_SELF, &usage);
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (cost_t){(double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                      (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6,
                  (double)now.tv_sec + (double)now.tv_nsec / 1e9, usage.ru_minflt + usage.ru_majflt};
}

static uint64_t resident(void) {
  char               text[128];
  unsigned long long total, pages;
  ssize_t            n = pread(statm, text, sizeof(text) - 1, 0);
  if (n <= 0) bench_fail("cannot read /proc/self/statm");
  text[n] = 0;
  if (sscanf(text, "%llu %llu", &total, &pages) != 2) bench_fail("/proc/self/statm has no numbers");
  return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

void report_start(void) {
  statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  base = resident();
  at_start = cost_now();
}

void report_sample(int64_t live_change) {
  int64_t  now_live = atomic_fetch_add(&live, live_change) + live_change;
  uint64_t now = resident();
  uint64_t rss = now > base ? now - base : 0;
  atomic_fetch_add(&rss_sum_kib, rss >> 10);
  atomic_fetch_add(&live_sum_kib, now_live > 0 ? (uint64_t)now_live >> 10 : 0);
  atomic_fetch_add(&samples, 1);
  pthread_mutex_lock(&most_lock);
  if (now_live > most_live) {
    most_live = now_live;
    most_rss = rss;
  }
  pthread_mutex_unlock(&most_lock);
}

static double ratio(uint64_t a, uint64_t b) {
  return b == 0 ? 0 : (double)a / (double)b;
}

// The peak that the kernel keeps, in KiB. It may be that of the program before exec, as in the shell that started this one;
// VmHWM is of this program alone.
static uint64_t peak_kib(void) {
  char    text[4096];
  int     fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  ssize_t n = read(fd, text, sizeof(text) - 1);
  close(fd);
  text[n < 0 ? 0 : n] = 0;
  const char* line = strstr(text, "VmHWM:");
  return line == NULL ? 0 : strtoull(line + 6, NULL, 10);
}

void report_end(const trace_header_t* header) {
  cost_t   now = cost_now();
  uint64_t end = resident(), peak = peak_kib(), base_kib = base >> 10;
  fprintf(stderr,
          "cpu_s=%.4f wall_s=%.4f faults=%ld peak_kib=%llu live_peak_kib=%llu end_kib=%llu live_end_kib=%llu "
          "rss_live=%.3f rss_live_at_peak=%.3f samples=%llu\n",
          now.cpu_s - at_start.cpu_s, now.wall_s - at_start.wall_s, now.faults - at_start.faults,
          (unsigned long long)(peak > base_kib ? peak - base_kib : 0), (unsigned long long)header->peak_bytes >> 10,
          (unsigned long long)(end > base ? end - base : 0) >> 10, (unsigned long long)header->live_bytes >> 10,
          ratio(rss_sum_kib, live_sum_kib), ratio(most_rss, (uint64_t)most_live), (unsigned long long)samples);
}
