// Proves: by a clock of its own, that mappings are held only for a program that soon needs again what it freed, for at most four
// seconds, and never so many that more is resident than was in use at one time; and that a block gets the one that fits best.
#include "../check.h"
#include "../modes/support.h"
#include "arena/held.h"

enum { n_ranges = 20 };

static mi_range_t ranges[n_ranges];
static int64_t    now = 1000000;

static mi_range_t* range_of(size_t size) {
  for (size_t i = 0; i < n_ranges; i++) {
    if (ranges[i].size != 0) continue;
    ranges[i].size = size;
    return &ranges[i];
  }
  return NULL;
}

// Frees a block while others of n_used bytes are in use.  Is its mapping held?
static bool give(size_t size, size_t n_used) {
  if (!_mi_held_wants(size, n_used, now)) return false;
  CHECK(_mi_held_push(range_of(size), n_used));
  return true;
}

// Which size the mapping has that such a block gets; 0: none.
static size_t take(size_t size, size_t n_used) {
  mi_range_t* range = _mi_held_take(size, n_used, now);
  if (range == NULL) return 0;
  size_t found = range->size;
  range->size = 0;
  return found;
}

static size_t pop(void) {
  size_t n = 0;
  for (mi_range_t* range; (range = _mi_held_pop(now)) != NULL; n++) range->size = 0;
  return n;
}

// The hold is over, and nothing is known of before.
static void start_anew(void) {
  now += 10 * 1000;
  pop();
  CHECK(!_mi_held_has_any());
}

// HM1
static void check_recall(void) {
  start_anew();
  CHECK(!give(64 * MiB, 0) && take(64 * MiB, 0) == 0);
  CHECK(give(64 * MiB, 0)); // it is needed again
  CHECK_EQ(pop(), 0);
  now += 639;
  CHECK_EQ(pop(), 0);
  now += 1;
  CHECK_EQ(pop(), 1); // 10 ms for each MiB
  start_anew();
  CHECK(!give(64 * MiB, 0));
  now += 200;
  CHECK(take(64 * MiB, 0) == 0 && !give(64 * MiB, 0)); // too late
  start_anew();
  CHECK(take(64 * MiB, 0) == 0 && !give(64 * MiB, 0)); // for the first time
  start_anew();
  CHECK(!give(64 * MiB, 0) && take(64 * MiB, 0) == 0 && give(64 * MiB, 0));
  CHECK(take(32 * MiB, 0) == 64 * MiB && give(64 * MiB, 0)); // from a larger one: so much is needed again, too
  now += 959;
  CHECK_EQ(pop(), 0);
  now += 1;
  CHECK_EQ(pop(), 1);
  start_anew();
  CHECK(!give(500 * MiB, 0) && take(500 * MiB, 0) == 0 &&
        give(500 * MiB, 0)); // whose bytes times 10 need more than 32 bits
  now += 3999;
  CHECK_EQ(pop(), 0);
}

// RC4
static void check_end(void) {
  start_anew();
  for (int i = 0; i < 1000; i++) {
    give(500 * MiB, 0);
    take(500 * MiB, 0);
  }
  CHECK(give(500 * MiB, 0));
  now += 3999;
  CHECK_EQ(pop(), 0);
  now += 1;
  CHECK_EQ(pop(), 1);
  CHECK(!give(500 * MiB, 0));
}

// HM3
static void check_bound(void) {
  start_anew();
  give(64 * MiB, 100 * MiB);
  take(64 * MiB, 100 * MiB); // 164 MiB
  CHECK(give(64 * MiB, 100 * MiB));
  CHECK(!give(50 * MiB, 51 * MiB)); // 165
  CHECK(give(50 * MiB, 50 * MiB));
  CHECK(_mi_held_is_room(70 * MiB) && !_mi_held_is_room(71 * MiB));            // an eighth more
  CHECK(take(50 * MiB, 250 * MiB) == 50 * MiB && _mi_held_is_room(250 * MiB)); // so much was in use now
  start_anew();
  give(MiB, 0);
  take(MiB, 1000 * MiB);
  size_t n = 0;
  while (n < n_ranges && give(MiB, 0)) n++;
  CHECK_EQ(n, 16); // and not too many
  // Of two threads that want at the same time what only one of them can hold, the other does not.
  start_anew();
  give(64 * MiB, 0);
  take(64 * MiB, 0);
  CHECK(_mi_held_wants(64 * MiB, 0, now) && _mi_held_wants(64 * MiB, 0, now));
  mi_range_t* both[] = {range_of(64 * MiB), range_of(64 * MiB)};
  CHECK(_mi_held_push(both[0], 0) && !_mi_held_push(both[1], 0));
  both[1]->size = 0;
}

// HM4
static void check_fit(void) {
  static const size_t sizes[] = {50, 200, 80, 100};
  start_anew();
  give(500 * MiB, 0);
  take(500 * MiB, 0);
  for (size_t i = 0; i < COUNT_OF(sizes); i++) CHECK(give(sizes[i] * MiB, 0));
  CHECK_EQ(take(70 * MiB, 0), 80 * MiB);
  CHECK_EQ(take(100 * MiB, 0), 100 * MiB);
  CHECK_EQ(take(400 * MiB, 0), 200 * MiB); // the largest, which goes
  CHECK_EQ(take(10 * MiB, 0), 50 * MiB);
  CHECK_EQ(take(10 * MiB, 0), 0);
}

int main(void) {
  watchdog(60);
  check_recall();
  check_end();
  check_bound();
  check_fit();
  return check_result();
}
