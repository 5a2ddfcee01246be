// Memory under sequences of sizes that are made to fragment it (sequences.h), for any allocator that is preloaded.
//
//   bounds SEQUENCE [MIB [KIB]]      MIB: the most that is live, 64 if not said; KIB: the adversary's granule, 64; prints one line:
//   SEQUENCE peak-live peak-resident resident/live end-resident      in MiB; the ratio is that of the peaks
#include <stdio.h>
#include <unistd.h>

#define sequence_malloc malloc
#define sequence_free   free
#include <stdlib.h>

#include "sequences.h"

typedef struct peak_s {
  size_t live, resident, before;
} peak_t;

static size_t resident(void) {
  size_t size = 0, pages = 0;
  FILE*  f = fopen("/proc/self/statm", "r");
  if (f == NULL || fscanf(f, "%zu %zu", &size, &pages) != 2) exit(2);
  fclose(f);
  return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void note(void* arg, const char* phase, size_t live) {
  peak_t* peak = (peak_t*)arg;
  size_t  now = resident() - peak->before;
  (void)phase;
  if (live > peak->live) peak->live = live;
  if (now > peak->resident) peak->resident = now;
}

int main(int argc, char** argv) {
  static sequence_t s;
  peak_t            peak = {0, 0, 0};
  size_t            mib = (argc > 2 ? strtoul(argv[2], NULL, 10) : 64);
  for (size_t i = 0; i < sizeof(sequence_kinds) / sizeof(sequence_kinds[0]) && argc > 1; i++) {
    if (strcmp(sequence_kinds[i].name, argv[1]) != 0) continue;
    memset(&s, 1, sizeof(s)); // resident before
    memset(&s, 0, sizeof(s));
    s.live_max = mib << 20;
    s.granule = (argc > 3 ? strtoul(argv[3], NULL, 10) : 64) << 10;
    s.note = &note;
    s.arg = &peak;
    free(malloc(100));
    peak.before = resident();
    sequence_kinds[i].run(&s);
    usleep(500000);
    printf("%s %.1f %.1f %.2f %.1f\n", argv[1], (double)peak.live / 1048576, (double)peak.resident / 1048576,
           (double)peak.resident / (double)peak.live, ((double)resident() - (double)peak.before) / 1048576);
    return 0;
  }
  fprintf(stderr, "usage: bounds steps|steps-down|swings|comb|server [MIB [KIB]]\n");
  return 2;
}
