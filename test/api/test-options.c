// Proves: options can be read, set and given defaults with the documented precedence, and the environment is parsed by
// the documented rules.  The environment is read at start, so each case runs this program again as a child; later it may be
// where nobody can read it.
#include "../check.h"
#include "entries.h"
#include <sys/wait.h>

static void check_set_and_get(void) {
  long before = mi_option_get(mi_option_purge_delay);
  mi_option_set(mi_option_purge_delay, 123);
  CHECK_EQ(mi_option_get(mi_option_purge_delay), 123);
  CHECK(mi_option_is_enabled(mi_option_purge_delay));
  mi_option_set_default(mi_option_purge_delay, 77); // too late: it has been set
  CHECK_EQ(mi_option_get(mi_option_purge_delay), 123);
  CHECK_EQ(mi_option_get_clamp(mi_option_purge_delay, 0, 100), 100);
  CHECK_EQ(mi_option_get_clamp(mi_option_purge_delay, 200, 300), 200);
  CHECK_EQ(mi_option_get_clamp(mi_option_purge_delay, 0, 300), 123);
  mi_option_set(mi_option_purge_delay, before);

  mi_option_disable(mi_option_show_errors);
  CHECK(!mi_option_is_enabled(mi_option_show_errors));
  mi_option_enable(mi_option_show_errors);
  CHECK(mi_option_is_enabled(mi_option_show_errors) && mi_option_get(mi_option_show_errors) == 1);
  mi_option_set_enabled(mi_option_show_errors, false);
  CHECK(!mi_option_is_enabled(mi_option_show_errors));

  mi_option_set_default(mi_option_max_warnings, 7); // nobody has set it: takes effect
  CHECK_EQ(mi_option_get(mi_option_max_warnings), 7);
  mi_option_set_enabled_default(mi_option_max_warnings, true);
  CHECK_EQ(mi_option_get(mi_option_max_warnings), 1);

  mi_option_set(mi_option_arena_reserve, 2048); // in KiB
  CHECK_EQ(mi_option_get(mi_option_arena_reserve), 2048);
  CHECK_EQ(mi_option_get_size(mi_option_arena_reserve), 2 * MiB);
  mi_option_set(mi_option_max_errors, -1);
  CHECK_EQ(mi_option_get(mi_option_max_errors), -1);
  CHECK_EQ(mi_option_get_size(mi_option_max_errors), 0);
}

static void check_out_of_range(void) {
  mi_option_t beyond = (mi_option_t)hidden(_mi_option_last);
  CHECK_EQ(mi_option_get(beyond), 0);
  CHECK_EQ(mi_option_get((mi_option_t)hidden(100000)), 0);
  mi_option_set(beyond, 5);
  CHECK_EQ(mi_option_get(beyond), 0);
}

typedef struct case_s {
  const char* entry;
  mi_option_t option;
  long        value;
} case_t;

enum { is_default = -987654 };

