// Proves: what is free and backed stays within the allowance (purge_by_amount.h), by the amount and by the clock; what is freed and taken
// again and again is paid for once, and held for at most four seconds; what threads keep counts; a system that refuses is left alone for a while.
#include "../check.h"
#include "../modes/support.h"
#include "arena/hold.h"
#include "arena/purge.h"
#include "arena/purge_by_amount.h"
#include "arena/purge_by_clock.h"
#include "arena/purge_keep.h"
#include "mimalloc.h"

enum { slices_per_mib = 16, min_slices = 16, max_slices = 512 };

static const long never = 3600 * 1000; // an interval that does not end in this test

static void set_interval(long ms) {
  mi_option_set(mi_option_purge_delay, ms);
  mi_option_set(mi_option_arena_purge_mult, 1);
}

static mi_run_t take(size_t n) {
  mi_run_t run = _mi_slices_alloc(n, 1, MI_REQUEST_MIXED, MI_ARENA_ANY);
  CHECK(run.region != NULL);
  return run;
}

static void give(mi_run_t run) {
  _mi_slices_free(run.region, run.slice, run.n_slices, false);
}

// Frees as the heap does it.
static void give_by_amount(mi_run_t run) {
  give(run);
  _mi_purge_by_amount();
}

static size_t purge_calls(void) {
  return (size_t)(mi_load_relaxed(&_mi_prim_calls.purge) + mi_load_relaxed(&_mi_prim_calls.discard));
}

// Nothing is free and backed, and nothing is known of what was freed before.
static void start_anew(long interval) {
  set_interval(0);
  for (int i = 0; i < 64; i++) _mi_purge_by_clock(true); // each forgets half
  _mi_hold_end();
  _mi_purge_to(0);
  CHECK_EQ(_mi_purge_n_backed(), 0);
  set_interval(interval);
}

// P1, P3: 1/16 of what was freed, at least 1 MiB.
static void check_share(size_t n_each) {
  enum { n_runs = 50 };
  mi_run_t runs[n_runs];
  start_anew(never);
  for (size_t i = 0; i < n_runs; i++) runs[i] = take(n_each);
  for (size_t i = 0; i < n_runs; i++) {
    give_by_amount(runs[i]);
    size_t share = (i + 1) * n_each / 16;
    CHECK_FOR(_mi_purge_n_backed() <= (share > min_slices ? share : min_slices), "%zu of %zu", _mi_purge_n_backed(),
              (i + 1) * n_each);
    if ((i + 1) * n_each <= min_slices) CHECK_EQ(_mi_purge_n_backed(), (i + 1) * n_each);
  }
}

// The same when the sum of all that was ever freed goes past its greatest value, as after 256 TiB with pointers of 32 bits.
static size_t most_of_share(void) {
  enum { n_runs = 32 };
  mi_run_t runs[n_runs];
  size_t   most = 0;
  start_anew(never);
  for (size_t i = 0; i < n_runs; i++) runs[i] = take(8 * slices_per_mib);
  for (size_t i = 0; i < n_runs; i++) {
    give_by_amount(runs[i]);
    if (_mi_purge_n_backed() > most) most = _mi_purge_n_backed();
  }
  return most;
}

static void check_share_of_all(void) {
  size_t most = most_of_share();
  CHECK(most > 8 * slices_per_mib);
  _mi_chunk_set_freed(PTRDIFF_MAX); // a step of more would be one back
  start_anew(never);
  _mi_chunk_set_freed(SIZE_MAX - 1000 * slices_per_mib);
  for (int i = 0; i < 8; i++) CHECK_EQ(most_of_share(), most); // it goes past it in one of them
}

