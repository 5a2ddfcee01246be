// Proves: by a clock of its own, that memory which swings is held and paid for at most once in a hundred times its cost, that a program
// which stops has everything back after four seconds, that growth, single falls and what went back long before hold nothing,
// that what is free for long goes back even if other memory swings, and that what goes back in trade does not count.
#include "../check.h"
#include "../modes/support.h"
#include "arena/recall.h"

enum { mib = 16, interval = 100, most = MI_RECALL_MS_MOST };

// A program as the arena sees it.
typedef struct program_s {
  mi_recall_t recall;
  int64_t     now;
  size_t      used, backed, low; // slices; the least that was free in this interval
  size_t      n_fresh, n_given;
} program_t;

static program_t program_start(void) {
  program_t p = {MI_RECALL_INITIAL, 1000000, 0, 0, 0, 0, 0};
  return p;
}

static void use(program_t* p, size_t n) {
  p->used = n;
  if (n > p->backed) {
    p->n_fresh += n - p->backed;
    p->backed = n;
  }
  if (p->backed - n < p->low) p->low = p->backed - n;
}

static void give(program_t* p, size_t n) {
  CHECK(n <= p->backed - p->used);
  p->backed -= n;
  p->n_given += n;
  if (n > 0) _mi_recall_note(&p->recall, p->now, n, p->n_fresh);
}

// The program does nothing for so long.
static void pass(program_t* p, int64_t ms) {
  for (; ms > 0; ms -= interval) {
    p->now += interval;
    size_t n = _mi_recall_round(&p->recall, p->now, p->low, p->used, p->n_fresh);
    CHECK_FOR(n <= p->low, "%zu of %zu", n, p->low);
    give(p, n);
    p->low = p->backed - p->used;
  }
}

static size_t stays(const program_t* p) {
  return p->backed - p->used;
}

// RC3: what is given back in all costs no more than its share of the time, but for the first time and the cap.
static void check_swing(size_t n, int64_t pause) {
  program_t p = program_start();
  int64_t   start = p.now;
  for (int i = 0; i < 100; i++) {
    use(&p, n);
    pass(&p, interval);
    use(&p, n / 10);
    pass(&p, pause);
  }
  size_t may_give = (size_t)(p.now - start) * mib / MI_RECALL_MS_MIB + 2 * n;
  CHECK_FOR(p.n_given <= may_give, "%zu MiB, pauses of %d ms: %zu MiB, at most %zu", n / mib, (int)pause,
            p.n_given / mib, may_give / mib);
}

// RC3: a program that uses the same amount all the time, but for moments, holds nothing.
static void check_steady(size_t n) {
  program_t p = program_start();
  for (int i = 0; i < 100; i++) {
    use(&p, 2 * n);
    use(&p, n);
    pass(&p, 3 * interval);
    CHECK_FOR(stays(&p) == 0, "moment %d: %zu MiB stay", i, stays(&p) / mib);
  }
}

// RC4
static void check_stop(size_t n, int64_t pause) {
  program_t p = program_start();
  for (int i = 0; i < 100; i++) {
    use(&p, n);
    pass(&p, interval);
    use(&p, n / 10);
    pass(&p, pause);
  }
  use(&p, n);
  pass(&p, interval);
  use(&p, n / 10);
  pass(&p, most + 2 * interval);
  CHECK_FOR(stays(&p) == 0, "%zu MiB, pauses of %d ms: %zu MiB stay", n / mib, (int)pause, stays(&p) / mib);
  CHECK(!_mi_recall_holds(&p.recall, p.now));
}

// Nothing is held for what has not been needed twice.
static void check_no_swing(void) {
  program_t p = program_start();
  for (size_t n = 0; n < 500 * mib; n += 10 * mib) {
    use(&p, n);
    pass(&p, interval);
    CHECK_EQ(stays(&p), 0);
  }
  use(&p, 10 * mib);
  pass(&p, 2 * interval);
  CHECK_EQ(stays(&p), 0);
  pass(&p, 30 * most); // and long after
  use(&p, 500 * mib);
  pass(&p, interval);
  use(&p, 10 * mib);
  pass(&p, 2 * interval);
  CHECK_EQ(stays(&p), 0);
}

// What is needed beyond what went back is growth: it lengthens no hold.
static void check_growth_after(void) {
  program_t p = program_start();
  use(&p, 100 * mib);
  pass(&p, interval);
  use(&p, 0);
  pass(&p, 2 * interval);
  CHECK_EQ(stays(&p), 0);
  int64_t given = p.now;
  for (size_t n = 50 * mib; n <= 1000 * mib; n += 50 * mib) {
    use(&p, n);
    pass(&p, interval);
  }
  CHECK_EQ(p.recall.until, given + 100 * MI_RECALL_MS_MIB);
}

