// Proves: the table has the names, numbers and defaults that programs rely on; values are found and parsed in the
// environment by the documented rules; later sources of a value win over earlier ones, whatever the order of calls; an option
// without effect is named as such if it is set.
//
// An option is made to look up the environment again by putting its cell back to UNREAD.
#include "../check.h"
#include "../sink.h"
#include "../modes/support.h"
#include "support/options.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>

extern char** environ;

// ---- helpers --------------------------------------------------------------------------------------------------------

static sink_t output;

static bool was_said(const char* text) {
  return sink_has(&output, text);
}

static void unread(mi_option_t option, long initial) {
  mi_store_relaxed(&_mi_option_cells[option].base, initial);
  mi_store_release(&_mi_option_cells[option].state, (int)MI_OPTION_UNREAD);
}

// The value of an option whose default is `initial` in an environment of these entries.
static long read_with(mi_option_t option, long initial, const char* first, const char* second) {
  char*  entries[] = {(char*)(uintptr_t)"HOME=/", (char*)(uintptr_t)first, (char*)(uintptr_t)second, NULL};
  char** before = environ;
  sink_clear(&output);
  unread(option, initial);
  environ = entries;
  long value = mi_option_get(option);
  environ = before;
  return value;
}

// ---- the table ------------------------------------------------------------------------------------------------------

static const struct {
  const char* name;
  long        initial;
} expected[] = {
    {"show_errors", 1}, // in builds with checks, as this one
    {"show_stats", 0},
    {"verbose", 0},
    {"eager_commit", 1},
    {"arena_eager_commit", 2},
    {"purge_decommits", 1},
    {"allow_large_os_pages", 0},
    {"reserve_huge_os_pages", 0},
    {"reserve_huge_os_pages_at", -1},
    {"reserve_os_memory", 0},
    {"deprecated_segment_cache", 0},
    {"deprecated_page_reset", 0},
    {"abandoned_page_purge", 0},
    {"deprecated_segment_reset", 0},
    {"eager_commit_delay", 1},
    {"purge_delay", 10},
    {"use_numa_nodes", 0},
    {"disallow_os_alloc", 0},
    {"os_tag", 100},
    {"max_errors", 32},
    {"max_warnings", 32},
    {"max_segment_reclaim", 10},
    {"destroy_on_exit", 0},
    {"arena_reserve", sizeof(void*) > 4 ? 1048576 : 131072},
    {"arena_purge_mult", 10},
    {"purge_extend_delay", 1},
    {"abandoned_reclaim_on_free", 0},
    {"disallow_arena_alloc", 0},
    {"retry_on_oom", 400},
    {"visit_abandoned", 0},
    {"guarded_min", 0},
    {"guarded_max", 1073741824},
    {"guarded_precise", 0},
    {"guarded_sample_rate", 0},
    {"guarded_sample_seed", 0},
    {"target_segments_per_thread", 0},
    {"generic_collect", 10000},
    {"allow_thp", 1},
};

static void check_table(void) {
  CHECK_EQ(COUNT_OF(expected), _mi_option_last);
  CHECK_EQ(_mi_option_last, 38);
  CHECK_EQ(mi_option_allow_thp, 37);
  CHECK_EQ(mi_option_reset_delay, mi_option_purge_delay);
  sink_clear(&output);
  mi_options_print_out(&sink_write, &output);
  const char* at = output.text;
  for (size_t i = 0; i < COUNT_OF(expected); i++) {
    char line[128];
    bool is_size = (i == mi_option_reserve_os_memory || i == mi_option_arena_reserve);
    snprintf(line, sizeof(line), "mimalloc: option '%s': %ld %s\n", expected[i].name, expected[i].initial,
             is_size ? "KiB" : "");
    const char* found = strstr(at, line);
    CHECK_FOR(found != NULL, "option %zu, %s", i, expected[i].name);
    if (found != NULL) at = found;
  }
  CHECK(was_said("mimalloc: v2.4.") && was_said("mimalloc: debug level : ") && was_said("mimalloc: secure level: ") &&
        was_said("mimalloc: mem tracking: "));
}

