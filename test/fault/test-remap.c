// Proves: memory that the system is to move to an address is there afterwards, or where it was, whichever call fails; the
// target can be used, or it can be committed again.  A range of several mappings is refused as a whole.
#include <sys/mman.h>

#include "../check.h"
#include "../modes/support.h"
#include "prim/prim.h"

enum { size = 4 * MiB };

static const char* const names[] = {"moved", "refused", "reserved", "lost"};
static size_t            n_reserved;

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
  place(&from, &to);
  _mi_prim_fail_nth(n, repeat);
  mi_remap_t remap = _mi_prim_remap(from, to, size);
  size_t     n_calls = _mi_prim_fail_nth(0, false);
  CHECK_FOR(remap != MI_REMAP_LOST && is_accessible(to) == (remap != MI_REMAP_RESERVED), "call %zu", n);
  CHECK_FOR(has_contents(remap == MI_REMAP_DONE ? to : from), "call %zu", n);
  CHECK_FOR(remap != MI_REMAP_REFUSED || is_zero(to, 0, size) || to[0] == 2, "call %zu", n);
  printf("call %zu%s: %s\n", n, repeat ? " and later" : "", names[remap]);
  n_reserved += (remap == MI_REMAP_RESERVED);
  if (remap == MI_REMAP_RESERVED) CHECK_FOR(_mi_prim_commit(to, size) == 0 && is_zero(to, 0, size), "call %zu", n);
  memset(to, 3, size);
  memset(from, 4, size);
  unplace(from, to);
  return n_calls;
}

static void check_several(void) {
  char *from, *to;
  place(&from, &to);
  size_t before = mapping_count();
  CHECK_EQ(mprotect(from + size / 2, size / 2, PROT_READ), 0);
  if (mapping_count() == before) test_skip("several mappings", "they cannot be told apart");
  else CHECK(_mi_prim_remap(from, to, size) == MI_REMAP_REFUSED);
  CHECK(has_contents(from) && to[0] == 2 && to[size - 1] == 2);
  unplace(from, to);
}

int main(void) {
  watchdog(60);
  size_t before = mapping_count();
  for (int repeat = 0; repeat <= 1; repeat++) {
    for (size_t n = 1; check_failing(n, repeat != 0) >= n;) n++;
  }
  CHECK(n_reserved > 0);
  check_several();
  // One could not be unmapped; sanitizers map memory of their own.
  if (!TEST_SANITIZED) CHECK(mapping_count() <= before + 2);
  return check_result();
}