// AM1, AM2: no more than 32 MiB and a quarter; what is taken again soon stays.  More when that has become dear (AM5).
static void check_again(void) {
  start_anew(never);
  for (int i = 0; i < 40; i++) {
    give_by_amount(take(64 * slices_per_mib));
    CHECK_FOR(_mi_purge_n_backed() <= (i == 0 ? max_slices : 64 * slices_per_mib), "%zu", _mi_purge_n_backed());
  }
  CHECK(_mi_purge_n_backed() >= max_slices / 2);
  start_anew(never);
  size_t n_calls = 0, before = purge_calls();
  for (int i = 0; i < 40; i++) {
    give_by_amount(take(20 * slices_per_mib));
    if (i == 9) n_calls = purge_calls();
  }
  CHECK_EQ(purge_calls(), n_calls); // it was paid for by then
  CHECK_FOR(n_calls > before && n_calls - before < 30, "%zu calls", n_calls - before);
  CHECK(_mi_purge_n_backed() >= 20 * slices_per_mib - min_slices);
}

// AM1: what a program took and freed again in the last interval stays, whatever was free when that began.
static void check_swings(void) {
  enum { ms = 30, n_intervals = 12, n_swings = 5 };
  size_t n_calls = 0, n_regular = 0;
  double last = now_seconds();
  start_anew(ms);
  for (int i = 0; i < n_intervals; i++) {
    sleep_ms(ms + 5);
    mi_run_t run = take(20 * slices_per_mib);
    give_by_amount(take(min_slices)); // the next interval begins, and little is free
    size_t before = purge_calls();
    give_by_amount(run);
    for (int k = 0; k < n_swings; k++) give_by_amount(take(20 * slices_per_mib));
    bool is_regular = (now_seconds() - last < 0.15);
    last = now_seconds();
    if (i < 4 || !is_regular) continue; // a pause of the machine is none of the program's
    n_regular++;
    n_calls += purge_calls() - before;
  }
  CHECK_FOR(n_calls <= n_regular / 4, "%zu calls in %zu intervals", n_calls, n_regular);
}

// AM1: a program that uses more than 32 MiB may swing by as much as it uses.
static void check_swings_of_large(void) {
  size_t   n = 48 * slices_per_mib, n_calls = 0;
  mi_run_t used = take(64 * slices_per_mib);
  start_anew(never);
  for (int i = 0; i < 40; i++) {
    give_by_amount(take(n));
    CHECK_FOR(_mi_purge_n_backed() <= 64 * slices_per_mib, "%zu", _mi_purge_n_backed());
    if (i == 9) n_calls = purge_calls();
  }
  CHECK_EQ(purge_calls(), n_calls);
  CHECK(_mi_purge_n_backed() >= n - min_slices);
  give_by_amount(used);
}

// Computes for so many milliseconds, whatever else the machine does.
static void compute(double ms) {
  for (double end = cpu_seconds() + ms / 1000; cpu_seconds() < end;) {
  }
}

// What a program gives back that swings by n slices for 1.5 seconds, in turns of so many milliseconds, beside 64 MiB that it uses.
typedef struct swings_s {
  size_t n_given, n_most; // slices: in all, and that were free and backed
  double n;
  double seconds, busy;
} swings_t;

static swings_t swing_by_amount(size_t n, double ms, void (*pause)(double ms)) {
  mi_run_t used = take(64 * slices_per_mib);
  swings_t s = {0, 0, 0, now_seconds(), cpu_seconds()};
  for (; now_seconds() - s.seconds < 1.5; s.n++) {
    mi_run_t run = take(n);
    pause(ms / 2);
    size_t before = _mi_purge_n_backed();
    give_by_amount(run);
    size_t now = _mi_purge_n_backed();
    if (now < before + n) s.n_given += before + n - now;
    if (now > s.n_most) s.n_most = now;
    pause(ms / 2);
  }
  s.seconds = now_seconds() - s.seconds;
  s.busy = (cpu_seconds() - s.busy) / s.seconds;
  give_by_amount(used);
  return s;
}

static void pause_asleep(double ms) {
  sleep_ms((unsigned)ms);
}