// ---- parsing --------------------------------------------------------------------------------------------------------

enum { DEFAULT = 4321 };

static void check_value(mi_option_t option, const char* name, const char* value, long want) {
  char entry[256];
  snprintf(entry, sizeof(entry), "MIMALLOC_%s=%s", name, value);
  long got = read_with(option, DEFAULT, entry, NULL);
  CHECK_FOR(got == want, "%s: %ld, not %ld", entry, got, want);
  CHECK_FOR(was_said("has an invalid value") == (want == DEFAULT), "%s: %s", entry, output.text);
}

static void check_values(void) {
  static const struct {
    const char* text;
    long        plain, size;
  } cases[] = {
      {"", 1, 1},
      {"1", 1, 1},
      {"true", 1, 1},
      {"Yes", 1, 1},
      {"ON", 1, 1},
      {"0", 0, 0},
      {"False", 0, 0},
      {"no", 0, 0},
      {"oFF", 0, 0},
      {"2", 2, 1},
      {"-1", -1, DEFAULT},
      {"+77", 77, 1},
      {" 77", 77, 1},
      {"0077", 77, 1},
      {"1024", 1024, 1},
      {"1025", 1025, 2},
      {"1048577", 1048577, 1025},
      {"77 ", DEFAULT, DEFAULT},
      {"0x10", DEFAULT, DEFAULT},
      {"-", DEFAULT, DEFAULT},
      {"yess", DEFAULT, DEFAULT},
      {"12cats", DEFAULT, DEFAULT},
      {"1.5", DEFAULT, DEFAULT},
      {"- 1", DEFAULT, DEFAULT},
      {"M", DEFAULT, DEFAULT},
      {"100K", DEFAULT, 100},
      {"64m", DEFAULT, 65536},
      {"64mb", DEFAULT, 65536},
      {"64MiB", DEFAULT, 65536},
      {"2g", DEFAULT, 2097152},
      {"-3G", DEFAULT, DEFAULT},
      {"0K", DEFAULT, 0},
      {"64Mi", DEFAULT, DEFAULT},
      {"64B", DEFAULT, DEFAULT},
      {"64MM", DEFAULT, DEFAULT},
      {"64 M", DEFAULT, DEFAULT},
      {"9999999999999999999999", DEFAULT, DEFAULT},
      {"-9999999999999999999999", DEFAULT, DEFAULT},
      {"9999999999999999999T", DEFAULT, DEFAULT},
      {"9007199254740992K", DEFAULT, sizeof(long) == 8 ? 9007199254740992 : DEFAULT},
  };
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    check_value(mi_option_os_tag, "OS_TAG", cases[i].text, cases[i].plain);
    check_value(mi_option_arena_reserve, "ARENA_RESERVE", cases[i].text, cases[i].size);
  }
  if (sizeof(long) == 8) check_value(mi_option_arena_reserve, "ARENA_RESERVE", "1T", (long)(1024 * MiB));
  char text[80]; // 64 characters are the most
  memset(text, ' ', sizeof(text));
  memcpy(text + 61, "123", 4);
  check_value(mi_option_os_tag, "OS_TAG", text, 123);
  memcpy(text + 61, "1234", 5);
  check_value(mi_option_os_tag, "OS_TAG", text, DEFAULT);
}

