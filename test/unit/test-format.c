// Proves: the formatter agrees with printf on everything that it knows, never writes outside its buffer, always
// terminates, and stops being clever at a conversion that it does not know.
#include "../check.h"
#include "../modes/support.h"
#include "support/format.h"

#include <limits.h>

static uint64_t seed;

// Both ways must give the same text, also in every shorter buffer.
#define CHECK_SAME(...) \
  do { \
    char   want[256], got[256]; \
    size_t length = (size_t)snprintf(want, sizeof(want), __VA_ARGS__); \
    CHECK_EQ(_mi_format(got, sizeof(got), __VA_ARGS__), length); \
    CHECK_FOR(strcmp(want, got) == 0, "want '%s' got '%s'", want, got); \
    for (size_t size = 0; size <= length + 1; size++) { \
      memset(got, '#', sizeof(got)); \
      size_t n = _mi_format(got, size, __VA_ARGS__); \
      CHECK_EQ(n, size == 0 ? 0 : (size - 1 < length ? size - 1 : length)); \
      CHECK(memcmp(got, want, n) == 0 && got[size] == '#' && (size == 0 || got[n] == 0)); \
    } \
  } while (0)

static void check_numbers_of(long long x) {
  CHECK_SAME("%d|%i|%u|%x", (int)x, (int)x, (unsigned)x, (unsigned)x);
  CHECK_SAME("%ld|%lu|%lx", (long)x, (unsigned long)x, (unsigned long)x);
  CHECK_SAME("%lld|%llu|%llx", x, (unsigned long long)x, (unsigned long long)x);
  CHECK_SAME("%zd|%zu|%zx", (ssize_t)x, (size_t)x, (size_t)x);
  CHECK_SAME("%5d|%-5d|%05d|%20d|%-20d|%020d", (int)x, (int)x, (int)x, (int)x, (int)x, (int)x);
  CHECK_SAME("%12lld|%-12lld|%012lld|%12llx|%012llx", x, x, x, (unsigned long long)x, (unsigned long long)x);
}

static void check_numbers(void) {
  static const long long edges[] = {0, 1, -1, 9, 10, -10, 99999, INT_MAX, INT_MIN, UINT_MAX, LLONG_MAX, LLONG_MIN};
  for (size_t i = 0; i < COUNT_OF(edges); i++) check_numbers_of(edges[i]);
  uint64_t x = seed;
  for (int i = 0; i < 300; i++) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    check_numbers_of((long long)(x >> (x >> 58)));
  }
}

static void check_text(void) {
  CHECK_SAME("%s", "plain");
  CHECK_SAME("plain");
  CHECK_SAME("%s", "");
  CHECK_SAME("[%8s][%-8s][%2s]", "abc", "abc", "abcdef");
  CHECK_SAME("%c%c%3c%-3c|", 'a', 'b', 'c', 'd');
  CHECK_SAME("100%% of %s: %d", "all", 7);
}

static void check_our_own(void) {
  char text[64];
  _mi_format(text, sizeof(text), "%p", (void*)(uintptr_t)0xABC012);
  CHECK(strcmp(text, "0xABC012") == 0);
  _mi_format(text, sizeof(text), "%12p|%-10p|", (void*)(uintptr_t)0xF0, (void*)NULL);
  CHECK_FOR(strcmp(text, "        0xF0|0x0       |") == 0, "%s", text);
  const char* fmt = "<%s>"; // not a literal: the compiler would object
  _mi_format(text, sizeof(text), fmt, hidden_pointer(NULL));
  CHECK(strcmp(text, "<(null)>") == 0);
  fmt = "[%-05d][%0-5d]"; // blanks: zeros behind a number would change it
  _mi_format(text, sizeof(text), fmt, 42, 43);
  CHECK_FOR(strcmp(text, "[42   ][43   ]") == 0, "%s", text);
}

// From the first unknown conversion on the format is copied, and no argument is touched.
static void check_unknown(void) {
  static const char* const formats[] = {"%", "%5", "%l", "%q", "%ll", "%f %s", "a %-05y %d %s"};
  char                     text[64];
  for (size_t i = 0; i < COUNT_OF(formats); i++) {
    const char* fmt = formats[i];
    CHECK_EQ(_mi_format(text, sizeof(text), fmt, 1), strlen(fmt));
    CHECK_FOR(strcmp(text, fmt) == 0, "%s", text);
  }
  const char* fmt = "%d %f %d";
  _mi_format(text, sizeof(text), fmt, 5, 6);
  CHECK_FOR(strcmp(text, "5 %f %d") == 0, "%s", text);
}

int main(int argc, char** argv) {
  seed = test_seed(argc, argv);
  check_numbers();
  check_text();
  check_our_own();
  check_unknown();
  return check_result();
}
