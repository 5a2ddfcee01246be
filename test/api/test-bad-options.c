// Proves: a value that an option cannot have, and an option that there is not, are named in a warning together with what is
// wrong; the option keeps the value that it had, and the process goes on.  In the environment, which each case has in a child
// of its own, and in calls.  An option that has no effect is named in verbose output if it is set, and no other is.
#include "../check.h"
#include "../sink.h"
#include "entries.h"
#include <limits.h>
#include <sys/wait.h>

// KiB of the largest size that a number can say, which is more than there are addresses.
#if LONG_MAX > 2147483647L
  #define MOST_KIB "9223372036854775807K"
#else
  #define MOST_KIB "2147483647K"
#endif

#define WORDS_80 "12345678901234567890123456789012345678901234567890123456789012345678901234567890"

typedef struct case_s {
  const char* entry;
  mi_option_t option; // keeps its default, unless there is no such option
  const char* says;   // NULL: nothing is wrong with it
} case_t;

enum { no_option = _mi_option_last };

static const case_t cases[] = {
    // not a number
    {"MIMALLOC_PURGE_DELAY=soon", mi_option_purge_delay,
     "mimalloc_purge_delay has an invalid value. 'soon' is not a number"},
    {"MIMALLOC_PURGE_DELAY=12cats", mi_option_purge_delay, "'12cats' is not a number"},
    {"MIMALLOC_PURGE_DELAY=0x10", mi_option_purge_delay, "'0x10' is not a number"},
    {"MIMALLOC_PURGE_DELAY=1.5", mi_option_purge_delay, "'1.5' is not a number"},
    {"MIMALLOC_PURGE_DELAY=10 ", mi_option_purge_delay, "'10 ' is not a number"},
    {"MIMALLOC_PURGE_DELAY=10ms", mi_option_purge_delay, "'10ms' is not a number"},
    {"MIMALLOC_PURGE_DELAY= ", mi_option_purge_delay, "' ' is not a number"},
    {"MIMALLOC_PURGE_DELAY=-", mi_option_purge_delay, "'-' is not a number"},
    {"MIMALLOC_PURGE_DELAY=--1", mi_option_purge_delay, "'--1' is not a number"},
    {"MIMALLOC_SHOW_STATS=maybe", mi_option_show_stats,
     "mimalloc_show_stats has an invalid value. 'maybe' is not a number"},
    {"MIMALLOC_VERBOSE=loud", mi_option_verbose, "mimalloc_verbose has an invalid value. 'loud' is not a number"},
    {"MIMALLOC_ARENA_RESERVE=lots", mi_option_arena_reserve, "'lots' is not a number"},
    {"MIMALLOC_ARENA_RESERVE=M", mi_option_arena_reserve, "'M' is not a number"},
    {"MIMALLOC_RESET_DELAY=soon", mi_option_purge_delay, "mimalloc_reset_delay has an invalid value"},
    {"MIMALLOC_PURGE_DELAY=\033[31m", mi_option_purge_delay, "'?[31m' is not a number"},
    // units
    {"MIMALLOC_ARENA_RESERVE=64X", mi_option_arena_reserve, "'64X' has an unknown unit"},
    {"MIMALLOC_ARENA_RESERVE=64Mi", mi_option_arena_reserve, "'64Mi' has an unknown unit"},
    {"MIMALLOC_ARENA_RESERVE=64 M", mi_option_arena_reserve, "'64 M' has an unknown unit"},
    {"MIMALLOC_RESERVE_OS_MEMORY=1P", mi_option_reserve_os_memory, "'1P' has an unknown unit"},
    {"MIMALLOC_GUARDED_MAX=1K", mi_option_guarded_max, "'1K' is not a number"},
    // out of range
    {"MIMALLOC_PURGE_DELAY=-2", mi_option_purge_delay, "'-2' is out of range"},
    {"MIMALLOC_PURGE_DELAY=2147483648", mi_option_purge_delay, "'2147483648' is out of range"},
    {"MIMALLOC_PURGE_DELAY=99999999999999999999", mi_option_purge_delay, "is out of range"},
    {"MIMALLOC_PURGE_DELAY=-99999999999999999999", mi_option_purge_delay, "is out of range"},
    {"MIMALLOC_ARENA_PURGE_MULT=-1", mi_option_arena_purge_mult, "'-1' is out of range"},
    {"MIMALLOC_ARENA_RESERVE=-1", mi_option_arena_reserve, "'-1' is out of range"},
    {"MIMALLOC_ARENA_RESERVE=-1G", mi_option_arena_reserve, "'-1G' is out of range"},
    {"MIMALLOC_ARENA_RESERVE=9999999999999999999T", mi_option_arena_reserve, "is out of range"},
    {"MIMALLOC_ARENA_RESERVE=" MOST_KIB, mi_option_arena_reserve, NULL},
    {"MIMALLOC_RESERVE_OS_MEMORY=-64M", mi_option_reserve_os_memory, "'-64M' is out of range"},
    {"MIMALLOC_RESERVE_HUGE_OS_PAGES=-1", mi_option_reserve_huge_os_pages, "'-1' is out of range"},
    {"MIMALLOC_RESERVE_HUGE_OS_PAGES_AT=-2", mi_option_reserve_huge_os_pages_at, "'-2' is out of range"},
    {"MIMALLOC_USE_NUMA_NODES=-1", mi_option_use_numa_nodes, "'-1' is out of range"},
    {"MIMALLOC_ALLOW_THP=3", mi_option_allow_thp, "'3' is out of range"},
    {"MIMALLOC_ARENA_EAGER_COMMIT=7", mi_option_arena_eager_commit, "'7' is out of range"},
    {"MIMALLOC_SHOW_STATS=-1", mi_option_show_stats, "'-1' is out of range"},
    {"MIMALLOC_PURGE_DECOMMITS=-5", mi_option_purge_decommits, "'-5' is out of range"},
    {"MIMALLOC_VERBOSE=-1", mi_option_verbose, "mimalloc_verbose has an invalid value. '-1' is out of range"},
    {"MIMALLOC_GUARDED_SAMPLE_RATE=-1", mi_option_guarded_sample_rate, "'-1' is out of range"},
    {"MIMALLOC_GUARDED_MIN=-1", mi_option_guarded_min, "'-1' is out of range"},
    {"MIMALLOC_GUARDED_MAX=-1", mi_option_guarded_max, "'-1' is out of range"},
    {"MIMALLOC_GUARDED_MIN=2000000000", (mi_option_t)no_option,
     "mimalloc_guarded_max is less than mimalloc_guarded_min: it is raised to 2000000000"},
    {"MIMALLOC_GUARDED_BEFORE=101", (mi_option_t)no_option, "'101' is out of range: it stays -1"},
    {"MIMALLOC_GUARDED_BEFORE=-2", (mi_option_t)no_option, "'-2' is out of range"},
    {"MIMALLOC_GUARDED_BEFORE=100", (mi_option_t)no_option, NULL},
    {"MIMALLOC_GUARDED_BEFORE=-1", (mi_option_t)no_option, NULL},
    {"MIMALLOC_PROFILE_RATE=1073741825", (mi_option_t)no_option,
     "mimalloc_profile_rate has an invalid value. '1073741825' is out of range: it stays 524288"},
    {"MIMALLOC_PROFILE_RATE=1073741824", (mi_option_t)no_option, NULL},
    {"MIMALLOC_DESTROY_ON_EXIT=-1", mi_option_destroy_on_exit, "'-1' is out of range"},
    {"MIMALLOC_MAX_ERRORS=99999999999999999999", mi_option_max_errors, "is out of range"},
    {"MIMALLOC_BACKGROUND_THREAD=-1", (mi_option_t)no_option, "mimalloc_background_thread has an invalid value"},
    // limits: a size or a share
    {"MIMALLOC_LIMIT=12Q", (mi_option_t)no_option,
     "mimalloc_limit has an invalid value. '12Q' has an unknown unit: it stays 0 (none)"},
    {"MIMALLOC_LIMIT=150%", (mi_option_t)no_option, "'150%' is not between 1% and 100%: it stays 0 (none)"},
    {"MIMALLOC_LIMIT=0%", (mi_option_t)no_option, "'0%' is not between 1% and 100%"},
    {"MIMALLOC_LIMIT=-5%", (mi_option_t)no_option, "'-5%' is not between 1% and 100%"},
    {"MIMALLOC_LIMIT=50%%", (mi_option_t)no_option, "'50%%' has an unknown unit"},
    {"MIMALLOC_LIMIT=-1", (mi_option_t)no_option, "'-1' is out of range: it stays 0 (none)"},
    {"MIMALLOC_LIMIT=", (mi_option_t)no_option, "'' is not a size"},
    {"MIMALLOC_LIMIT=on", (mi_option_t)no_option, "'on' is not a size"},
    {"MIMALLOC_LIMIT=%", (mi_option_t)no_option, "'%' is not a size"},
    {"MIMALLOC_LIMIT=9999999999999999999T", (mi_option_t)no_option, "is out of range"},
    {"MIMALLOC_LIMIT_SOFT=half", (mi_option_t)no_option,
     "mimalloc_limit_soft has an invalid value. 'half' is not a size"},
    {"MIMALLOC_RETAIN=1.5M", (mi_option_t)no_option,
     "mimalloc_retain has an invalid value. '1.5M' has an unknown unit"},
    {"MIMALLOC_LIMIT=off", (mi_option_t)no_option, NULL},
    {"MIMALLOC_LIMIT=2G", (mi_option_t)no_option, NULL},
    {"MIMALLOC_LIMIT=80%", (mi_option_t)no_option, NULL},
    // too long
    {"MIMALLOC_PURGE_DELAY=" WORDS_80, mi_option_purge_delay, "is too long"},
    // no such option
    {"MIMALLOC_PURGE_DELAYS=5", mi_option_purge_delay, "environment option MIMALLOC_PURGE_DELAYS=5 is not known"},
    {"mimalloc_purge=5", mi_option_purge_delay, "environment option mimalloc_purge=5 is not known"},
    {"MIMALLOC_=5", mi_option_purge_delay, "environment option MIMALLOC_=5 is not known"},
    {"MIMALLOC_PURGE_DELAY", mi_option_purge_delay, "environment option MIMALLOC_PURGE_DELAY is not known"},
    {"MIMALLOC_" WORDS_80 "=1", mi_option_purge_delay, " is not known"},
    // nothing is wrong
    {"MIMALLOC_DISABLE_REDIRECT=1", mi_option_purge_delay, NULL},
    {"MIMALLOCX=1", mi_option_purge_delay, NULL},
    {"MIMALLOC_BACKGROUND_THREAD=0", mi_option_purge_delay, NULL},
};

