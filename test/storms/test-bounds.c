// Proves: sequences of sizes that are made to fragment memory (bench/sequences.h) do not make resident memory grow beyond the
// multiples of what is live that docs/design/bounds.md states; the second half of a sequence takes no more than the first; and
// nearly all goes back at the end.
#include <mimalloc.h>

#include "../check.h"
#include "../modes/support.h"
#include "base/mode.h"

#define sequence_malloc mi_malloc
#define sequence_free   mi_free
#include "../../bench/sequences.h"

typedef struct watch_s {
  size_t before, n_phases, peak, late_peak, live_peak;
  size_t n_early; // phases whose peak is early
} watch_t;

static void note(void* arg, const char* phase, size_t live) {
  watch_t* w = (watch_t*)arg;
  size_t   now = minus(rss_now(), w->before);
  (void)phase;
  if (live > w->live_peak) w->live_peak = live;
  if (now > w->peak && w->n_phases < w->n_early) w->peak = now;
  if (now > w->late_peak && w->n_phases >= w->n_early) w->late_peak = now;
  w->n_phases++;
}

// percent: of what is live, the most that may be resident.  What is resident beside that does not depend on the sequence.
static void check(const sequence_kind_t* kind, size_t granule, size_t percent, size_t n_early) {
  static sequence_t s;
  enum { beside = 12 << 20 }; // among them huge pages that are not full
  memset(&s, 1, sizeof(s));   // resident before
  memset(&s, 0, sizeof(s));
  mi_collect(true);
  watch_t watch = {rss_now(), 0, 0, 0, 0, n_early};
  s.live_max = 32 * MiB * (test_scale() > 8 ? 8 : test_scale());
  s.granule = granule;
  s.note = &note;
  s.arg = &watch;
  kind->run(&s);
  printf("%s, %zu KiB: live %.1f MiB, %zu phases\n", kind->name, granule / KiB, (double)watch.live_peak / (double)MiB,
         watch.n_phases);
  CHECK(watch.n_phases > 4);
  size_t peak = watch.peak > watch.late_peak ? watch.peak : watch.late_peak;
  CHECK(rss_within("the most that was resident", peak, watch.live_peak / 100 * percent + beside));
  if (n_early < watch.n_phases) {
    CHECK(rss_within("of that, in the later phases", watch.late_peak, watch.peak + watch.peak / 5 + beside));
  }
  mi_collect(true);
  CHECK(rss_within("resident at the end", minus(rss_now(), watch.before), 10 * MiB));
}

int main(int argc, char** argv) {
  test_seed(argc, argv);
  if (MI_PADDING || MI_TRACK || TEST_SANITIZED) {
    test_skip("bounds of fragmentation", "builds that check blocks have no gap pages, and larger blocks");
    return skip_code;
  }
  watchdog(200);
  check(&sequence_kinds[0], 4 * KiB, 250, SIZE_MAX);
  check(&sequence_kinds[0], 64 * KiB, 450, SIZE_MAX);
  check(&sequence_kinds[1], 64 * KiB, 450, SIZE_MAX);
  check(&sequence_kinds[2], 64 * KiB, 350, 40);
  check(&sequence_kinds[3], 64 * KiB, 250, SIZE_MAX);
  check(&sequence_kinds[4], 64 * KiB, 200, 30);
  return check_result();
}
