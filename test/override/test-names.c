// Proves: a program that links the library has the names of the C library from it, and each does what its manual says.
#define _GNU_SOURCE
#include "../check.h"
#include "../api/entries.h"
#include <malloc.h>

void   free_sized(void* p, size_t size);
void   free_aligned_sized(void* p, size_t alignment, size_t size);
void   cfree(void* p);
void*  pvalloc(size_t size);
void   vfree(void* p);
void*  reallocf(void* p, size_t newsize);
int    reallocarr(void* ptrp, size_t count, size_t size);
size_t malloc_size(const void* p);
size_t malloc_good_size(size_t size);
void*  _aligned_malloc(size_t size, size_t alignment);
int    __posix_memalign(void** p, size_t alignment, size_t size);
void*  __libc_malloc(size_t size);
void*  __libc_calloc(size_t count, size_t size);
void*  __libc_realloc(void* p, size_t newsize);
void   __libc_free(void* p);
void   __libc_cfree(void* p);
void*  __libc_memalign(size_t alignment, size_t size);
void*  __libc_valloc(size_t size);
void*  __libc_pvalloc(size_t size);

// ---- getting --------------------------------------------------------------------------------------------------------

typedef struct name_s {
  const char* name;
  void* (*call)(size_t size);
  size_t alignment;
  bool   is_zeroed;
} name_t;

#define NAME(name, expression) \
  static void* get_by_##name(size_t size) { \
    return expression; \
  }

static void* posix_result(int code, void* p) {
  return code == 0 ? p : NULL;
}

static void* get_by_posix_memalign(size_t size) {
  void* p = NULL;
  int   code = posix_memalign(&p, 512, size);
  return posix_result(code, p);
}

static void* get_by___posix_memalign(size_t size) {
  void* p = NULL;
  int   code = __posix_memalign(&p, 512, size);
  return posix_result(code, p);
}

static void* get_by_reallocarr(size_t size) {
  void* p = NULL;
  int   code = reallocarr(&p, 1, size + (size == 0)); // a size of 0 is an error here
  return posix_result(code, p);
}

NAME(malloc, malloc(size))
NAME(calloc, calloc(1, size))
NAME(realloc, realloc(NULL, size))
NAME(aligned_alloc, aligned_alloc(512, size))
NAME(memalign, memalign(512, size))
NAME(valloc, valloc(size))
NAME(pvalloc, pvalloc(size))
NAME(reallocf, reallocf(NULL, size))
NAME(reallocarray, reallocarray(NULL, 1, size))
NAME(_aligned_malloc, _aligned_malloc(size, 512))
NAME(__libc_malloc, __libc_malloc(size))
NAME(__libc_calloc, __libc_calloc(size, 1))
NAME(__libc_realloc, __libc_realloc(NULL, size))
NAME(__libc_memalign, __libc_memalign(512, size))
NAME(__libc_valloc, __libc_valloc(size))
NAME(__libc_pvalloc, __libc_pvalloc(size))

static const name_t names[] = {
    {"malloc", get_by_malloc, 16, false},
    {"calloc", get_by_calloc, 16, true},
    {"realloc", get_by_realloc, 16, false},
    {"aligned_alloc", get_by_aligned_alloc, 512, false},
    {"memalign", get_by_memalign, 512, false},
    {"valloc", get_by_valloc, 4096, false},
    {"pvalloc", get_by_pvalloc, 4096, false},
    {"reallocf", get_by_reallocf, 16, false},
    {"reallocarray", get_by_reallocarray, 16, false},
    {"_aligned_malloc", get_by__aligned_malloc, 512, false},
    {"__libc_malloc", get_by___libc_malloc, 16, false},
    {"__libc_calloc", get_by___libc_calloc, 16, true},
    {"__libc_realloc", get_by___libc_realloc, 16, false},
    {"__libc_memalign", get_by___libc_memalign, 512, false},
    {"__libc_valloc", get_by___libc_valloc, 4096, false},
    {"__libc_pvalloc", get_by___libc_pvalloc, 4096, false},
    {"posix_memalign", get_by_posix_memalign, 512, false},
    {"__posix_memalign", get_by___posix_memalign, 512, false},
    {"reallocarr", get_by_reallocarr, 16, false},
};

