// Proves: a block that is freed while the program has locked it (mlock) keeps nothing else from going back, and goes back itself; a program
// that locks all of its memory (mlockall) keeps it locked.
#include <mimalloc.h>

#include "../check.h"
#include "base/mode.h"
#include "support.h"

#if !defined(__linux__) || TEST_SANITIZED
int main(void) {
  test_skip("everything", "locked memory is looked at on Linux");
  return skip_code;
}
#else
  #include <sys/mman.h>
  #include <sys/resource.h>

enum { n_blocks = 100 * 1000, block_size = 500, n_locked = 40 };

static size_t locked_now(void) {
  return proc_bytes("/proc/self/status", "\nVmLck:");
}

// Some of the small blocks are locked, and a large one.  False if that was refused.
static bool allocate_and_free(bool locks) {
  static char* blocks[n_blocks];
  bool         has_locked = true;
  for (size_t i = 0; i < n_blocks; i++) {
    blocks[i] = (char*)mi_malloc(block_size);
    memset(blocks[i], 1, block_size);
    if (locks && i % (n_blocks / n_locked) == 0) has_locked = has_locked && mlock(blocks[i], block_size) == 0;
  }
  char* large = (char*)mi_malloc(MiB);
  memset(large, 1, MiB);
  if (locks) has_locked = has_locked && mlock(large, MiB) == 0;
  mi_free(large);
  for (size_t i = 0; i < n_blocks; i++) mi_free(blocks[i]);
  mi_collect(true);
  return has_locked;
}

// Kernels before 5.4 do not tell what is locked: there it stays.
static bool can_tell(void) {
  return madvise(NULL, 0, 20 /* MADV_COLD */) == 0;
}

static void check_locked(void) {
  size_t before = rss_now();
  if (!can_tell()) {
    test_skip("locked blocks", "this kernel does not know MADV_COLD");
    return;
  }
  if (!allocate_and_free(true)) {
    test_skip("locked blocks", "this user may not lock 2 MiB");
    return;
  }
  CHECK(rss_within("after blocks that were locked", minus(rss_now(), before), 2 * MiB));
  CHECK(locked_now() <= (MI_HARDENED ? MiB : 0)); // guarded blocks wait
}

// The program may count on the memory that it had when it locked all.
static void check_locked_all(int flags, const char* what) {
  struct rlimit limit;
  size_t        size = proc_bytes("/proc/self/status", "\nVmSize:");
  char*         large = (char*)mi_malloc(8 * MiB);
  getrlimit(RLIMIT_MEMLOCK, &limit);
  if ((geteuid() != 0 && limit.rlim_cur < 2 * size + 200 * MiB) || mlockall(flags) != 0) {
    test_skip(what, "this user may not lock all");
    mi_free(large);
    return;
  }
  memset(large, 1, 8 * MiB);
  char* later = (char*)mi_malloc(30 * MiB);
  memset(later, 1, 30 * MiB);
  size_t locked = locked_now();
  mi_free(large);
  allocate_and_free(false);
  printf("%s: %zu KiB locked, then %zu\n", what, locked / KiB, locked_now() / KiB);
  CHECK(locked_now() >= locked);
  munlockall();
  mi_free(later);
  size_t before = rss_now();
  mi_collect(true);
  printf("%s: %zu KiB, then %zu\n", what, before / KiB, rss_now() / KiB);
}

int main(void) {
  watchdog(60);
  check_locked();
  check_locked_all(MCL_CURRENT, "all that is mapped");
  check_locked_all(MCL_FUTURE, "all that will be");
  check_locked_all(MCL_CURRENT | MCL_FUTURE, "all");
  check_locked(); // again, after all was unlocked
  return check_result();
}
#endif