// HD1, AM3: a program that swings by more than it uses pays for that now and then only, also if it does so more slowly than rounds are
// made, and by as much as it used at most when it frees all.  That goes at the next free when the hold is over.  One that sleeps most of
// the time has nothing held.
static void check_hold_by_amount(void) {
  enum { ms = 30 };
  size_t n = 96 * slices_per_mib;
  for (double turn = 2; turn < 10 * ms; turn *= 5) {
    start_anew(ms);
    swings_t s = swing_by_amount(n, turn, &compute);
    CHECK_FOR(s.n_most <= 5 * 64 * slices_per_mib, "%zu", s.n_most);
    if (s.busy < 0.6) test_skip("swings of a busy program", "the machine is too busy for that");
    else
      CHECK_FOR((turn > 2 || s.n > 20) && s.n_given < 2 * n + (size_t)s.n * n / 8,
                "turns of %.0f ms: %zu of %zu slices in %.0f swings", turn, s.n_given, (size_t)s.n * n, s.n);
  }
  sleep_ms(4100);
  give_by_amount(take(2 * min_slices));
  CHECK_FOR(_mi_purge_n_backed() <= max_slices, "%zu", _mi_purge_n_backed());
  start_anew(ms);
  swings_t s = swing_by_amount(n, 2 * ms, &pause_asleep);
  if (s.busy >= 0.1) test_skip("swings of a program that sleeps", "it works too long between two pauses here");
  else CHECK_FOR(s.n_given > (size_t)s.n * n / 4, "asleep: %zu of %zu slices", s.n_given, (size_t)s.n * n);
}

// AM5: by now the time has paid for what was given back.
static void pay(void) {
  sleep_ms(5000);
  start_anew(never);
}

// HD3: a hold begins, and it is not dear to give back.  Was the program busy enough for a hold?
static bool begin_hold(void) {
  pay();
  _mi_purge_by_clock(true);
  double seconds = now_seconds(), busy = cpu_seconds();
  compute(4);
  _mi_purge_by_clock(true);
  for (int i = 0; i < 2; i++) give_by_amount(take(42 * slices_per_mib));
  return cpu_seconds() - busy >= 0.6 * (now_seconds() - seconds);
}

// AM3: what is more than may stay goes back in small steps.  As much may stay as is four times in use, or what swings by
// that needs between its blocks, and 32 MiB in any case, and a quarter of that where that was needed again.
static void check_hold_amounts(void) {
  bool   is_busy = begin_hold();
  size_t most_free = max_slices + max_slices / 4;
  CHECK_FOR(_mi_purge_n_backed() <= most_free, "%zu", _mi_purge_n_backed());
  give_by_amount(take(44 * slices_per_mib));
  size_t   n_steps = _mi_purge_n_backed();
  mi_run_t used = take(30 * slices_per_mib);
  give_by_amount(take(60 * slices_per_mib));
  size_t n_beside = _mi_purge_n_backed();
  give_by_amount(used);
  mi_run_t most = take(52 * slices_per_mib), eighth = take(8 * slices_per_mib);
  give_by_amount(take(100 * slices_per_mib)); // 60 MiB were in use at most, then 90
  give_by_amount(most);
  size_t n_eighth = _mi_purge_n_backed();
  give_by_amount(eighth);
  CHECK_FOR(_mi_purge_n_backed() <= most_free, "%zu", _mi_purge_n_backed());
  _mi_purge_to(0);
  bool may_keep = _mi_purge_keep(24 * slices_per_mib), may_keep_more = _mi_purge_keep(9 * slices_per_mib);
  if (may_keep) _mi_purge_unkeep(24 * slices_per_mib);
  if (may_keep_more) _mi_purge_unkeep(9 * slices_per_mib);
  if (!is_busy) {
    test_skip("amounts of a busy program", "the machine is too busy for that");
    return;
  }
  CHECK_FOR(n_steps > 36 * slices_per_mib, "%zu of 44 MiB", n_steps);
  CHECK_FOR(n_beside >= 60 * slices_per_mib, "%zu of 60 MiB beside 30", n_beside);
  CHECK_FOR(n_eighth > 100 * slices_per_mib && n_eighth <= 2 * 90 * slices_per_mib, "%zu", n_eighth);
  CHECK(may_keep); // KP1
  CHECK(!may_keep_more);
}

// In parts, so that frees see what is in use.
static void swing_in_parts(size_t n) {
  enum { n_parts = 10 };
  mi_run_t runs[n_parts];
  for (int i = 0; i < n_parts; i++) runs[i] = take(n / n_parts);
  for (int i = 0; i < n_parts; i++) give_by_amount(runs[i]);
}