// A decimal number is what strtol says it is, if it is one.
static void check_random_values(uint64_t seed) {
  static const char alphabet[] = "0123456789-+ ktB";
  for (int i = 0; i < 3000; i++) {
    char   text[24], entry[64];
    size_t n = 0;
    for (size_t length = 1 + seed % 20; n < length; n++) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      text[n] = alphabet[(seed >> 33) % (seed >> 63 ? 10 : sizeof(alphabet) - 1)];
    }
    text[n] = 0;
    char* end;
    errno = 0;
    long want = strtol(text, &end, 10);
    if (end == text || *end != 0 || errno == ERANGE) want = DEFAULT;
    snprintf(entry, sizeof(entry), "MIMALLOC_OS_TAG=%s", text);
    long got = read_with(mi_option_os_tag, DEFAULT, entry, NULL);
    CHECK_FOR(got == want, "'%s': %ld, not %ld", text, got, want);
  }
}

// ---- names and precedence -------------------------------------------------------------------------------------------

static void check_names(void) {
  mi_option_t o = mi_option_purge_delay;
  CHECK_EQ(read_with(o, 10, "MIMALLOC_PURGE_DELAY=5", "MIMALLOC_PURGE_DELAY=6"), 5); // the first one
  CHECK_EQ(read_with(o, 10, "mimalloc_purge_delay=7", NULL), 7);
  CHECK_EQ(read_with(o, 10, "MiMalloc_Purge_Delay=8", NULL), 8);
  CHECK_EQ(read_with(o, 10, "MIMALLOC_PURGE_DELAYS=9", "MIMALLOC_PURGE_DELA=9"), 10);
  CHECK_EQ(read_with(o, 10, "XMIMALLOC_PURGE_DELAY=9", "MIMALLOC_PURGE_DELAY"), 10);
  CHECK_EQ(output.length, 0);
  CHECK_EQ(read_with(o, 10, "MIMALLOC_RESET_DELAY=11", NULL), 11); // the older name, which it says
  CHECK(was_said("reset_delay") && was_said("purge_delay"));
  CHECK_EQ(read_with(o, 10, "MIMALLOC_RESET_DELAY=11", "MIMALLOC_PURGE_DELAY=12"), 12);
  CHECK_EQ(output.length, 0);
}

static void check_precedence(void) {
  mi_option_t o = mi_option_os_tag;
  read_with(o, 10, NULL, NULL);
  mi_option_set_default(o, 20);
  CHECK_EQ(mi_option_get(o), 20);
  mi_option_set(o, 30);
  CHECK_EQ(mi_option_get(o), 30);
  mi_option_set_default(o, 40);
  CHECK_EQ(mi_option_get(o), 30);
  read_with(o, 10, "MIMALLOC_OS_TAG=50", NULL);
  mi_option_set_default(o, 60);
  CHECK_EQ(mi_option_get(o), 50);
  mi_option_set(o, 70);
  CHECK_EQ(mi_option_get(o), 70);
  unread(o, 10);
  mi_option_set(o, 80); // before the environment was looked at
  CHECK_EQ(mi_option_get(o), 80);
}

// While there is no environment, defaults hold; it counts once it is there, unless it has been given up.
static void check_late_environment(void) {
  mi_option_t o = mi_option_os_tag;
  char*       none[] = {NULL};
  char*       some[] = {(char*)(uintptr_t)"MIMALLOC_OS_TAG=5", NULL};
  char**      before = environ;
  unread(o, 100);
  environ = none;
  CHECK_EQ(mi_option_get(o), 100);
  bool is_settled = mi_load_relaxed(&_mi_option_cells[o].state) != MI_OPTION_UNREAD; // by the library's constructor
  if (!is_settled) {
    mi_option_set_default(o, 101);
    CHECK_EQ(mi_option_get(o), 101);
    environ = some;
    CHECK_EQ(mi_option_get(o), 5);
    unread(o, 100);
    environ = none;
    _mi_options_settle();
  }
  environ = some;
  CHECK_EQ(mi_option_get(o), 100);
  environ = before;
}

static void check_bounds_are(long min, long max) {
  CHECK_EQ(mi_option_get(mi_option_guarded_min), min);
  CHECK_EQ(mi_option_get(mi_option_guarded_max), max);
}