static size_t asked_by(const name_t* n, size_t size) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  if (strstr(n->name, "pvalloc") != NULL) return size == 0 ? page : (size + page - 1) / page * page;
  return size == 0 && n->call == get_by_reallocarr ? 1 : size;
}

static void give_back(void* p, size_t i, size_t size, size_t alignment) {
  if (i % 8 == 0) free(p);
  if (i % 8 == 1) cfree(p);
  if (i % 8 == 2) vfree(p);
  if (i % 8 == 3) __libc_free(p);
  if (i % 8 == 4) __libc_cfree(p);
  if (i % 8 == 5) free_sized(p, size);
  if (i % 8 == 6) free_aligned_sized(p, alignment == 512 ? 512 : 8, size);
  if (i % 8 == 7) mi_free(p);
}

static void check_gets(void) {
  for (size_t i = 0; i < COUNT_OF(names); i++) {
    const name_t* n = &names[i];
    for (size_t size = 0, k = 0; size <= 2 * MiB; size = size * 3 + 1, k++) {
      void* p = n->call(size);
      void* q = n->call(size);
      CHECK_FOR(p != NULL && q != NULL && p != q && mi_is_in_heap_region(p), "%s(%zu)", n->name, size);
      CHECK_FOR(is_aligned(p, size <= 8 && n->alignment == 16 ? 8 : n->alignment), "%s(%zu)", n->name, size);
      CHECK_FOR(size_is_right(malloc_usable_size(p), asked_by(n, size)), "%s(%zu)", n->name, size);
      CHECK_FOR(malloc_size(p) == malloc_usable_size(p) && mi_usable_size(p) == malloc_size(p), "%s", n->name);
      if (n->is_zeroed) CHECK_FOR(is_zero(p, 0, size), "%s(%zu)", n->name, size);
      memset(p, 0xAB, size);
      give_back(p, k, asked_by(n, size), n->alignment);
      give_back(q, k + 3, asked_by(n, size), n->alignment);
    }
  }
  for (size_t k = 0; k < 8; k++) give_back((void*)hidden_pointer(NULL), k, 0, 512);
  CHECK(malloc_usable_size((void*)hidden_pointer(NULL)) == 0 && malloc_size(hidden_pointer(NULL)) == 0);
  CHECK(malloc_good_size(100) == mi_good_size(100));
}

// Whichever gives a block back, it can be had again.
static void check_given_back(void) {
  for (size_t i = 0; i < 8; i++) {
    size_t before = rss_now();
    for (size_t k = 0; k < 300; k++) {
      void* p = malloc(1 * MiB);
      memset(p, 0xAB, 1 * MiB);
      give_back(p, i, 1 * MiB, 16);
    }
    size_t kept = minus(rss_now(), before);
    CHECK_FOR(!rss_is_meaningful() || kept < 64 * MiB, "way %zu keeps %zu bytes", i, kept);
  }
}

// ---- refusing -------------------------------------------------------------------------------------------------------

static void check_refusals(void) {
  for (size_t i = 0; i < COUNT_OF(names); i++) {
    const name_t* n = &names[i];
    bool          has_code = strstr(n->name, "posix") != NULL;
    errno = 4711;
    void* p = n->call(hidden((size_t)PTRDIFF_MAX + 1));
    int   error = errno;
    CHECK_FOR(p == NULL && error == (has_code ? 4711 : ENOMEM), "%s: errno %d", n->name, error);
  }
  void* p = malloc(100);
  memset(p, 0xAB, 100);
  // By pointers: compilers know that calls of these names do not fail without need, and do not set errno.
  void* (*volatile any_calloc)(size_t, size_t) = &calloc;
  void* (*volatile any_aligned_alloc)(size_t, size_t) = &aligned_alloc;
  errno = 0;
  CHECK(any_calloc(SIZE_MAX / 2, 3) == NULL && errno == ENOMEM);
  errno = 0;
  CHECK(reallocarray(p, hidden(SIZE_MAX / 2), 3) == NULL && errno == ENOMEM);
  CHECK(reallocarr(&p, hidden(SIZE_MAX / 2), 3) == EOVERFLOW && reallocarr(&p, 1, 0) == EINVAL);
  CHECK(reallocarr(hidden_pointer(NULL), 1, 1) == EINVAL);
  errno = 0;
  CHECK(any_aligned_alloc(48, 100) == NULL && errno == EINVAL);
  void* q = &p;
  CHECK(posix_memalign(&q, sizeof(void*) / 2, 100) == EINVAL && __posix_memalign(&q, 48, 100) == EINVAL && q == &p);
  CHECK(((uint8_t*)p)[99] == 0xAB);
  CHECK(reallocarr(&p, 0, 1) == 0 && p == NULL);
}