// AM5: in a program that swings by 200 MiB most goes back until that has cost a twentieth of the time, and then what it used at most
// stays.  As soon as it is paid for, and the hold is over, it goes.
static void check_dear(void) {
  enum { n = 200 * slices_per_mib };
  bool   is_busy = begin_hold();
  size_t n_given = 0, n_turns = 0, n_backed = 0, most = max_slices + max_slices / 4;
  double seconds = now_seconds(), busy = cpu_seconds();
  set_interval(30);
  for (; n_turns < 20 && n_backed < n - min_slices; n_turns++) {
    compute(2);
    swing_in_parts(n);
    n_backed = _mi_purge_n_backed();
    n_given += n - n_backed;
  }
  size_t before = purge_calls();
  for (int i = 0; i < 20; i++) {
    compute(2);
    swing_in_parts(n);
  }
  bool is_paid_once = (purge_calls() == before);
  if (cpu_seconds() - busy < 0.6 * (now_seconds() - seconds)) is_busy = false;
  sleep_ms(8100); // what is spent, and what may be spent once more
  give_by_amount(take(2 * min_slices));
  CHECK_FOR(_mi_purge_n_backed() <= most, "%zu", _mi_purge_n_backed());
  if (!is_busy) {
    test_skip("what is dear to a busy program", "the machine is too busy for that");
    return;
  }
  CHECK(is_paid_once);
  // A MiB costs 8 ms, of which 1 to 4 seconds were there; what went back last was not needed again.
  CHECK_FOR(n_given >= 1000 / 8 * slices_per_mib && n_given <= (4000 / 8 + 200) * slices_per_mib, "%zu in %zu turns",
            n_given, n_turns);
}

// An interval of a program that gets little processor time, but looks at what is free each few milliseconds; how many milliseconds two
// looks were apart at most.
static double wait_for_turns(void) {
  double most = 0, last = now_seconds();
  for (int i = 0; i < 6; i++) {
    sleep_ms(8);
    _mi_purge_by_clock(false);
    double now = now_seconds();
    if (now - last > most) most = now - last;
    last = now;
  }
  return 1000 * most;
}

// HD4: what a program needs again at once is held before the first round that could see it, unless it slept (busy.h).
static void check_hold_early(void) {
  enum { is_asleep, waits, is_busy, n_kinds };
  size_t stays[n_kinds];
  pay();
  double seconds = 0, busy = 0, apart = 0;
  for (int kind = 0; kind < n_kinds; kind++) {
    start_anew(never);
    if (kind == is_asleep) sleep_ms(50);
    if (kind == waits) apart = wait_for_turns();
    seconds = now_seconds(), busy = cpu_seconds();
    if (kind == is_busy) compute(4);
    _mi_purge_by_clock(true);
    seconds = now_seconds() - seconds, busy = cpu_seconds() - busy;
    for (int i = 0; i < 2; i++) give_by_amount(take(48 * slices_per_mib));
    stays[kind] = _mi_purge_n_backed();
  }
  CHECK_FOR(stays[is_asleep] <= max_slices / 2, "asleep: %zu", stays[is_asleep]);
  if (apart > 35) test_skip("the hold of a program that waits for its turns", "the machine is too busy for that");
  else CHECK_FOR(stays[waits] >= max_slices, "waits: %zu", stays[waits]);
  if (busy < 0.6 * seconds) test_skip("the hold of a busy program", "the machine is too busy for that");
  else CHECK_FOR(stays[is_busy] >= max_slices && stays[is_busy] <= max_slices + max_slices / 4, "%zu", stays[is_busy]);
}

// What was free during a whole interval goes back, and no more than that.
static void check_clock(void) {
  enum { n = 4 * MI_CHUNK_SLICES };
  start_anew(never);
  mi_run_t half = take(n / 2), other = take(n / 2);
  give(half);
  give(other);
  CHECK(_mi_purge_has_more());
  _mi_purge_by_clock(false);
  CHECK_EQ(_mi_purge_n_backed(), n); // the interval is not over
  set_interval(1);
  sleep_ms(3);
  _mi_purge_by_clock(false);
  CHECK_EQ(_mi_purge_n_backed(), n); // it was not free at its beginning
  give(take(n / 2));
  sleep_ms(3);
  _mi_purge_by_clock(false);
  CHECK_FOR(_mi_purge_n_backed() <= n / 2 && _mi_purge_n_backed() > 0, "%zu", _mi_purge_n_backed());
  sleep_ms(3);
  _mi_purge_by_clock(false);
  CHECK_EQ(_mi_purge_n_backed(), 0);
  CHECK(!_mi_purge_has_more());
}

