// Proves: every entry refuses a size that cannot be, near each limit, with NULL and ENOMEM and at once; products that
// overflow are noticed; the block that was to be resized stays; afterwards all is as before.
#include "../check.h"
#include "../api/entries.h"
#include <sys/wait.h>

static const size_t limits[] = {SIZE_MAX,
                                (size_t)PTRDIFF_MAX,
                                (size_t)PTRDIFF_MAX + 1,
                                SIZE_MAX / 2 - 64 * 1024,
                                SIZE_MAX - 64 * 1024,
                                SIZE_MAX - 2 * 1024 * 1024,
                                SIZE_MAX / 4 * 3};

static void check_get(const get_t* g, size_t size, size_t alignment, size_t offset) {
  if ((g->flags & (E_SMALL | E_NEW)) != 0 || !get_allows(g, size, alignment, offset)) return;
  errno = 0;
  void* p = g->call(hidden(size), alignment, offset);
  CHECK_FOR(p == NULL, "%s(%zx, %zu, %zu)", g->name, size, alignment, offset);
  CHECK_FOR(errno == ((g->flags & E_CODE) != 0 ? 0 : ENOMEM), "%s(%zx, %zu, %zu): errno %d", g->name, size, alignment,
            offset, errno);
  mi_free(p);
}

static void check_gets(void) {
  for (size_t i = 0; i < COUNT_OF(all_gets); i++) {
    for (size_t k = 0; k < COUNT_OF(limits); k++) {
      for (size_t below = 0; below <= 1; below++) {
        for (size_t distance = 0; distance <= 4096; distance = 2 * distance + 1) {
          size_t size = below ? limits[k] - distance : limits[k] + distance;
          if (size < SIZE_MAX / 4) continue; // wrapped around
          for (size_t alignment = 8; alignment <= 64 * KiB; alignment *= 16) {
            check_get(&all_gets[i], size, alignment, 0);
            check_get(&all_gets[i], size, alignment, 24);
          }
        }
      }
    }
  }
}

// No address space has so much: from 2^48 on every size is absurd, though it is no overflow.
static void check_beyond_address_space(void) {
  if (sizeof(void*) < 8) return;
  for (size_t bits = 48; bits < 63; bits++) {
    for (size_t i = 0; i < COUNT_OF(all_gets); i++) check_get(&all_gets[i], ((size_t)1 << (bits & 63)) + i, 64, 0);
  }
}

typedef void* counted_fun(void* p, size_t count, size_t size);
static void*  counted_calloc(void* p, size_t count, size_t size) {
  (void)p;
  return mi_calloc(count, size);
}
static void* counted_mallocn(void* p, size_t count, size_t size) {
  (void)p;
  return mi_mallocn(count, size);
}
static void* counted_ucalloc(void* p, size_t count, size_t size) {
  (void)p;
  return mi_ucalloc(count, size, NULL);
}
static void* counted_calloc_aligned(void* p, size_t count, size_t size) {
  (void)p;
  return mi_calloc_aligned(count, size, 64);
}
static void* counted_calloc_aligned_at(void* p, size_t count, size_t size) {
  (void)p;
  return mi_calloc_aligned_at(count, size, 64, 8);
}
static void* counted_reallocn(void* p, size_t count, size_t size) {
  return mi_reallocn(p, count, size);
}
static void* counted_recalloc(void* p, size_t count, size_t size) {
  return mi_recalloc(p, count, size);
}
static void* counted_recalloc_aligned(void* p, size_t count, size_t size) {
  return mi_recalloc_aligned(p, count, size, 64);
}
static void* counted_recalloc_aligned_at(void* p, size_t count, size_t size) {
  return mi_recalloc_aligned_at(p, count, size, 64, 8);
}
static void* counted_aligned_recalloc(void* p, size_t count, size_t size) {
  return mi_aligned_recalloc(p, count, size, 64);
}
static void* counted_offset_recalloc(void* p, size_t count, size_t size) {
  return mi_aligned_offset_recalloc(p, count, size, 64, 8);
}
static void* counted_reallocarray(void* p, size_t count, size_t size) {
  return mi_reallocarray(p, count, size);
}
static void* counted_reallocarr(void* p, size_t count, size_t size) {
  return mi_reallocarr(&p, count, size) == 0 ? p : NULL;
}

static const struct {
  const char*  name;
  counted_fun* call;
} counted[] = {
    {"calloc", counted_calloc},
    {"mallocn", counted_mallocn},
    {"ucalloc", counted_ucalloc},
    {"calloc_aligned", counted_calloc_aligned},
    {"calloc_aligned_at", counted_calloc_aligned_at},
    {"reallocn", counted_reallocn},
    {"recalloc", counted_recalloc},
    {"recalloc_aligned", counted_recalloc_aligned},
    {"recalloc_aligned_at", counted_recalloc_aligned_at},
    {"aligned_recalloc", counted_aligned_recalloc},
    {"aligned_offset_recalloc", counted_offset_recalloc},
    {"reallocarray", counted_reallocarray},
    {"reallocarr", counted_reallocarr},
};