// The bounds of guarded blocks do not cross: the one that is set moves the other, and a default does not move what is set.
static void check_bounds(void) {
  read_with(mi_option_guarded_min, 0, NULL, NULL);
  read_with(mi_option_guarded_max, 100, NULL, NULL);
  mi_option_set_default(mi_option_guarded_min, 200);
  check_bounds_are(200, 200);
  mi_option_set_default(mi_option_guarded_max, 50);
  check_bounds_are(50, 50);
  read_with(mi_option_guarded_max, 0, "MIMALLOC_GUARDED_MAX=100", NULL);
  mi_option_set_default(mi_option_guarded_min, 200);
  check_bounds_are(100, 100);
  mi_option_set(mi_option_guarded_min, 200);
  check_bounds_are(200, 200);
  mi_option_set(mi_option_guarded_max, 50);
  check_bounds_are(50, 50);
}

static void check_other_functions(void) {
  mi_option_t o = mi_option_os_tag;
  mi_option_enable(o);
  CHECK(mi_option_is_enabled(o) && mi_option_get(o) == 1);
  mi_option_disable(o);
  CHECK(!mi_option_is_enabled(o));
  mi_option_set(o, -7);
  CHECK(mi_option_is_enabled(o) && mi_option_get_size(o) == 0);
  CHECK_EQ(mi_option_get_clamp(o, -3, 5), -3);
  CHECK_EQ(mi_option_get_clamp(o, -30, -10), -10);
  CHECK_EQ(mi_option_get_clamp(o, -30, 10), -7);
  mi_option_set(o, 9);
  CHECK_EQ(mi_option_get_size(o), 9);
  mi_option_set(mi_option_arena_reserve, 9);
  CHECK_EQ(mi_option_get_size(mi_option_arena_reserve), 9 * KiB);
  mi_option_set(mi_option_arena_reserve, LONG_MAX);
  CHECK(mi_option_get_size(mi_option_arena_reserve) == SIZE_MAX);
  for (int i = -2; i < 100; i++) { // those that do not exist for programs, our own among them
    if (i >= 0 && i < (int)_mi_option_last) continue;
    long own = (i == (int)mi_option_background_thread ? _mi_option_get_fast(mi_option_background_thread) : 0);
    mi_option_set((mi_option_t)i, 5);
    mi_option_set_default((mi_option_t)i, 5);
    CHECK_EQ(mi_option_get((mi_option_t)i), 0);
    CHECK_EQ(mi_option_get_size((mi_option_t)i), 0);
    if (i == (int)mi_option_background_thread) CHECK_EQ(_mi_option_get_fast(mi_option_background_thread), own);
  }
}

// The verbose option warns of its own bad value although it says not to.
static void check_bad_verbose(void) {
  mi_option_set(mi_option_show_errors, 0);
  CHECK_EQ(read_with(mi_option_verbose, 0, "MIMALLOC_VERBOSE=loud", NULL), 0);
  CHECK(was_said("mimalloc: warning: environment option mimalloc_verbose has an invalid value."));
  CHECK_EQ(read_with(mi_option_os_tag, 0, "MIMALLOC_OS_TAG=loud", NULL), 0);
  CHECK_EQ(output.length, 0);
  mi_option_set(mi_option_show_errors, 1);
}

static bool is_printed(const char* line) {
  sink_clear(&output);
  mi_options_print_out(&sink_write, &output);
  return was_said(line);
}