static void check_settings(void) {
  enum { n = 100 * slices_per_mib };
  start_anew(0);
  mi_run_t run = take(n);
  give_by_amount(run);
  CHECK_EQ(_mi_purge_n_backed(), 0); // at once
  start_anew(-1);
  run = take(n);
  size_t n_calls = purge_calls();
  give_by_amount(run);
  CHECK_EQ(_mi_purge_n_backed(), n); // never
  set_interval(never);
  _mi_purge_set_has_thread(true);
  _mi_purge_by_amount();
  CHECK_EQ(_mi_purge_n_backed(), n); // that thread will
  CHECK_EQ(purge_calls(), n_calls);
  _mi_purge_set_has_thread(false);
  size_t n_given = _mi_purge_to(n / 2);
  CHECK_FOR(_mi_purge_n_backed() <= n / 2 && _mi_purge_n_backed() + MI_CHUNK_SLICES >= n / 2, "%zu",
            _mi_purge_n_backed());
  CHECK_EQ(n_given, n - _mi_purge_n_backed());
}

// A large block lies where memory is backed, though there is room further down.  One that has grown takes the lowest room.
static void check_backed_first(void) {
  enum { n = 3 * MI_CHUNK_SLICES };
  start_anew(never);
  mi_run_t low = take(n), high = take(n), last = take(n);
  give(low);
  _mi_purge_to(0);
  give(high);
  mi_run_t again = take(n);
  CHECK_EQ(again.slice, high.slice);
  give(again);
  mi_run_t grown = _mi_slices_alloc_moved(n, 1, MI_REQUEST_GROWN, MI_ARENA_ANY, 0);
  CHECK_EQ(grown.slice, low.slice);
  give(grown);
  give(last);
  _mi_purge_to(0);
  mi_run_t one = take(MI_CHUNK_SLICES + 1), other = take(2 * MI_CHUNK_SLICES);
  give(one);
  _mi_purge_to(0);
  give(other); // it is backed, and a place for the block begins one chunk further up
  grown = _mi_slices_alloc_moved(MI_CHUNK_SLICES + 1, 1, MI_REQUEST_GROWN, MI_ARENA_ANY, 0);
  CHECK_EQ(grown.slice, one.slice);
  give(grown);
  _mi_purge_to(0);
}

// PG3
static void check_retained(void) {
  start_anew(never);
  _mi_purge_set_has_thread(true);
  _mi_purge_set_retained(8 * slices_per_mib);
  give_by_amount(take(8 * slices_per_mib));
  CHECK_EQ(_mi_purge_n_backed(), 8 * slices_per_mib);
  give_by_amount(take(10 * slices_per_mib));
  CHECK_FOR(_mi_purge_n_backed() <= 4 * slices_per_mib && _mi_purge_n_backed() > 0, "%zu", _mi_purge_n_backed());
  _mi_purge_to(0);
  _mi_purge_set_retained(1);
  give_by_amount(take(min_slices));
  CHECK_EQ(_mi_purge_n_backed(), min_slices);
  give_by_amount(take(min_slices + 1));
  CHECK_FOR(_mi_purge_n_backed() <= min_slices / 2, "%zu", _mi_purge_n_backed());
  _mi_purge_set_retained(SIZE_MAX);
  _mi_purge_set_has_thread(false);
}