// ---- the environment ------------------------------------------------------------------------------------------------

// In the child: says the value of the option, and that memory can be had.
static int show_option(int number) {
  char* p = (char*)mi_malloc(1000);
  memset(p, 1, 1000);
  mi_free(p);
  printf("value %ld\n", number == no_option ? 0 : mi_option_get((mi_option_t)number));
  return 0;
}

static size_t run_child(const char* entry, mi_option_t option, const char* shows, char* text, size_t size) {
  char   number[32];
  int    fds[2];
  size_t length = 0;
  snprintf(number, sizeof(number), "%d", (int)option);
  char* arguments[] = {(char*)"case", number, NULL};
  char* environment[] = {(char*)(uintptr_t)"HOME=/", (char*)(uintptr_t)entry, (char*)(uintptr_t)shows, NULL};
  if (pipe(fds) != 0) return 0;
  pid_t pid = fork();
  if (pid == 0) {
    dup2(fds[1], 1);
    dup2(fds[1], 2);
    close(fds[0]);
    test_exec(arguments, environment);
    _exit(99);
  }
  close(fds[1]);
  for (ssize_t n; (n = read(fds[0], text + length, size - 1 - length)) > 0;) length += (size_t)n;
  text[length] = 0;
  close(fds[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  CHECK_FOR(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: status %x, %s", entry, status, text);
  return length;
}

static size_t count(const char* text, const char* word) {
  size_t n = 0;
  for (const char* at = text; (at = strstr(at, word)) != NULL; at++) n++;
  return n;
}

static void check_case(const case_t* c) {
  static char text[64 * 1024];
  char        value[64];
  if (strchr(c->entry, '=') == NULL && test_env("MI_TEST_EMULATED", 0) != 0) {
    test_skip("an entry of the environment without a value", "the emulator drops it");
    return;
  }
  bool is_valid_size = (strstr(c->entry, "=" MOST_KIB) != NULL); // more KiB than there are addresses
  snprintf(value, sizeof(value), "value %ld\n", (int)c->option == no_option ? 0 : mi_option_get(c->option));
  run_child(c->entry, c->option, "MIMALLOC_SHOW_ERRORS=1", text, sizeof(text));
  if (!is_valid_size) CHECK_FOR(strstr(text, value) != NULL, "%s: no '%s' in '%s'", c->entry, value, text);
  CHECK_FOR(count(text, "mimalloc: warning:") == (c->says != NULL) + (size_t)(strstr(c->entry, "RESET") != NULL),
            "%s: %s", c->entry, text);
  if (c->says != NULL) CHECK_FOR(strstr(text, c->says) != NULL, "%s: no '%s' in '%s'", c->entry, c->says, text);
  run_child(c->entry, c->option, "MIMALLOC_SHOW_ERRORS=0", text, sizeof(text));
  bool is_verbose = (strstr(c->entry, "VERBOSE") != NULL); // which says so in any case
  CHECK_FOR(count(text, "mimalloc: warning:") == (is_verbose ? 1 : 0), "%s, silent: %s", c->entry, text);
}

static void check_vain(void) {
  static char text[64 * 1024];
  run_child("MIMALLOC_GENERIC_COLLECT=5", (mi_option_t)no_option, "MIMALLOC_VERBOSE=1", text, sizeof(text));
  CHECK_FOR(strstr(text, "option 'generic_collect': 5 (no effect here)\n") != NULL, "%s", text);
  CHECK_EQ(count(text, "no effect"), 1);
  run_child("MIMALLOC_PURGE_DELAY=5", (mi_option_t)no_option, "MIMALLOC_VERBOSE=1", text, sizeof(text));
  CHECK_FOR(strstr(text, "option 'purge_delay': 5 \n") != NULL, "%s", text);
  CHECK_EQ(count(text, "no effect"), 0);
}

// ---- calls ----------------------------------------------------------------------------------------------------------

static sink_t output;

static void check_call(mi_option_t option, const char* name, long value) {
  char want[128];
  long before = mi_option_get(option);
  for (int by_default = 0; by_default <= 1; by_default++) {
    sink_clear(&output);
    if (by_default) mi_option_set_default(option, value);
    else mi_option_set(option, value);
    snprintf(want, sizeof(want), "warning: option '%s' has an invalid value. %ld is out of range: it stays %ld", name,
             value, before);
    CHECK_FOR(sink_has(&output, want), "no '%s' in '%s'", want, output.text);
    CHECK_FOR(mi_option_get(option) == before, "%s: %ld, not %ld", name, mi_option_get(option), before);
  }
}

static void check_calls(void) {
  check_call(mi_option_purge_delay, "purge_delay", -2);
  check_call(mi_option_purge_delay, "purge_delay", -2147483647L);
  check_call(mi_option_arena_purge_mult, "arena_purge_mult", -1);
  check_call(mi_option_show_stats, "show_stats", -1);
  check_call(mi_option_allow_thp, "allow_thp", 3);
  check_call(mi_option_allow_thp, "allow_thp", -1);
  check_call(mi_option_arena_reserve, "arena_reserve", -1);
  check_call(mi_option_guarded_sample_rate, "guarded_sample_rate", -1);
  check_call(mi_option_guarded_min, "guarded_min", -1);
  check_call(mi_option_guarded_max, "guarded_max", -1);
  check_call(mi_option_verbose, "verbose", -1);
  if (sizeof(long) == 8) check_call(mi_option_purge_delay, "purge_delay", (long)((size_t)1 << 31));
}

static void check_numbers(void) {
  static const int numbers[] = {-1, -2147483647, no_option, no_option + 1, 100000};
  for (size_t i = 0; i < COUNT_OF(numbers); i++) {
    mi_option_t option = (mi_option_t)(int)hidden((size_t)numbers[i]);
    char        want[64];
    snprintf(want, sizeof(want), "warning: option %d does not exist", numbers[i]);
    for (int call = 0; call < 4; call++) {
      sink_clear(&output);
      if (call == 0) CHECK_EQ(mi_option_get(option), 0);
      else if (call == 1) mi_option_set(option, 5);
      else if (call == 2) mi_option_set_default(option, 5);
      else CHECK_EQ(mi_option_get_size(option), 0);
      CHECK_FOR(sink_has(&output, want), "call %d: no '%s' in '%s'", call, want, output.text);
    }
  }
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[0], "case") == 0) return show_option(atoi(argv[1]));
  if (!test_can_exec()) return skip_code;
  for (char** e = environ; *e != NULL; e++) {
    if (strncmp(*e, "MIMALLOC_", 9) != 0) continue;
    test_skip("options", "the environment has some, so that the defaults cannot be seen");
    return skip_code;
  }
  for (size_t i = 0; i < COUNT_OF(cases); i++) check_case(&cases[i]);
  check_vain();
  mi_register_output(&sink_write, &output);
  mi_option_set(mi_option_show_errors, 1);
  mi_option_set(mi_option_max_warnings, -1);
  check_calls();
  check_numbers();
  mi_register_output(NULL, NULL);
  return check_result();
}
