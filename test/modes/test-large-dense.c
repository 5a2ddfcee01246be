// Proves: a large block is asked for with huge pages if one as large was written all over when it was freed (arena/dense.h); not
// if little of it was used, and not for more bytes at a time than were written so before.  So are smaller ones that lie in chunks:
// a program that replaces them has few page faults, and one that uses little of them has little resident; nor has one that has pages
// between them.
//
// Calls of madvise that look at blocks are counted here, on their way to libc.
#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <inttypes.h>
#include <mimalloc.h>
#include <sys/mman.h>

#include "../check.h"
#include "base/mode.h"
#include "huge.h"
#include "populate.h"
#include "support.h"

#if !defined(MADV_HUGEPAGE)
  #define MADV_HUGEPAGE 14
#endif

#define LARGE  (40 * MiB)
#define LARGER (2 * LARGE)

static size_t n_looks, n_looks_outside, page;
static char*  looked_at; // where looks may go: LARGE / 4 from there

#if !TEST_TSAN && !TEST_ASAN // which have functions of their own by this name
int madvise(void* start, size_t size, int advice) {
  static int (*next)(void*, size_t, int);
  if (next == NULL) next = (int (*)(void*, size_t, int))dlsym(RTLD_NEXT, "madvise");
  n_looks += (advice == MADV_POPULATE_READ);
  if (advice == MADV_POPULATE_READ && looked_at != NULL && (size_t)((char*)start - looked_at) >= LARGE / 4)
    n_looks_outside++;
  return next(start, size, advice);
}
#endif

// Does the system know that huge pages are asked for here?
static bool is_asked_for(const char* p) {
  char  line[512];
  bool  is_here = false, is_huge = false;
  FILE* file = fopen("/proc/self/smaps", "r");
  CHECK(file != NULL);
  while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
    uintptr_t start, end;
    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &start, &end) == 2) is_here = (uintptr_t)p - start < end - start;
    else if (is_here && strncmp(line, "VmFlags:", 8) == 0) is_huge = (strstr(line, " hg") != NULL);
  }
  if (file != NULL) fclose(file);
  return is_huge;
}

static bool system_can_be_asked(void) {
  char* p = (char*)mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  bool  can = (p != MAP_FAILED && madvise(p, LARGE, MADV_HUGEPAGE) == 0 && is_asked_for(p));
  if (p != MAP_FAILED) munmap(p, LARGE);
  return can;
}

