// Proves: on a kernel that does not know what newer ones know (the advice to populate, moves that leave the old place mapped, mappings at
// an address that must be free) the library asks once for advice, and not with each page; what it has to copy in place of moving it is an
// ordinary block; and all else is as it should be.
//
// The program has functions by the names of those of the C library, which refuse what is new.
#include "../check.h"
#include "../modes/support.h"
#include "arena/chunk.h"
#include "large.h"
#include "mimalloc.h"
#include "page/page.h"

#if !defined(__linux__) || !defined(__LP64__) || TEST_SANITIZED
int main(void) {
  test_skip("everything", "the functions of the C library are not replaced here");
  return skip_code;
}
#else
  #include <stdarg.h>
  #include <sys/mman.h>
  #include <sys/syscall.h>

static size_t n_advised, n_moved; // calls that a new kernel would obey

int madvise(void* p, size_t size, int advice) {
  if (advice != 22 && advice != 23) return (int)syscall(SYS_madvise, p, size, advice);
  n_advised++;
  errno = EINVAL;
  return -1;
}

void* mmap(void* p, size_t size, int protection, int flags, int fd, off_t offset) {
  return (void*)syscall(SYS_mmap, p, size, protection, flags & ~0x100000, fd, offset); // MAP_FIXED_NOREPLACE
}

void* mremap(void* p, size_t size, size_t new_size, int flags, ...) {
  va_list args;
  va_start(args, flags);
  void* to = va_arg(args, void*);
  va_end(args);
  if ((flags & 4) == 0) return (void*)syscall(SYS_mremap, p, size, new_size, flags, to); // MREMAP_DONTUNMAP
  n_moved++;
  errno = EINVAL;
  return MAP_FAILED;
}

static void check_advice(void) {
  enum { n = 20000 };
  static void* blocks[n];
  for (size_t i = 0; i < n; i++) blocks[i] = memset(mi_malloc(1000), 1, 1000);
  for (size_t i = 0; i < n; i++) mi_free(blocks[i]);
  for (size_t i = 0; i < 10; i++) mi_free(memset(mi_malloc(20 * MiB), 1, 20 * MiB));
  CHECK_FOR(n_advised <= 4, "asked %zu times", n_advised);
}

static void check_copied(void) {
  const size_t size = 9 * MiB;
  mi_collect(true);
  uint8_t* p = (uint8_t*)mi_malloc(size);
  void*    barrier = mi_malloc(600 * KiB);
  pattern_fill(p, 0, size, 1);
  n_moved = 0;
  uint8_t* q = (uint8_t*)mi_realloc(p, size + 3 * MiB);
  CHECK(q != NULL && q != p && n_moved > 0 && pattern_check(q, size, 1) == size);
  CHECK(!_mi_page_has(_mi_page_of(q), MI_PAGE_REMAPPED));
  size_t before = _mi_chunk_purgeable(), n_slices = _mi_page_of(q)->n_slices;
  mi_free(q);
  CHECK_EQ(_mi_chunk_purgeable() - before, n_slices);
  mi_free(barrier);
}

// Past 32 MiB, and back.
static void check_resized(void) {
  uint8_t* p = (uint8_t*)mi_malloc(3 * MiB);
  pattern_fill(p, 0, 3 * MiB, 2);
  for (size_t size = 4 * MiB; size < 100 * MiB; size += size / 3) {
    p = (uint8_t*)mi_realloc(p, size);
    CHECK(p != NULL && pattern_check(p, 3 * MiB, 2) == 3 * MiB);
    p[size - 1] = 1;
  }
  p = (uint8_t*)mi_realloc(p, 2 * MiB);
  CHECK(pattern_check(p, 2 * MiB, 2) == 2 * MiB);
  mi_free(p);
}

int main(void) {
  watchdog(60);
  mi_option_set(mi_option_purge_delay, -1);
  mi_free(mi_malloc(1));
  check_advice();
  if (MI_HARDENED) test_skip("what is copied", "large blocks are guarded");
  else check_copied();
  check_resized();
  mi_collect(true);
  CHECK_EQ(bytes_in_use(), 0);
  CHECK(mi_heap_check(NULL));
  return check_result();
}
#endif