// Within one interval: what is taken before memory goes back is growth, what is taken after that is recalled.
static void check_order(void) {
  program_t p = program_start();
  use(&p, 50 * mib);
  pass(&p, interval);
  use(&p, 100 * mib);
  use(&p, 0);
  give(&p, 100 * mib);
  p.low = 0;
  pass(&p, interval);
  CHECK(!_mi_recall_holds(&p.recall, p.now));
  for (int i = 0; i < 2; i++) { // once more what went back last, and then what goes back now
    use(&p, 40 * mib);
    use(&p, 0);
    give(&p, 40 * mib);
  }
  int64_t given = p.now;
  p.low = 0;
  pass(&p, interval);
  CHECK_EQ(p.recall.until, given + 80 * MI_RECALL_MS_MIB);
}

// A hold begins in the middle of an interval, and what was counted then is not counted again.
static void check_begin(void) {
  program_t p = program_start();
  use(&p, 40 * mib);
  use(&p, 0);
  give(&p, 40 * mib);
  p.low = 0;
  pass(&p, interval);
  _mi_recall_begin(&p.recall, p.now, p.n_fresh);
  CHECK(!_mi_recall_holds(&p.recall, p.now));
  use(&p, 20 * mib);
  _mi_recall_begin(&p.recall, p.now, p.n_fresh);
  int64_t until = p.now - interval + 20 * MI_RECALL_MS_MIB;
  CHECK_EQ(p.recall.until, until);
  _mi_recall_begin(&p.recall, p.now, p.n_fresh);
  pass(&p, interval);
  CHECK_EQ(p.recall.until, until);
}

// A small part swings for ever; all that is free otherwise goes.
static void check_rest(void) {
  program_t p = program_start();
  use(&p, 1000 * mib);
  pass(&p, interval);
  for (int i = 0; i < 40; i++) { // all of it swings
    use(&p, 200 * mib);
    pass(&p, 2 * interval);
    use(&p, 1000 * mib);
    pass(&p, interval);
  }
  for (int i = 0; i < 100; i++) { // then a part
    use(&p, 100 * mib);
    pass(&p, 2 * interval);
    use(&p, 200 * mib);
    pass(&p, interval);
    if (i * 3 * interval > 2 * most) CHECK_FOR(p.backed <= 200 * mib, "%zu MiB", p.backed / mib);
  }
  CHECK(_mi_recall_holds(&p.recall, p.now));
}

// Whatever a program does, four seconds after its last request nothing is held.
static void check_random(rng_t* rng) {
  program_t p = program_start();
  for (int i = 0; i < 300; i++) {
    use(&p, rng_below(rng, 4000) * mib / (1 + rng_below(rng, 100)));
    if (rng_below(rng, 5) == 0) give(&p, rng_below(rng, stays(&p) + 1)); // as under a limit
    p.low = p.low < stays(&p) ? p.low : stays(&p);
    pass(&p, (int64_t)(1 + rng_below(rng, 30)) * interval);
    CHECK(p.recall.until <= p.now + most);
  }
  pass(&p, most + 2 * interval);
  CHECK_EQ(stays(&p), 0);
}

// What went back in trade and is needed again was not recalled, neither when nothing is held nor during a hold.
static void check_trade(void) {
  for (int is_traded = 0; is_traded <= 1; is_traded++) {
    program_t p = program_start();
    use(&p, 50 * mib);
    pass(&p, interval);
    use(&p, 30 * mib);
    if (is_traded) _mi_recall_lessen(&p.recall, 20 * mib);
    else _mi_recall_note(&p.recall, p.now, 20 * mib, p.n_fresh);
    p.backed -= 20 * mib;
    use(&p, 50 * mib);
    pass(&p, interval);
    CHECK_EQ(_mi_recall_holds(&p.recall, p.now), !is_traded);
  }
  program_t p = program_start();
  use(&p, 100 * mib);
  pass(&p, interval);
  use(&p, 50 * mib);
  give(&p, 50 * mib);
  use(&p, 100 * mib);
  pass(&p, interval); // held for two seconds
  use(&p, mib);
  pass(&p, 2 * interval);
  size_t n = p.recall.n_seen;
  CHECK(_mi_recall_holds(&p.recall, p.now) && n > 90 * mib);
  int64_t until = p.recall.until;
  _mi_recall_lessen(&p.recall, n);
  p.backed -= n;
  p.low -= mi_min(p.low, n);
  use(&p, p.used + n);
  pass(&p, interval);
  // But for a quarter of a MiB that went back by the clock.
  CHECK_FOR(p.recall.until <= until + MI_RECALL_MS_MIB / 4, "%lld ms more", (long long)(p.recall.until - until));
}

int main(int argc, char** argv) {
  rng_t rng = rng_make(test_seed(argc, argv));
  watchdog(60);
  for (size_t n = 10 * mib; n <= 1000 * mib; n *= 10) {
    for (int64_t pause = interval; pause < most - 2 * interval; pause += 2 * interval) {
      if (n < 1000 * mib) check_swing(n, pause);
      check_stop(n, pause);
    }
  }
  check_swing(1000 * mib, 20 * interval); // what the four seconds cover
  check_no_swing();
  check_steady(100 * mib);
  check_growth_after();
  check_order();
  check_begin();
  check_rest();
  check_trade();
  for (int i = 0; i < 100; i++) check_random(&rng);
  return check_result();
}
