// Proves: where a huge page of the system is larger than a chunk (32 MiB with OS pages of 16 KiB, 512 MiB with 64 KiB) the library
// asks for none, whatever the options say, neither for pages of blocks nor for large blocks nor for arenas; elsewhere it does.
// Large OS pages from the system's reserve, which the program asks for, are asked for by their size: never the size that is
// usual on the system.
//
// All calls of madvise and mmap are counted here, on their way to libc.
#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <mimalloc.h>
#include <sys/mman.h>

#include "../check.h"
#include "../modes/support.h"
#include "arena/region.h"

#if !defined(MADV_COLLAPSE)
  #define MADV_COLLAPSE 25
#endif
#if !defined(MAP_HUGETLB)
  #define MAP_HUGETLB 0
#endif

static size_t n_huge, n_not_huge, n_large, n_sizeless; // calls that asked for, and against, huge pages; for large ones

#if !TEST_TSAN && !TEST_ASAN // which have functions of their own by these names
int madvise(void* start, size_t size, int advice) {
  static int (*next)(void*, size_t, int);
  if (next == NULL) next = (int (*)(void*, size_t, int))dlsym(RTLD_NEXT, "madvise");
  n_huge += (advice == MADV_HUGEPAGE || advice == MADV_COLLAPSE);
  n_not_huge += (advice == MADV_NOHUGEPAGE);
  return next(start, size, advice);
}

void* mmap(void* start, size_t size, int protection, int flags, int fd, off_t offset) {
  static void* (*next)(void*, size_t, int, int, int, off_t);
  if (next == NULL) next = (void* (*)(void*, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap");
  if ((flags & MAP_HUGETLB) != 0) {
    int log = (flags >> 26) & 63;
    n_large++;
    n_sizeless += (log != 21 && log != 30); // 2 MiB, 1 GiB
  }
  return next(start, size, protection, flags, fd, offset);
}
#endif

// Small blocks, most of which go and come again: huge-page chunks that get holes, and lose them.
static void use_small(void) {
  enum { n = 48 * 1024, step = 256 };
  static char* blocks[n];
  for (int round = 0; round < 2; round++) {
    for (size_t i = 0; i < n; i++) {
      if (blocks[i] == NULL) blocks[i] = (char*)mi_malloc(1000);
      if (blocks[i] != NULL) *blocks[i] = 1;
    }
    for (size_t i = 0; i < n; i++) {
      if (round == 0 && i % step == 0) continue;
      mi_free(blocks[i]);
      blocks[i] = NULL;
    }
    mi_collect(true);
  }
}

static void use_large(void) {
  for (size_t size = MiB; size <= 64 * MiB; size *= 4) {
    void* p = mi_malloc(size);
    p = mi_realloc(p, 2 * size);
    CHECK(p != NULL);
    mi_free(p);
  }
}

static void use_arena(bool allow_large) {
  mi_arena_id_t arena;
  CHECK_EQ(mi_reserve_os_memory_ex(64 * MiB, true, allow_large, true, &arena), 0);
  mi_heap_t* heap = mi_heap_new_in_arena(arena);
  for (size_t i = 0; i < 1000; i++) CHECK(mi_heap_malloc(heap, 1000) != NULL);
  mi_heap_destroy(heap);
}

// A block with its own mapping.
static void check_mapped(long allow_thp, long allow_large, bool has_small_enough) {
  size_t before = n_huge, before_not = n_not_huge;
  void*  p = mi_malloc_aligned(1, 64 * MiB);
  bool   is_wanted = has_small_enough && (allow_thp == 2 || (allow_thp == 1 && allow_large != 0));
  CHECK(p != NULL);
  CHECK_FOR((n_huge > before) == is_wanted && (n_not_huge > before_not) == (allow_thp != 1 && !is_wanted),
            "allow_thp %ld: asked for %zu times, and against %zu times", allow_thp, n_huge - before,
            n_not_huge - before_not);
  mi_free(p);
}

static void check_options(long allow_thp, long allow_large, bool has_small_enough) {
  mi_option_set(mi_option_allow_thp, allow_thp);
  mi_option_set(mi_option_allow_large_os_pages, allow_large);
  n_huge = n_large = n_sizeless = 0;
  check_mapped(allow_thp, allow_large, has_small_enough);
  use_small();
  use_large();
  use_arena(false);
  CHECK_EQ(n_large, 0);
  use_arena(true);
  printf("allow_thp %ld, allow_large_os_pages %ld: huge pages asked for %zu times, large ones %zu times\n", allow_thp,
         allow_large, n_huge, n_large);
  CHECK_FOR((n_huge > 0) == (has_small_enough && allow_thp != 0), "allow_thp %ld: %zu", allow_thp, n_huge);
  CHECK(n_large > 0 && n_sizeless == 0);
}

int main(void) {
  if (TEST_TSAN || TEST_ASAN) {
    test_skip("requests for huge pages", "they cannot be counted under sanitizers");
    return skip_code;
  }
  // The table that holds a huge page's place has an OS page, with entries of 8 bytes.
  size_t page = _mi_prim_os_page_size(), huge = page / 8 * page;
  printf("OS pages of %zu KiB, huge pages of %zu MiB\n", page / KiB, huge / MiB);
  for (long allow_large = 0; allow_large <= 1; allow_large++) {
    for (long allow_thp = 0; allow_thp <= 2; allow_thp++) check_options(allow_thp, allow_large, huge <= 2 * MiB);
  }
  CHECK(page > 4096 || n_not_huge > 0);
  return check_result();
}