static void check_products(void) {
  static const size_t half = (size_t)1 << (sizeof(size_t) * 4); // its square is 2^64 or 2^32
  const struct {
    size_t count, size;
  } pairs[] = {
      {half, half},          {half + 1, half},      {half, half + 1},        {half + 1, half - 1},
      {half + 2, half + 3},  {SIZE_MAX, 2},         {2, SIZE_MAX},           {SIZE_MAX / 2 + 1, 2},
      {2, SIZE_MAX / 2 + 1}, {SIZE_MAX / 8 + 1, 8}, {16, SIZE_MAX / 16 + 1}, {SIZE_MAX, SIZE_MAX},
      {SIZE_MAX / 3 + 1, 3}, {SIZE_MAX / 2, 1},     {SIZE_MAX, 1},           {1, SIZE_MAX},
      {SIZE_MAX / 16, 16},   {half, half / 2 + 1},
  };
  for (size_t i = 0; i < COUNT_OF(counted); i++) {
    for (size_t k = 0; k < COUNT_OF(pairs); k++) {
      uint8_t* p = (uint8_t*)mi_zalloc_aligned_at(200, 64, 8);
      pattern_fill(p, 0, 200, k);
      errno = 0;
      void* q = counted[i].call(p, hidden(pairs[k].count), hidden(pairs[k].size));
      CHECK_FOR(q == NULL, "%s(%zx, %zx)", counted[i].name, pairs[k].count, pairs[k].size);
      bool is_bsd = counted[i].call == counted_reallocarr || counted[i].call == counted_reallocarray;
      CHECK_FOR(errno == ENOMEM || (is_bsd && errno == EOVERFLOW), "%s(%zx, %zx): errno %d", counted[i].name,
                pairs[k].count, pairs[k].size, errno);
      CHECK_FOR(pattern_check(p, 200, k) == 200, "%s(%zx, %zx)", counted[i].name, pairs[k].count, pairs[k].size);
      mi_free(p);
    }
  }
}

static void check_resizes(void) {
  for (size_t i = 0; i < COUNT_OF(all_resizes); i++) {
    const resize_t* r = &all_resizes[i];
    if ((r->flags & E_NEW) != 0) continue;
    for (size_t old_size = 0; old_size <= 3 * MiB; old_size = old_size * 50 + 30) {
      uint8_t* p = (uint8_t*)mi_zalloc_aligned(old_size, 64);
      pattern_fill(p, 0, old_size, i);
      for (size_t k = 0; k < COUNT_OF(limits); k++) {
        errno = 0;
        void* q = r->call(p, hidden(limits[k]), 64, 0);
        CHECK_FOR(q == NULL && errno == ENOMEM, "%s(%zu to %zx): errno %d", r->name, old_size, limits[k], errno);
      }
      CHECK_FOR(pattern_check(p, old_size, i) == old_size, "%s of %zu", r->name, old_size);
      mi_free(p);
    }
  }
}

// Offsets and alignments take part in sums: they must not wrap either.
static void check_sums(void) {
  static const size_t sizes[] = {100, 100000, 10000000};
  for (size_t i = 0; i < COUNT_OF(sizes); i++) {
    for (size_t distance = 0; distance <= 100; distance++) {
      for (size_t alignment = 16; alignment <= 4 * KiB; alignment *= 16) {
        size_t   offset = SIZE_MAX - distance;
        uint8_t* p = (uint8_t*)mi_malloc_aligned_at(sizes[i], alignment, hidden(offset));
        CHECK_FOR(p == NULL || (((uintptr_t)p + offset) & (alignment - 1)) == 0, "offset %zx", offset);
        if (p != NULL) memset(p, 0xAB, sizes[i]);
        mi_free(p);
      }
    }
  }
}

// What has no way to say no must end the process, not hand out something.
static void check_aborts(void) {
  for (size_t i = 0; i < COUNT_OF(all_gets); i++) {
    const get_t* g = &all_gets[i];
    if ((g->flags & E_NEW) == 0) continue;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
      int fd = open("/dev/null", O_WRONLY);
      if (fd >= 0) dup2(fd, 2);
      void* p = g->call(hidden(SIZE_MAX - 100), 64, 0);
      _exit(p == NULL ? 1 : 2);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    CHECK_FOR(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "%s: status %x", g->name, (unsigned)status);
  }
}

int main(int argc, char** argv) {
  test_seed(argc, argv);
  watchdog(60);
  size_t before = rss_now();
  double start = cpu_seconds();
  check_gets();
  check_beyond_address_space();
  check_products();
  check_resizes();
  check_sums();
  double seconds = cpu_seconds() - start;
  printf("%.2f s\n", seconds);
  CHECK(seconds < (TEST_SANITIZED ? 60 : 10));
  CHECK(rss_within("resident at the end", minus(rss_now(), before), 24 * MiB));
  if (!TEST_SANITIZED) check_aborts();
  for (size_t size = 1; size < 64 * MiB; size *= 2) {
    void* p = mi_malloc(size);
    CHECK(p != NULL);
    mi_free(p);
  }
  return check_result();
}