// ---- the rest -------------------------------------------------------------------------------------------------------

static void check_resizes(void) {
  uint8_t* p = (uint8_t*)malloc(100);
  pattern_fill(p, 0, 100, 1);
  for (size_t size = 1000; size <= 4 * MiB; size *= 8) {
    p = (uint8_t*)realloc(p, size);
    CHECK(pattern_check(p, 100, 1) == 100);
    p = (uint8_t*)__libc_realloc(p, size * 2);
    p = (uint8_t*)reallocf(p, size * 3);
    p = (uint8_t*)reallocarray(p, size, 4);
    CHECK(reallocarr(&p, size, 5) == 0);
    CHECK(pattern_check(p, 100, 1) == 100 && malloc_usable_size(p) >= 5 * size);
  }
  p = (uint8_t*)realloc(p, 0);
  CHECK(p != NULL);
  free(p);
}

static void check_strings(void) {
  char* s = strdup("hello");
  CHECK(mi_is_in_heap_region(s) && strcmp(s, "hello") == 0);
  free(s);
  s = strndup("hello", 3);
  CHECK(mi_is_in_heap_region(s) && strcmp(s, "hel") == 0);
  free(s);
  // what libc allocates for us comes here, and may be freed here
  char* line = NULL;
  CHECK(asprintf(&line, "%d", 4711) == 4 && mi_is_in_heap_region(line));
  free(line);
  s = realpath("/", NULL);
  CHECK(mi_is_in_heap_region(s));
  free(s);
}

#if defined(__GLIBC__)
static void ignore_output(const char* text, void* arg) {
  *(size_t*)arg += strlen(text);
}

// glibc's questions about its own heap: answered about ours.
static void check_questions(void) {
  enum { n = 100 };
  void* blocks[n];
  for (size_t i = 0; i < n; i++) memset(blocks[i] = malloc(1 * MiB), 0xAB, 1 * MiB);
  struct mallinfo2 with = mallinfo2();
  CHECK_FOR(with.uordblks >= n * MiB, "%zu bytes in use", with.uordblks);
  CHECK(with.arena == with.uordblks + with.fordblks && with.hblkhd == 0);
  #pragma GCC diagnostic push
  #pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  CHECK(mallinfo().uordblks >= (int)(n * MiB));
  #pragma GCC diagnostic pop
  for (size_t i = 0; i < n; i++) free(blocks[i]);
  size_t           before = rss_now();
  struct mallinfo2 without = mallinfo2();
  CHECK(without.arena == without.uordblks + without.fordblks);
  malloc_trim(0);
  CHECK(mallinfo2().uordblks + n / 2 * MiB < with.uordblks);
  CHECK(!rss_is_meaningful() || rss_now() <= before);
  CHECK(mallopt(M_MMAP_THRESHOLD, 1000000) == 1);
  size_t n_bytes = 0;
  mi_register_output(&ignore_output, &n_bytes);
  size_t n_before = n_bytes;
  malloc_stats();
  CHECK(n_bytes > n_before + 100);
  mi_register_output(NULL, NULL);
  char  text[64] = "";
  FILE* file = tmpfile();
  CHECK(file != NULL && malloc_info(0, file) == 0 && ftell(file) > 100);
  rewind(file);
  CHECK(fgets(text, sizeof(text), file) != NULL && strncmp(text, "<malloc", 7) == 0);
  errno = 0;
  CHECK(malloc_info(1, file) == -1 && errno == EINVAL);
  fclose(file);
}
#else
static void check_questions(void) {}
#endif

int main(int argc, char** argv) {
  test_seed(argc, argv);
  check_gets();
  check_given_back();
  check_refusals();
  check_resizes();
  check_strings();
  check_questions();
  return check_result();
}