// KP2: what waits and is used again counts as freed, so more may stay.
static void check_waiting(void) {
  start_anew(never);
  give(take(64 * slices_per_mib));
  _mi_purge_to(0);
  CHECK(_mi_purge_keep(4 * slices_per_mib) && !_mi_purge_keep(1));
  _mi_purge_unkeep(4 * slices_per_mib);
  for (int i = 0; i < 64; i++) {
    bool waits = _mi_purge_keep_waiting(min_slices);
    CHECK(waits);
    if (waits) _mi_purge_keep_end_wait(min_slices, true);
  }
  CHECK_EQ(_mi_purge_n_backed(), 0);
  CHECK(_mi_purge_keep(8 * slices_per_mib) && !_mi_purge_keep(1));
  _mi_purge_unkeep(8 * slices_per_mib);
}

// P2
static void check_kept(void) {
  start_anew(never);
  CHECK(_mi_purge_keep(min_slices - 6));
  CHECK_EQ(_mi_purge_n_backed(), min_slices - 6);
  CHECK(!_mi_purge_keep(7)); // that would be more than the allowance
  CHECK(_mi_purge_keep(6));  // and this is all of it
  _mi_purge_unkeep(6);
  CHECK_EQ(_mi_purge_n_backed(), min_slices - 6);
  give_by_amount(take(7));
  give_by_amount(take(7));
  give_by_amount(take(20));
  CHECK_FOR(_mi_purge_n_backed() <= min_slices, "%zu", _mi_purge_n_backed());
  _mi_purge_lend(min_slices - 6);
  _mi_purge_to(0);
  CHECK_EQ(_mi_purge_n_backed(), 0); // it is in use, but may be kept again, and so no more is
  CHECK(!_mi_purge_keep(7));
  _mi_purge_unlend(min_slices - 6);
  CHECK_EQ(_mi_purge_n_backed(), min_slices - 6);
  _mi_purge_unkeep(min_slices - 6);
  CHECK_EQ(_mi_purge_n_backed(), 0);
  set_interval(0);
  CHECK(!_mi_purge_keep(1));
  set_interval(never);
  _mi_purge_set_has_thread(true);
  CHECK(!_mi_purge_keep(max_slices + 1) && _mi_purge_keep(max_slices) && !_mi_purge_keep(1));
  _mi_purge_unkeep(max_slices);
  _mi_purge_set_has_thread(false);
}

// P4
static void check_refused(void) {
  enum { n_runs = 200, n_each = 32 };
  mi_run_t runs[n_runs];
  start_anew(never);
  for (size_t i = 0; i < n_runs; i++) runs[i] = take(n_each);
  double start = now_seconds();
  size_t before = purge_calls();
  _mi_prim_fail_nth(1, true);
  for (size_t i = 0; i < n_runs; i++) give_by_amount(runs[i]);
  _mi_prim_fail_nth(0, false);
  size_t n_waits = 1 + (size_t)((now_seconds() - start) * 10); // 100 ms each
  CHECK_FOR(purge_calls() - before <= 200 * n_waits, "%zu calls, %zu times", purge_calls() - before, n_waits);
  CHECK(purge_calls() > before);
  CHECK_EQ(_mi_purge_n_backed(), n_runs * n_each);
  CHECK(!_mi_purge_has_more());
  _mi_purge_to(0);
  CHECK_EQ(_mi_purge_n_backed(), 0);
  give(take(1));
  CHECK(_mi_purge_has_more());
}

// P4: attempts that fail while it is refused do not make frees wait longer.
static void check_refused_meanwhile(void) {
  start_anew(never);
  mi_run_t run = take(4 * min_slices);
  double   start = now_seconds();
  _mi_prim_fail_nth(1, true);
  give_by_amount(run);
  for (int i = 0; i < 20; i++) _mi_purge_by_clock(true);
  _mi_prim_fail_nth(0, false);
  CHECK_EQ(_mi_purge_n_backed(), 4 * min_slices);
  sleep_ms(250 + (int)(2000 * (now_seconds() - start)));
  give_by_amount(take(4 * min_slices));
  CHECK_FOR(_mi_purge_n_backed() <= min_slices, "%zu", _mi_purge_n_backed());
}

// Takes n slices, which a round sees, gives them back and makes the rounds that find them free, without a pause.
static void swing(size_t n) {
  mi_run_t run = take(n);
  sleep_ms(3);
  _mi_purge_by_clock(false);
  give(run);
  for (int i = 0; i < 2; i++) {
    sleep_ms(3);
    _mi_purge_by_clock(false);
  }
}