// A new block.  Does the library ask for huge pages?  Not for memory that is there already, so there is none.
static bool asks(size_t size, char** block) {
  mi_collect(true);
  *block = (char*)mi_malloc(size);
  CHECK(*block != NULL);
  return is_asked_for(*block + size / 2);
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

// What lies behind a block that has become smaller, or that was small and aligned, is not looked at.
static void check_small(void) {
  for (size_t size = LARGE / 4; size >= 64 * KiB; size /= 4) {
    char* p = (char*)mi_malloc(LARGE);
    CHECK(p != NULL);
    p = (char*)mi_realloc(p, size);
    CHECK(p != NULL);
    n_looks = n_looks_outside = 0;
    looked_at = p;
    free_written(p, size, page);
    looked_at = NULL;
    CHECK_EQ(n_looks_outside, 0);
    CHECK((n_looks > 0) == (size == LARGE / 4));
  }
  char* p = (char*)mi_malloc_aligned(100, 64 * MiB);
  CHECK(p != NULL);
  n_looks = 0;
  free_written(p, 100, page);
  CHECK_EQ(n_looks, 0);
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

// ---- blocks in chunks ------------------------------------------------------------------------------------------------

enum { n_buffers = 4, n_sparse = 20 };

static size_t buffer_size(rng_t* r) {
  return 4 * MiB + rng_below(r, 8 * MiB);
}

// Memory that a program needs again at once is held for it if it is busy (arena/hold.h, HD4): beside many others it is not.
// `seconds` and `busy` were the time, and the processor's, when the faults began to be counted.
static void check_ratio(const char* what, size_t ratio, double seconds, double busy) {
  bool is_busy = (cpu_seconds() - busy >= 0.6 * (now_seconds() - seconds));
  printf("%s: %zu OS pages for each page fault\n", what, ratio);
  if (ratio < 20 && !is_busy) test_skip(what, "the machine is too busy for that");
  else CHECK_FOR(ratio >= 20, "%s: %zu", what, ratio);
}

// OS pages that were written for each page fault.
static size_t replace_buffers(char** buffers, rng_t* r, int n) {
  long   before = minor_faults();
  size_t n_pages = 0;
  for (int i = 0; i < n; i++) {
    size_t size = buffer_size(r);
    mi_free(buffers[i % n_buffers]);
    buffers[i % n_buffers] = (char*)mi_malloc(size);
    CHECK(buffers[i % n_buffers] != NULL);
    memset(buffers[i % n_buffers], i, size);
    n_pages += size / page;
  }
  return n_pages / (size_t)(minor_faults() - before + 1);
}

static void check_replaced(void) {
  char* buffers[n_buffers] = {NULL};
  rng_t r = rng_make(7);
  mi_collect(true);
  size_t before = rss_now();
  replace_buffers(buffers, &r, 100);
  double seconds = now_seconds(), busy = cpu_seconds();
  size_t ratio = replace_buffers(buffers, &r, 300);
  check_ratio("buffers of 4 to 12 MiB that are replaced", ratio, seconds, busy);
  CHECK(rss_within("with 4 of them", minus(rss_now(), before), n_buffers * 12 * MiB + 40 * MiB));
  for (int i = 0; i < n_buffers; i++) mi_free(buffers[i]);
  mi_collect(true);
}

// One is filled, and one to a quarter, by turns: each takes what is there, wherever it lies.
static void check_by_turns(void) {
  long   before = 0;
  size_t n_pages = 0;
  double seconds = 0, busy = 0;
  for (size_t i = 0; i < 200; i++) {
    size_t size = (5 + i % 7) * MiB;
    char * full = (char*)mi_malloc(size), *quarter = (char*)mi_malloc(size);
    CHECK(full != NULL && quarter != NULL);
    if (i == 50) before = minor_faults(), n_pages = 0, seconds = now_seconds(), busy = cpu_seconds();
    memset(full, 1, size);
    memset(quarter, 1, size / 4);
    n_pages += size / page;
    mi_free(full);
    mi_free(quarter);
  }
  size_t ratio = n_pages / (size_t)(minor_faults() - before + 1);
  check_ratio("filled ones and others by turns", ratio, seconds, busy);
  mi_collect(true);
}

// Blocks that grow step by step, from less than what is looked at on, and are freed: of the sparse ones after them no more may ask
// than one of them had.
static void grow_and_free(size_t most) {
  char* p = NULL;
  for (size_t size = MiB; size <= most; size += size / 2) {
    p = (char*)mi_realloc(p, size);
    CHECK(p != NULL);
    memset(p, 1, size);
  }
  mi_free(p);
}

static void check_grown(void) {
  static char* blocks[n_sparse];
  for (int i = 0; i < 40; i++) grow_and_free(24 * MiB);
  mi_collect(true);
  size_t before = rss_now();
  for (int i = 0; i < n_sparse; i++) {
    blocks[i] = (char*)mi_malloc(16 * MiB);
    CHECK(blocks[i] != NULL);
    for (size_t at = 0; at < 16 * MiB; at += MiB) blocks[i][at] = 1;
  }
  CHECK(rss_within("sparse ones after 40 that grew", minus(rss_now(), before), 64 * MiB));
  for (int i = 0; i < n_sparse; i++) mi_free(blocks[i]);
  mi_collect(true);
}

// Little of each is written: not even the first ones take more than was in use before.
static void check_sparse_buffers(void) {
  static char* blocks[n_sparse];
  size_t       before = rss_now();
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < n_sparse; i++) {
      blocks[i] = (char*)mi_malloc(12 * MiB);
      CHECK(blocks[i] != NULL);
      for (size_t at = 0; at < 12 * MiB; at += MiB) blocks[i][at] = 1;
    }
    if (round == 0) CHECK(rss_within("sparse ones after them", minus(rss_now(), before), 120 * MiB));
    else CHECK(rss_within("more sparse ones", minus(rss_now(), before), 8 * MiB));
    for (int i = 0; i < n_sparse; i++) mi_free(blocks[i]);
    mi_collect(true);
  }
}

// Blocks of a little more than a huge page, and small ones between them: what a block leaves of its last huge page serves the next.
static void check_among_pages(void) {
  enum { n_blocks = 40, n_small = 2000, small = 1024 };
  static char* blocks[n_blocks][1 + n_small];
  size_t       before = rss_now(), large = 2 * MiB + 100 * KiB;
  for (int i = 0; i < n_blocks; i++) {
    for (int k = 0; k <= n_small; k++) {
      size_t size = (k == 0 ? large : small);
      blocks[i][k] = (char*)mi_malloc(size);
      CHECK(blocks[i][k] != NULL);
      memset(blocks[i][k], 1, size);
    }
  }
  size_t all = n_blocks * (large + n_small * small);
  CHECK(rss_within("blocks among pages", minus(rss_now(), before), all + 32 * MiB));
  for (int i = 0; i < n_blocks; i++) {
    for (int k = 0; k <= n_small; k++) mi_free(blocks[i][k]);
  }
  mi_collect(true);
}

int main(void) {
  page = (size_t)sysconf(_SC_PAGESIZE);
  if (TEST_SANITIZED || MI_TRACK || MI_HARDENED || MI_DEBUG > 0 || MI_PADDING) {
    test_skip("huge pages for large blocks", "the build touches them itself, or watches who does");
    return skip_code;
  }
  if (!can_populate_read() || page > 4 * KiB || !system_can_be_asked()) {
    test_skip("huge pages for large blocks", "the system cannot be asked, or its huge pages are larger than 2 MiB");
    return skip_code;
  }
  check_written_all_over();
  check_sparse();
  check_prefix();
  check_growth();
  check_small();
  check_change();
  if (system_gives_huge_pages() && rss_is_meaningful()) {
    check_replaced();
    check_by_turns();
    check_sparse_buffers();
    check_grown();
    check_among_pages();
  }
  else test_skip("huge pages for blocks in chunks", "the system has none to give");
  return check_result();
}
