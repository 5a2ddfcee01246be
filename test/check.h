// Checks for tests.  A check that fails is reported with its place and counted, and the test goes on: one run shows all
// that is wrong.  The last line of main is `return check_result();`.
//
//   CHECK(condition)
//   CHECK_EQ(a, b)                integers; both values are shown
//   CHECK_FOR(condition, fmt...)  says for which case, in the words of printf
//
// Any thread may check.  Nothing here allocates or changes errno.  A test that uses chance prints its seed
// (modes/support.h).
#pragma once

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CHECK_SHOWN_MAX 50 // failures that are shown; a loop that goes wrong would bury the first of them

static long check_n_done, check_n_failed; // atomically

static inline void check_write(const char* text) {
  size_t length = strlen(text);
  if (write(2, text, length) < 0) return;
}

#if defined(__clang__)
__attribute__((format(printf, 4, 5)))
#elif defined(__GNUC__)
__attribute__((format(gnu_printf, 4, 5)))
#endif
static inline void
check_failed(const char* file, int line, const char* what, const char* fmt, ...) {
  char    which[512], text[1024];
  int     saved = errno;
  long    n = __atomic_add_fetch(&check_n_failed, 1, __ATOMIC_RELAXED);
  va_list args;
  va_start(args, fmt);
  vsnprintf(which, sizeof(which), fmt, args);
  va_end(args);
  snprintf(text, sizeof(text), "%.100s:%d: failed: %.350s%s%s%s\n", file, line, what, which[0] != 0 ? " (" : "", which,
           which[0] != 0 ? ")" : "");
  if (n <= CHECK_SHOWN_MAX) check_write(text);
  if (n == CHECK_SHOWN_MAX) check_write("further failures are not shown\n");
  errno = saved;
}

static inline bool check_count(bool is_true) {
  __atomic_add_fetch(&check_n_done, 1, __ATOMIC_RELAXED);
  return is_true;
}

#define CHECK(condition) \
  do { \
    if (!check_count(condition)) check_failed(__FILE__, __LINE__, #condition, "%s", ""); \
  } while (0)

#if !defined(CHECK_FOR)
  #define CHECK_FOR(condition, ...) \
    do { \
      if (!check_count(condition)) check_failed(__FILE__, __LINE__, #condition, __VA_ARGS__); \
    } while (0)
#endif

#define CHECK_EQ(a, b) \
  do { \
    long long check_a = (long long)(a), check_b = (long long)(b); \
    if (!check_count(check_a == check_b)) { \
      check_failed(__FILE__, __LINE__, #a " == " #b, "%lld, not %lld", check_a, check_b); \
    } \
  } while (0)

// What main returns: 0 if every check held, and there was one.
static inline int check_result(void) {
  long done = __atomic_load_n(&check_n_done, __ATOMIC_RELAXED);
  long failed = __atomic_load_n(&check_n_failed, __ATOMIC_RELAXED);
  char text[128];
  snprintf(text, sizeof(text), "%ld checks, %ld failed\n", done, failed);
  check_write(text);
  return done > 0 && failed == 0 ? 0 : 1;
}