// What the program has needed again is held (recall.h), and no longer than four seconds.
static void check_hold(void) {
  enum { n = 100 * slices_per_mib };
  start_anew(1);
  _mi_purge_set_has_thread(true);
  swing(n);
  double start = now_seconds();
  swing(n);
  _mi_purge_by_clock(true); // nor does it go if all threads sleep
  size_t stays = _mi_purge_n_backed();
  CHECK_FOR(stays >= n || now_seconds() - start > 0.5, "%zu", stays);
  CHECK(_mi_purge_has_more() || stays == 0);
  while (_mi_purge_n_backed() > 0 && now_seconds() - start < 30) {
    sleep_ms(10);
    _mi_purge_by_clock(false);
  }
  CHECK_EQ(_mi_purge_n_backed(), 0);
  swing(n); // not for the sake of this one, but at once
  swing(n);
  _mi_hold_end();
  CHECK_EQ(_mi_purge_n_backed(), 0);
  swing(n);
  swing(n);
  _mi_purge_set_has_thread(false);
  swing(1);
  _mi_purge_by_clock(true);
  CHECK_EQ(_mi_purge_n_backed(), 0); // without a thread nothing is held
}

// RC2: what went back long ago lengthens no hold, also if something else was refused since.
static void check_hold_refused(void) {
  enum { n = 16 * slices_per_mib, ms = 16 * 40 };
  start_anew(1);
  _mi_purge_set_has_thread(true);
  give(take(n));
  _mi_purge_to(0);
  sleep_ms(ms + 20);
  give(take(min_slices));
  _mi_prim_fail_nth(1, true);
  _mi_purge_to(0);
  _mi_prim_fail_nth(0, false);
  CHECK_EQ(_mi_purge_n_backed(), min_slices);
  swing(n);
  CHECK_EQ(_mi_purge_n_backed(), 0);
  _mi_purge_set_has_thread(false);
}

// AM4: parts of chunks with huge pages do not go at once, whole ones do.
static void check_parts(void) {
  enum { n_runs = 64 * slices_per_mib };
  static mi_run_t runs[n_runs];
  start_anew(never);
  mi_run_t others = take(8 * MI_CHUNK_SLICES); // there are huge pages from 8 MiB on
  for (size_t i = 0; i < n_runs; i++) {
    runs[i] = _mi_slices_alloc(1, 1, MI_REQUEST_HUGE, MI_ARENA_ANY);
    CHECK(runs[i].region != NULL);
  }
  if (!runs[n_runs - 1].region->is_huge) test_skip("parts of huge pages", "the library asks for none here");
  double start = now_seconds();
  for (size_t i = 0; i < n_runs; i += 2) give_by_amount(runs[i]);
  double seconds = now_seconds() - start;
  if (runs[n_runs - 1].region->is_huge)
    CHECK_FOR(_mi_purge_n_backed() > n_runs / 4 || seconds > 0.01, "%zu after %.3f s", _mi_purge_n_backed(), seconds);
  for (int i = 0; i < 100 && _mi_purge_n_backed() > n_runs / 16; i++) { // each call knows what the last one saw
    sleep_ms(40);
    give_by_amount(take(min_slices));
  }
  CHECK_FOR(_mi_purge_n_backed() <= n_runs / 16, "%zu", _mi_purge_n_backed());
  for (size_t i = 1; i < n_runs; i += 2) give_by_amount(runs[i]);
  give_by_amount(others);
  CHECK_FOR(_mi_purge_n_backed() <= n_runs / 16, "%zu", _mi_purge_n_backed());
}

int main(void) {
  watchdog(120);
  mi_free(mi_malloc(1));
  check_share(16);
  check_share(32);
  check_share_of_all();
  check_again();
  check_swings();
  check_swings_of_large();
  check_hold_by_amount();
  check_hold_amounts();
  check_hold_early();
  check_dear();
  check_parts();
  check_clock();
  check_hold();
  check_hold_refused();
  check_settings();
  check_backed_first();
  check_kept();
  check_retained();
  check_waiting();
  check_refused_meanwhile();
  check_refused();
  return check_result();
}
