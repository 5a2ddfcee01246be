// Proves: memory that the system is to move to an address is there afterwards, or where it was, whichever call fails; the
// target can be used, or it is said to be lost and cannot be accessed.  A range of several mappings is refused as a whole.
#include <sys/mman.h>

#include "../check.h"
#include "../modes/support.h"
#include "prim/prim.h"

enum { size = 4 * MiB };

static char* map(size_t n) {
  char* p = (char*)mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(p != (char*)MAP_FAILED);
  return p;
}

// In the middle of other mappings of the process, so that a hole is one.
static void place(char** from, char** to) {
  *from = map(3 * size) + size;
  *to = map(3 * size) + size;
  pattern_fill(*from, 0, size, 1);
  memset(*to, 2, size);
}

static void unplace(char* from, char* to) {
  munmap(from - size, 3 * size);
  munmap(to - size, 3 * size);
}

static bool has_contents(const char* p) {
  return pattern_check(p, size, 1) == size;
}

static bool is_accessible(char* p) {
  int fds[2];
  if (pipe(fds) != 0) return false;
  bool ok = write(fds[1], p, 1) == 1; // EFAULT if it is not
  close(fds[0]);
  close(fds[1]);
  return ok;
}

// Returns how many calls were made.
static size_t check_failing(size_t n, bool repeat) {
  char *from, *to;
  bool  is_lost = true;
  place(&from, &to);
  _mi_prim_fail_nth(n, repeat);
  int    err = _mi_prim_remap(from, to, size, &is_lost);
  size_t n_calls = _mi_prim_fail_nth(0, false);
  CHECK_FOR(is_accessible(to) != is_lost, "call %zu", n);
  CHECK_FOR(has_contents(err == 0 ? to : from), "call %zu", n);
  if (err == 0) CHECK_FOR(!is_lost && is_zero(from, 0, size), "call %zu", n);
  else CHECK_FOR(is_lost || is_zero(to, 0, size) || to[0] == 2, "call %zu", n);
  printf("call %zu%s: %s%s\n", n, repeat ? " and later" : "", err == 0 ? "moved" : strerror(err),
         is_lost ? ", lost" : "");
  if (!is_lost) memset(to, 3, size);
  memset(from, 4, size);
  unplace(from, to);
  return n_calls;
}

static void check_several(void) {
  char *from, *to;
  bool  is_lost = true;
  place(&from, &to);
  size_t before = mapping_count();
  CHECK_EQ(mprotect(from + size / 2, size / 2, PROT_READ), 0);
  if (mapping_count() == before) test_skip("several mappings", "they cannot be told apart");
  else CHECK(_mi_prim_remap(from, to, size, &is_lost) != 0 && !is_lost);
  CHECK(has_contents(from) && to[0] == 2 && to[size - 1] == 2);
  unplace(from, to);
}

int main(void) {
  watchdog(60);
  size_t before = mapping_count();
  for (int repeat = 0; repeat <= 1; repeat++) {
    for (size_t n = 1; check_failing(n, repeat != 0) >= n;) n++;
  }
  check_several();
  // One could not be unmapped; sanitizers map memory of their own.
  if (!TEST_SANITIZED) CHECK(mapping_count() <= before + 2);
  return check_result();
}
