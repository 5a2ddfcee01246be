// Proves: whatever call is the first one, and however early it comes, it works.  Each case runs this program again with
// one call made before any constructor has run; constructors of all priorities then allocate, and main checks it all.
#include "../check.h"
#include <mimalloc.h>
#include <sys/wait.h>
#include "support.h"

static void ignore_text(const char* text, void* arg) {
  (void)text;
  (void)arg;
}
static void ignore_error(int code, void* arg) {
  (void)code;
  (void)arg;
}
static void ignore_beat(bool force, unsigned long long beat, void* arg) {
  (void)force;
  (void)beat;
  (void)arg;
}

static void* first_block;
static bool  was_right = true;

static void expect(bool cond) {
  was_right = was_right && cond;
}

static void first_free_null(void) {
  mi_free(NULL);
}
static void first_free_foreign(void) {
  static char c[64];
  mi_cfree(hidden_pointer(c));
}
static void first_usable_null(void) {
  expect(mi_usable_size(NULL) == 0);
}
static void first_usable(void) {
  static char c[64];
  expect(mi_usable_size(hidden_pointer(c)) == 0);
}
static void first_malloc(void) {
  first_block = mi_malloc(100);
  expect(first_block != NULL);
}
static void first_malloc_small(void) {
  first_block = mi_malloc_small(16);
  expect(first_block != NULL);
}
static void first_malloc_big(void) {
  first_block = mi_malloc(40 * MiB);
  expect(first_block != NULL);
}
static void first_calloc(void) {
  first_block = mi_calloc(10, 10);
  expect(first_block != NULL && is_zero(first_block, 0, 100));
}
static void first_realloc(void) {
  first_block = mi_realloc(NULL, 5000);
  expect(first_block != NULL);
}
static void first_aligned(void) {
  first_block = mi_malloc_aligned(64, 8192);
  expect(is_aligned(first_block, 8192) && first_block);
}
static void first_memalign(void) {
  expect(mi_posix_memalign(&first_block, 64, 64) == 0);
}
static void first_strdup(void) {
  first_block = mi_strdup("early");
  expect(strcmp((char*)first_block, "early") == 0);
}
static void first_new(void) {
  first_block = mi_new(24);
  expect(first_block != NULL);
}
static void first_too_large(void) {
  errno = 0;
  expect(mi_malloc(hidden(SIZE_MAX)) == NULL && errno == ENOMEM);
}
static void first_expand(void) {
  expect(mi_expand(NULL, 10) == NULL);
}
static void first_good_size(void) {
  expect(mi_good_size(100) >= 100);
}
static void first_collect(void) {
  mi_collect(true);
}
static void first_is_ours(void) {
  expect(!mi_is_in_heap_region(&first_block));
}
static void first_option(void) {
  expect(mi_option_get(mi_option_max_errors) == 32);
}
static void first_option_set(void) {
  mi_option_set(mi_option_purge_delay, 5);
}
static void first_stats(void) {
  mi_stats_print_out(&ignore_text, NULL);
}
static void first_info(void) {
  size_t rss = 0;
  mi_process_info(NULL, NULL, NULL, &rss, NULL, NULL, NULL, NULL);
}
static void first_output(void) {
  mi_register_output(&ignore_text, NULL);
}
static void first_error(void) {
  mi_register_error(&ignore_error, NULL);
}
static void first_deferred(void) {
  mi_register_deferred_free(&ignore_beat, NULL);
}
static void first_process_init(void) {
  mi_process_init();
}
static void first_process_done(void) {
  mi_process_done();
}
static void first_thread_init(void) {
  mi_thread_init();
}
static void first_thread_done(void) {
  mi_thread_done();
}
static void first_version(void) {
  expect(mi_version() > 0);
}
static void first_nothing(void) {}

typedef void            first_fun(void);
static first_fun* const firsts[] = {
    first_free_null,  first_free_foreign, first_usable_null,  first_usable,      first_malloc,      first_malloc_small,
    first_malloc_big, first_calloc,       first_realloc,      first_aligned,     first_memalign,    first_strdup,
    first_new,        first_too_large,    first_expand,       first_good_size,   first_collect,     first_is_ours,
    first_option,     first_option_set,   first_stats,        first_info,        first_output,      first_error,
    first_deferred,   first_process_init, first_process_done, first_thread_init, first_thread_done, first_version,
    first_nothing,
};

static size_t which = SIZE_MAX;

static void run_first(char** environment) {
  static const char name[] = "MI_TEST_FIRST=";
  if (which != SIZE_MAX || environment == NULL) return;
  for (char** e = environment; *e != NULL; e++) {
    if (strncmp(*e, name, sizeof(name) - 1) == 0) which = strtoul(*e + sizeof(name) - 1, NULL, 10);
  }
  if (which < COUNT_OF(firsts)) firsts[which]();
}

#if defined(__GLIBC__)
static void run_at_preinit(int argc, char** argv, char** environment) {
  (void)argc;
  (void)argv;
  run_first(environment);
}
__attribute__((section(".preinit_array"), used)) static void (*const at_preinit)(int, char**, char**) = &run_at_preinit;
#endif

extern char** environ;

// Each constructor leaves a block, and frees the one that an earlier constructor left.
enum { n_levels = 6 };
static uint8_t* left[n_levels];

static void at_level(size_t level) {
  run_first(environ);
  size_t size = 50 + level * 3000;
  mi_free(NULL);
  left[level] = (uint8_t*)mi_malloc(size);
  expect(left[level] != NULL && mi_usable_size(left[level]) >= size);
  pattern_fill(left[level], 0, size, level);
  left[level] = (uint8_t*)mi_realloc(left[level], 2 * size);
  expect(left[level] != NULL && pattern_check(left[level], size, level) == size);
  void* zeroed = mi_calloc(size, 3);
  expect(zeroed != NULL && is_zero(zeroed, 0, 3 * size));
  mi_free(zeroed);
}

#include "../constructors.h"

static int child_main(void) {
  for (size_t level = 0; level < n_levels; level++) {
    size_t size = 50 + level * 3000;
    expect(left[level] != NULL && pattern_check(left[level], size, level) == size);
    mi_free(left[level]);
  }
  expect(first_block == NULL || mi_usable_size(first_block) >= 1);
  mi_free(first_block);
  for (size_t size = 1; size < 50 * MiB; size *= 3) {
    void* p = mi_malloc(size);
    expect(p != NULL);
    mi_free(p);
  }
  return was_right ? 0 : 1;
}

int main(int argc, char** argv) {
  if (which != SIZE_MAX) return child_main();
  test_seed(argc, argv);
  watchdog(120);
  CHECK_EQ(child_main(), 0);
  for (size_t i = 0; i < COUNT_OF(firsts); i++) {
    char number[32];
    snprintf(number, sizeof(number), "%zu", i);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
      setenv("MI_TEST_FIRST", number, 1);
      execl("/proc/self/exe", argv[0], (char*)NULL);
      _exit(99);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    CHECK_FOR(WIFEXITED(status) && WEXITSTATUS(status) == 0, "first call %zu: status %x", i, (unsigned)status);
  }
  return check_result();
}