// The list of options marks those that are set in vain; when it is verbose, so does the call that sets one.
static void check_without_effect(void) {
  static const char name[] = "'os_tag'", vain[] = "has no effect here";
  char              marked[] = "option 'os_tag': 5 (no effect here)\n";
  mi_option_set(mi_option_verbose, 0);
  read_with(mi_option_os_tag, 5, NULL, NULL);
  CHECK(!is_printed("no effect"));
  CHECK_EQ(read_with(mi_option_os_tag, 4, "MIMALLOC_OS_TAG=5", NULL), 5);
  CHECK(is_printed(marked));
  read_with(mi_option_os_tag, 4, NULL, NULL);
  sink_clear(&output);
  mi_option_set(mi_option_os_tag, 5);
  CHECK_EQ(output.length, 0);
  CHECK(is_printed(marked));
  mi_option_set(mi_option_verbose, 1);
  mi_option_set(mi_option_os_tag, 6);
  CHECK(was_said(name) && was_said(vain));
  sink_clear(&output);
  mi_option_set(mi_option_purge_delay, mi_option_get(mi_option_purge_delay)); // is set, and has one
  CHECK_EQ(output.length, 0);
  CHECK(!is_printed("option 'purge_delay': 10 (no"));
  mi_option_set(mi_option_verbose, 0);
}

// Options whose values are texts are printed if the environment has them, as it can be printed.
static void check_texts(void) {
  char*  entries[] = {(char*)(uintptr_t)"MIMALLOC_PUBLISH_DIR=/run/\033[31m",
                      (char*)(uintptr_t)"mimalloc_profile=/tmp/p", NULL};
  char** before = environ;
  CHECK(!is_printed("'profile'"));
  environ = entries;
  CHECK(is_printed("option 'profile': /tmp/p\n") && was_said("option 'publish_dir': /run/?[31m\n"));
  CHECK(!was_said("'redirect'"));
  environ = before;
}

// ---- threads --------------------------------------------------------------------------------------------------------

enum { N_READERS = 3, N_ROUNDS = 2000 };
static long round_now, n_arrived; // atomically

static void wait_for_round(long round) {
  while (__atomic_load_n(&round_now, __ATOMIC_ACQUIRE) < round) sched_yield();
}

static void* read_in_rounds(void* arg) {
  for (long round = 1; round <= N_ROUNDS; round++) {
    wait_for_round(round);
    long value = mi_option_get(mi_option_os_tag);
    CHECK_FOR(value == 100 || value == round, "%ld in round %ld", value, round);
    __atomic_add_fetch(&n_arrived, 1, __ATOMIC_RELEASE);
  }
  return arg;
}

// A value that was set is never lost to a thread that reads the environment at the same time.
static void check_threads(void) {
  pthread_t threads[N_READERS];
  for (size_t i = 0; i < N_READERS; i++) pthread_create(&threads[i], NULL, &read_in_rounds, NULL);
  for (long round = 1; round <= N_ROUNDS; round++) {
    unread(mi_option_os_tag, 100);
    __atomic_store_n(&round_now, round, __ATOMIC_RELEASE);
    for (volatile long i = 0; i < round % 500; i++) {
    }
    mi_option_set(mi_option_os_tag, round);
    CHECK_EQ(mi_option_get(mi_option_os_tag), round);
    while (__atomic_load_n(&n_arrived, __ATOMIC_ACQUIRE) < round * N_READERS) sched_yield();
    CHECK_EQ(mi_option_get(mi_option_os_tag), round);
  }
  for (size_t i = 0; i < N_READERS; i++) pthread_join(threads[i], NULL);
}

int main(int argc, char** argv) {
  uint64_t seed = test_seed(argc, argv);
  for (char** e = environ; *e != NULL; e++) {
    if (strncmp(*e, "MIMALLOC_", 9) != 0) continue;
    test_skip("options", "the environment has some, so that the defaults cannot be seen");
    return skip_code;
  }
  mi_register_output(&sink_write, &output);
  if (MI_API_LEVEL < 3) check_table(); // test/api/test-layout.c has those of level 3
  mi_option_set(mi_option_max_warnings, -1);
  check_names();
  check_precedence();
  check_values();
  check_random_values(seed);
  check_bad_verbose();
  check_without_effect();
  check_texts();
  check_threads();
  check_bounds();
  check_other_functions();
  check_late_environment();
  mi_register_output(NULL, NULL);
  return check_result();
}
