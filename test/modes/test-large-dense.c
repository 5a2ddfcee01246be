// Proves: a large block is asked for with huge pages if one as large was written all over when it was freed (arena/dense.h); not
// if little of it was used, and not for more bytes at a time than were written so before.
//
// Calls of madvise are counted here, on their way to libc.
#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <mimalloc.h>
#include <sys/mman.h>

#include "../check.h"
#include "base/mode.h"
#include "support.h"

#if !defined(MADV_HUGEPAGE)
  #define MADV_HUGEPAGE 14
#endif
#if !defined(MADV_POPULATE_READ)
  #define MADV_POPULATE_READ 22
#endif

#define LARGE  (40 * MiB)
#define LARGER (2 * LARGE)

static size_t n_huge, page;

#if !TEST_TSAN && !TEST_ASAN // which have functions of their own by this name
int madvise(void* start, size_t size, int advice) {
  static int (*next)(void*, size_t, int);
  if (next == NULL) next = (int (*)(void*, size_t, int))dlsym(RTLD_NEXT, "madvise");
  n_huge += (advice == MADV_HUGEPAGE);
  return next(start, size, advice);
}
#endif

// A new block.  Does the library ask for huge pages?
static bool asks(size_t size, char** block) {
  n_huge = 0;
  *block = (char*)mi_malloc(size);
  CHECK(*block != NULL);
  return n_huge > 0;
}

// After one byte was written at each step.
static void free_written(char* p, size_t size, size_t step) {
  for (size_t i = 0; i < size; i += step) p[i] = 1;
  mi_free(p);
}

static void check_written_all_over(void) {
  char *a, *b, *c;
  CHECK(!asks(LARGE, &a));
  free_written(a, LARGE, page);
  CHECK(asks(LARGE, &a));
  CHECK(!asks(LARGE, &b)); // so much was not in use before
  free_written(a, LARGE, page);
  CHECK(!asks(LARGER, &a));
  CHECK(asks(LARGE, &c));
  free_written(b, LARGE, page);
  free_written(c, LARGE, page);
  CHECK(asks(LARGER, &b)); // now it was
  free_written(b, LARGER, page);
  mi_free(a);
}

static void check_sparse(void) {
  char* p;
  for (int way = 0; way < 5; way++) {
    CHECK(!asks(LARGER, &p));
    free_written(p, LARGER, page);
    CHECK(asks(LARGE, &p));
    if (way == 0) mi_free(p);
    else if (way == 1) free_written(p, LARGE, 2 * MiB); // an OS page of each huge page
    else if (way == 2) free_written(p, LARGE, 8 * page);
    else if (way == 3) free_written(p, LARGE / 4, page); // all over, but only the start
    else {
      memset(p, 1, 2 * MiB);
      free_written(p, LARGE, 2 * page);
    }
    CHECK_FOR(!asks(LARGE, &p), "way %d", way);
    mi_free(p);
  }
}

// As far as a buffer was filled.
static void check_prefix(void) {
  char* p;
  CHECK(!asks(LARGE, &p));
  free_written(p, LARGE * 5 / 8, page);
  CHECK(asks(LARGE, &p));
  mi_free(p);
}

// A block that grows is not counted twice.
static void check_growth(void) {
  char *p, *q;
  CHECK(!asks(LARGER, &p));
  free_written(p, LARGER, page);
  CHECK(asks(LARGE, &p));
  p = (char*)mi_realloc(p, LARGER);
  CHECK(!asks(LARGE, &q));
  mi_free(p);
  mi_free(q);
}

// Blocks are looked at seldom after many that were sparse, and are found again when that changes.
static void check_change(void) {
  char* p;
  bool  asked = false;
  for (int i = 0; i < 20; i++) {
    asks(LARGE, &p);
    mi_free(p);
  }
  for (int i = 0; i < 20 && !asked; i++) {
    asked = asks(LARGE, &p);
    free_written(p, LARGE, page);
  }
  CHECK(asked);
}

// Does the library look at blocks, and does it ask for huge pages here?
static bool can_look(void) {
  void* p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  bool  can = (madvise(p, page, MADV_POPULATE_READ) == 0);
  munmap(p, page);
  return can && page <= 4 * KiB;
}

int main(void) {
  page = (size_t)sysconf(_SC_PAGESIZE);
  if (TEST_SANITIZED || MI_TRACK || MI_HARDENED || MI_DEBUG > 0 || MI_PADDING) {
    test_skip("huge pages for large blocks", "the build touches them itself, or watches who does");
    return skip_code;
  }
  if (!can_look()) {
    test_skip("huge pages for large blocks", "the system cannot be asked, or its huge pages are larger than 2 MiB");
    return skip_code;
  }
  check_written_all_over();
  check_sparse();
  check_prefix();
  check_growth();
  check_change();
  return check_result();
}
