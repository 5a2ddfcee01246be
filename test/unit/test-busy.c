// Proves: a program is busy that computes, and one that comes by often although it gets little processor time; one that sleeps is not,
// whether for long at a time or for most of it; each interval counts for itself.
#include "../check.h"
#include "arena/busy.h"

// An interval of so many milliseconds with a look each `apart`, of which it computed so much; true if it was busy.
static bool interval(mi_busy_t* busy, int64_t* now, int64_t duration, int64_t apart, int64_t computed) {
  int64_t end = *now + duration;
  for (*now += apart; *now < end; *now += apart) _mi_busy_look(busy, *now);
  *now = end;
  _mi_busy_look(busy, end);
  return _mi_busy_was(busy, duration, busy->cpu_before + computed);
}

int main(void) {
  mi_busy_t busy = {mi_atomic_init(0), mi_atomic_init(0), 0};
  int64_t   now = 1000000;
  // The time since the process began counts as one in which it did not look.
  CHECK(!interval(&busy, &now, 100, 1, 5));
  // BY1
  CHECK(interval(&busy, &now, 400, 400, 210));
  CHECK(!interval(&busy, &now, 400, 400, 190));
  CHECK(interval(&busy, &now, 120, 120, 30));
  CHECK(!interval(&busy, &now, 120, 120, 29));
  // BY2: it waits for a processor
  CHECK(interval(&busy, &now, 100, 27, 10));
  CHECK(interval(&busy, &now, 1000, 40, 0));
  CHECK(!interval(&busy, &now, 1025, 41, 0));
  CHECK(interval(&busy, &now, 1000, 100, 100));
  CHECK(!interval(&busy, &now, 1000, 100, 99));
  CHECK(!interval(&busy, &now, 1010, 101, 110));
  // It sleeps for most of an interval in which it came by often before.
  for (int i = 0; i < 50; i++) _mi_busy_look(&busy, ++now);
  CHECK(!interval(&busy, &now, 700, 700, 50));
  CHECK(interval(&busy, &now, 100, 3, 10));
  return check_result();
}
