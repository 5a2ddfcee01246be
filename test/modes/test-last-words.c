// Proves: what the library prints at the end of a process does not end it, whatever the limit on the size of files, and is printed wherever
// it may be; in the child of a fork the time is the child's.
#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE
#endif
#include "../check.h"
#include <fcntl.h>
#include <mimalloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include "support.h"

enum { n_before = 1000, text_max = 64 * KiB };

static char path[] = "/tmp/mi-last-words-XXXXXX";
static char text[text_max];

static void start_inside(const char* what) {
  const char* const arguments[] = {"test-last-words", what, NULL};
  const char* const environment[] = {"MIMALLOC_SHOW_STATS=1", "MIMALLOC_PAGE_MAX=nonsense", "MIMALLOC_SHOW_ERRORS=1",
                                     NULL};
  test_exec((char* const*)(uintptr_t)arguments, (char* const*)(uintptr_t)environment);
  _exit(1);
}

// ---- limits -----------------------------------------------------------------------------------------------------------

// With an output that goes on at the end of what there is already, or a pipe.
static size_t run_limited(rlim_t most, int output, int input) {
  struct rlimit limit = {most, most};
  int           status = -1;
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    dup2(output, 2);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(1);
    start_inside("ends");
  }
  close(output);
  size_t n = 0;
  for (ssize_t m; (m = read(input, text + n, sizeof(text) - 1 - n)) > 0;) n += (size_t)m;
  text[n] = 0;
  close(input);
  CHECK_FOR(waitpid(child, &status, 0) == child && status == 0, "%zu bytes at most: status %x", (size_t)most, status);
  return n;
}

static size_t run_with_file(rlim_t most, int flags) {
  static char before[n_before];
  int         fd = open(path, O_WRONLY | O_TRUNC);
  CHECK(fd >= 0 && write(fd, before, sizeof(before)) == n_before);
  close(fd);
  return run_limited(most, open(path, O_WRONLY | flags), open("/dev/null", O_RDONLY)) + read_file(path, text, text_max);
}

static void check_limits(void) {
  int ends[2];
  if (TEST_TSAN) {
    test_skip("limits", "the thread sanitizer writes a file of its own when a process begins");
    return;
  }
  CHECK(run_with_file(RLIM_INFINITY, O_APPEND) > n_before + 500);
  CHECK(memmem(text, text_max, "elapsed:", 8) != NULL);
  CHECK_EQ(run_with_file(0, O_APPEND), n_before);
  CHECK_EQ(run_with_file(n_before, O_APPEND), n_before);
  CHECK(run_with_file(n_before + 300, O_APPEND) <= n_before + 300);
  CHECK_EQ(run_with_file(0, 0), n_before);
  CHECK(run_with_file(n_before, 0) == n_before && text[0] != 0);
  CHECK(pipe(ends) == 0 && run_limited(0, ends[1], ends[0]) > 500);
  CHECK(strstr(text, "elapsed:") != NULL);
}

// ---- the child of a fork ----------------------------------------------------------------------------------------------

static long long now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static long long printed_ms(const char* at) {
  long long seconds = -1, ms = 0;
  at = (at == NULL ? NULL : strstr(at, "elapsed:"));
  return at != NULL && sscanf(at, "elapsed: %lld.%lld", &seconds, &ms) == 2 ? 1000 * seconds + ms : -1;
}

// The process is older than its child by so much.
static int run_fork(void) {
  int       ends[2], status = -1;
  long long start = now_ms();
  while (now_ms() - start < 200) sleep_ms(10);
  CHECK_EQ(pipe(ends), 0);
  long long before = now_ms();
  pid_t     child = fork();
  if (child == 0) {
    dup2(ends[1], 2);
    exit(0);
  }
  close(ends[1]);
  size_t n = 0;
  for (ssize_t m; (m = read(ends[0], text + n, sizeof(text) - 1 - n)) > 0;) n += (size_t)m;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  long long elapsed = printed_ms(text);
  CHECK_FOR(elapsed >= 0 && elapsed <= now_ms() - before + 2, "%lld ms", elapsed);
  return check_result();
}

static void check_fork(void) {
  int status = -1;
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) start_inside("forks");
  CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(int argc, char** argv) {
  watchdog(60);
  mi_free(mi_malloc(100));
  if (argc > 1 && strcmp(argv[1], "forks") == 0) return run_fork();
  if (argc > 1 && strcmp(argv[1], "ends") == 0) return 0;
  int fd = mkstemp(path);
  if (fd < 0 || !test_can_exec()) return skip_code;
  close(fd);
  check_limits();
  check_fork();
  unlink(path);
  return check_result();
}