static const case_t cases[] = {
    {"MIMALLOC_PURGE_DELAY=55", mi_option_purge_delay, 55},
    {"mimalloc_purge_delay=56", mi_option_purge_delay, 56},
    {"MiMalloc_Purge_DELAY=57", mi_option_purge_delay, 57},
    {"MIMALLOC_PURGE_DELAY=-1", mi_option_purge_delay, -1},
    {"MIMALLOC_PURGE_DELAY=", mi_option_purge_delay, 1},
    {"MIMALLOC_PURGE_DELAY=yes", mi_option_purge_delay, 1},
    {"MIMALLOC_PURGE_DELAY=On", mi_option_purge_delay, 1},
    {"MIMALLOC_PURGE_DELAY=TRUE", mi_option_purge_delay, 1},
    {"MIMALLOC_PURGE_DELAY=no", mi_option_purge_delay, 0},
    {"MIMALLOC_PURGE_DELAY=off", mi_option_purge_delay, 0},
    {"MIMALLOC_PURGE_DELAY=False", mi_option_purge_delay, 0},
    {"MIMALLOC_PURGE_DELAY=0x10", mi_option_purge_delay, is_default},
    {"MIMALLOC_PURGE_DELAY=12cats", mi_option_purge_delay, is_default},
    {"MIMALLOC_RESET_DELAY=58", mi_option_purge_delay, 58}, // the legacy name
    {"MIMALLOC_ARENA_RESERVE=64M", mi_option_arena_reserve, 64 * 1024},
    {"MIMALLOC_ARENA_RESERVE=64mb", mi_option_arena_reserve, 64 * 1024},
    {"MIMALLOC_ARENA_RESERVE=64MiB", mi_option_arena_reserve, 64 * 1024},
    {"MIMALLOC_ARENA_RESERVE=100K", mi_option_arena_reserve, 100},
    {"MIMALLOC_ARENA_RESERVE=2G", mi_option_arena_reserve, 2 * 1024 * 1024},
    {"MIMALLOC_ARENA_RESERVE=1048577", mi_option_arena_reserve, 1025},
    {"MIMALLOC_MAX_ERRORS=3", mi_option_max_errors, 3},
    {"MIMALLOC_ALLOW_THP=0", mi_option_allow_thp, 0},
    {"MIMALLOC_EAGER_REGION_COMMIT=0", mi_option_arena_eager_commit, 0}, // older names
    {"MIMALLOC_RESET_DECOMMITS=0", mi_option_purge_decommits, 0},
    {"MIMALLOC_LARGE_OS_PAGES=1", mi_option_allow_large_os_pages, 1},
    {"MIMALLOC_LIMIT_OS_ALLOC=1", mi_option_disallow_os_alloc, 1},
#if MI_API_LEVEL < 3
    {"MIMALLOC_ABANDONED_PAGE_RESET=1", mi_option_abandoned_page_purge, 1},
    {"MIMALLOC_DECOMMIT_EXTEND_DELAY=9", mi_option_purge_extend_delay, 9},
    {"MIMALLOC_ABANDONED_RECLAIM_ON_FREE=1", mi_option_abandoned_reclaim_on_free, 1},
#else
    {"MIMALLOC_DECOMMIT_EXTEND_DELAY=9", mi_option_deprecated_purge_extend_delay, 9},
    {"MIMALLOC_ABANDONED_RECLAIM_ON_FREE=1", mi_option_page_reclaim_on_free, 1},
    {"MIMALLOC_PAGE_RECLAIM_ON_FREE=-1", mi_option_page_reclaim_on_free, -1},
    {"MIMALLOC_MINIMAL_PURGE_SIZE=1M", mi_option_minimal_purge_size, 1024},
    {"MIMALLOC_ARENA_MAX_OBJECT_SIZE=3000000", mi_option_arena_max_object_size, 2930},
    {"MIMALLOC_PAGE_MAX_RECLAIM=77", mi_option_page_max_reclaim, 77},
#endif
};

static int run_child(char** arguments, const char* entry) {
  char* environment[] = {(char*)(uintptr_t)entry, NULL};
  pid_t pid = fork();
  if (pid == 0) {
    int fd = open("/dev/null", O_WRONLY);
    if (fd >= 0) dup2(fd, 2); // the warnings about invalid values
    test_exec(arguments, environment);
    _exit(99);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

static int run_case(size_t index, long default_value) {
  char number[32], value[32];
  snprintf(number, sizeof(number), "%zu", index);
  snprintf(value, sizeof(value), "%ld", default_value);
  char* arguments[] = {(char*)"case", number, value, NULL};
  return run_child(arguments, cases[index].entry);
}

static int check_case(size_t index, long default_value) {
  long want = cases[index].value == is_default ? default_value : cases[index].value;
  long got = mi_option_get(cases[index].option);
  if (got != want) return 1;
  mi_option_set_default(cases[index].option, want + 1); // the environment wins over a default ...
  bool is_set = cases[index].value != is_default;
  if (is_set && mi_option_get(cases[index].option) != want) return 2;
  mi_option_set(cases[index].option, want + 2); // ... and a program over the environment
  return mi_option_get(cases[index].option) == want + 2 ? 0 : 3;
}

// Options that nobody has read yet: the environment had none of ours, and now it cannot be read.
static int run_lost(void) {
  char** before = environ;
  environ = (char**)hidden(sizeof(char*)); // nothing is there
  void* p = mi_malloc(hidden(64 * MiB));
  bool is_right = (p != NULL && mi_option_get(mi_option_max_errors) == 32 && mi_option_get(mi_option_purge_delay) >= 0);
  mi_free(p);
  mi_collect(true);
  environ = before;
  return is_right ? 0 : 1;
}

int main(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[0], "case") == 0) return check_case((size_t)atoi(argv[1]), atol(argv[2]));
  if (argc == 1 && strcmp(argv[0], "lost") == 0) return run_lost();
  test_seed(argc, argv);
  long default_delay = mi_option_get(mi_option_purge_delay);
  bool is_clean = test_can_exec();
  for (char** e = environ; *e != NULL; e++) is_clean = is_clean && strncmp(*e, "MIMALLOC_", 9) != 0;
  if (is_clean) {
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
      CHECK_FOR(run_case(i, default_delay) == 0, "%s", cases[i].entry);
    }
    char* arguments[] = {(char*)"lost", NULL};
    CHECK_EQ(run_child(arguments, "HOME=/"), 0);
  }
  check_out_of_range();
  check_set_and_get();
  return check_result();
}
