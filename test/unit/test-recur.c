// Proves: by a clock of its own, that blocks over 32 MiB take slices only while a program soon asks again for what it freed, for at
// most four seconds after that, and only if they are not much larger than what it freed.
#include "arena/recur.h"
#include "../check.h"
#include "../modes/support.h"

static mi_recur_t recur;
static int64_t    now = 1000000;

static void give(size_t mib) {
  _mi_recur_note(&recur, mib * MiB, now);
}

static bool take(size_t mib) {
  return _mi_recur_holds(&recur, mib * MiB, now);
}

// The hold is over, and nothing is known of before.
static void start_anew(void) {
  now += 10 * 1000;
  CHECK(!take(1));
}

// Is there a hold for exactly so long from now on?
static void check_hold(int64_t ms) {
  now += ms - 1;
  CHECK(take(40));
  now += 1;
  CHECK(!take(40));
}

// CA1
static void check_recall(void) {
  start_anew();
  CHECK(!take(64)); // for the first time
  give(64);
  CHECK(take(64)); // it is needed again
  check_hold(640); // 10 ms for each MiB
  start_anew();
  give(64);
  now += 199;
  CHECK(take(64));
  start_anew();
  give(64);
  now += 200;
  CHECK(!take(64)); // too late
  start_anew();
  give(64);
  CHECK(take(100) && take(100)); // no more than what was freed counts
  check_hold(640);
  start_anew();
  give(64);
  give(64);
  CHECK(take(40)); // nor more than what is needed
  CHECK(take(40));
  now += 200;
  check_hold(600);
  start_anew();
  give(500);
  CHECK(take(500)); // whose bytes times 10 need more than 32 bits
  check_hold(4000);
}

// RC4
static void check_end(void) {
  start_anew();
  for (int i = 0; i < 1000; i++) {
    give(500);
    CHECK(take(500));
  }
  check_hold(4000);
}

// CA2
static void check_largest(void) {
  start_anew();
  give(64);
  CHECK(take(64) && take(128) && !take(130));
  give(300);
  CHECK(take(600) && !take(602));
  give(40);
  CHECK(take(600)); // the largest since the hold began, or a little before
  start_anew();
  give(40);
  CHECK(take(80) && !take(82));
  now += 500;
  give(50);
  CHECK(!take(102) && take(100));
}

int main(void) {
  watchdog(60);
  check_recall();
  check_end();
  check_largest();
  return check_result();
}
