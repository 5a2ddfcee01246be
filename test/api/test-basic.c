// Proves: the everyday entries do what the header says: contents, zeroing, strings, paths, what NULL does, and the
// sizes that the u-functions report.
#include "../check.h"
#include "entries.h"
#include <limits.h>
#include <wchar.h>

// Every entry gives a block that holds what is written to all of its usable size, apart from all the others.
static void check_every_get(uint64_t seed) {
  static const size_t sizes[] = {1, 7, 8, 9, 16, 17, 100, 255, 1000, 1024, 4000, 10000, 65536, 200000, 600000, 5000000};
  void*               blocks[COUNT_OF(all_gets)];
  for (size_t s = 0; s < COUNT_OF(sizes); s++) {
    size_t   count = 0;
    uint64_t keys[COUNT_OF(all_gets)];
    size_t   usable[COUNT_OF(all_gets)];
    for (size_t i = 0; i < COUNT_OF(all_gets); i++) {
      const get_t* g = &all_gets[i];
      if (!get_allows(g, sizes[s], 16, 0)) continue;
      void* p = g->call(sizes[s], 16, 0);
      CHECK_FOR(p != NULL, "%s(%zu)", g->name, sizes[s]);
      if (p == NULL) continue;
      usable[count] = mi_usable_size(p);
      CHECK_FOR(size_is_right(usable[count], get_asked(g, sizes[s])), "%s(%zu)", g->name, sizes[s]);
      CHECK_FOR(is_aligned(p, sizes[s] > 8 ? 16 : 8), "%s(%zu)", g->name, sizes[s]);
      if ((g->flags & E_ZERO) != 0) CHECK_FOR(is_zero(p, 0, sizes[s]), "%s(%zu)", g->name, sizes[s]);
      keys[count] = seed + i;
      pattern_fill(p, 0, usable[count], keys[count]);
      blocks[count++] = p;
    }
    for (size_t i = 0; i < count; i++) {
      CHECK_FOR(pattern_check(blocks[i], usable[i], keys[i]) == usable[i], "size %zu", sizes[s]);
      mi_free(blocks[i]);
    }
  }
}

// The small entries, at every size that they allow.
static void check_small(void) {
  for (size_t size = 0; size <= MI_SMALL_SIZE_MAX; size++) {
    size_t reported = 0;
    void*  p = mi_malloc_small(size);
    void*  z = mi_zalloc_small(size);
    void*  u = mi_umalloc_small(size, &reported);
    CHECK_FOR(p != NULL && z != NULL && u != NULL, "size %zu", size);
    CHECK_FOR(reported >= size, "size %zu", size);
    CHECK_FOR(is_zero(z, 0, size), "size %zu", size);
    memset(p, 0xAB, size);
    memset(z, 0xAB, size);
    memset(u, 0xAB, size);
    mi_free_small(p);
    mi_free_small(z);
    mi_free_small(u);
  }
}

static void check_null(void) {
  mi_free(NULL);
  mi_cfree(NULL);
  mi_free_size(NULL, 0);
  mi_free_aligned(NULL, 16);
  mi_free_size_aligned(NULL, 0, 16);
  mi_free_small(NULL);
  size_t reported = 12345;
  mi_ufree(NULL, &reported);
  CHECK_EQ(reported, 12345); // untouched
  mi_ufree(NULL, NULL);
  CHECK_EQ(mi_usable_size(NULL), 0);
  CHECK_EQ(mi_malloc_usable_size(NULL), 0);
  CHECK_EQ(mi_malloc_size(NULL), 0);
  CHECK(mi_strdup(NULL) == NULL);
  CHECK(mi_strndup(NULL, 5) == NULL);
  CHECK(mi_wcsdup(NULL) == NULL);
  CHECK(mi_mbsdup(NULL) == NULL);
  CHECK(mi_expand(NULL, 16) == NULL);
}

static void check_counted(void) {
  uint8_t* p = (uint8_t*)mi_calloc(1000, 24);
  CHECK(p != NULL && is_zero(p, 0, 24000) && mi_usable_size(p) >= 24000);
  mi_free(p);
  p = (uint8_t*)mi_mallocn(1000, 24);
  CHECK(p != NULL && mi_usable_size(p) >= 24000);
  p = (uint8_t*)mi_reallocn(p, 3000, 24);
  CHECK(p != NULL && mi_usable_size(p) >= 72000);
  memset(p, 0xAB, 72000);
  p = (uint8_t*)mi_reallocf(p, 100000);
  CHECK(p != NULL && p[0] == 0xAB && p[71999] == 0xAB);
  mi_free(p);
}

// A block's reported size covers the request; before and after a resize and at the free it is the same block's.
static void check_reported_sizes(void) {
  for (size_t size = 0; size < 3 * MiB; size = size * 3 / 2 + 7) {
    size_t at_get = 0, at_free = 0, pre = 1, post = 0;
    void*  p = mi_umalloc(size, &at_get);
    CHECK_FOR(p != NULL && at_get >= size && at_get >= mi_usable_size(p), "size %zu", size);
    p = mi_urealloc(p, 2 * size + 1, &pre, &post);
    CHECK_FOR(p != NULL && pre == at_get && post >= 2 * size + 1, "size %zu", size);
    mi_ufree(p, &at_free);
    CHECK_FOR(at_free == post, "size %zu", size);
    p = mi_ucalloc(1, size, &at_get);
    CHECK_FOR(p != NULL && at_get >= size && is_zero(p, 0, size), "size %zu", size);
    mi_ufree(p, &at_free);
    CHECK_FOR(at_free == at_get, "size %zu", size);
    p = mi_umalloc_aligned(size, 256, &at_get);
    CHECK_FOR(p != NULL && at_get >= size && is_aligned(p, 256), "size %zu", size);
    mi_ufree(p, &at_free);
    CHECK_FOR(at_free == at_get, "size %zu", size);
    p = mi_uzalloc_aligned(size, 64, &at_get);
    CHECK_FOR(p != NULL && at_get >= size && is_zero(p, 0, size), "size %zu", size);
    mi_ufree(p, NULL);
  }
  size_t pre = 1, post = 0;
  void*  p = mi_urealloc(NULL, 100, &pre, &post);
  CHECK(p != NULL && pre == 0 && post >= 100);
  mi_free(p);
}

typedef struct sample_s {
  uint64_t a;
  char     b[41];
} sample_t;

// The order of the arguments is that of the level.
#if MI_API_LEVEL < 3
  #define REALLOCN(p, tp, n) mi_reallocn_tp(p, tp, n)
  #define RECALLOC(p, tp, n) mi_recalloc_tp(p, tp, n)
#else
  #define REALLOCN(p, tp, n) mi_reallocn_tp(tp, p, n)
  #define RECALLOC(p, tp, n) mi_recalloc_tp(tp, p, n)
#endif

static void check_typed(void) {
  sample_t* p = mi_malloc_tp(sample_t);
  CHECK(p != NULL && mi_usable_size(p) >= sizeof(sample_t));
  mi_free(p);
  p = mi_zalloc_tp(sample_t);
  CHECK(p != NULL && is_zero(p, 0, sizeof(sample_t)));
  mi_free(p);
  p = mi_mallocn_tp(sample_t, 20);
  CHECK(p != NULL && mi_usable_size(p) >= 20 * sizeof(sample_t));
  memset(p, 0xAB, 20 * sizeof(sample_t));
  p = REALLOCN(p, sample_t, 50);
  CHECK(p != NULL && mi_usable_size(p) >= 50 * sizeof(sample_t) &&
        ((unsigned char*)p)[20 * sizeof(sample_t) - 1] == 0xAB);
  mi_free(p);
  p = mi_calloc_tp(sample_t, 20);
  CHECK(p != NULL && is_zero(p, 0, 20 * sizeof(sample_t)));
  p = RECALLOC(p, sample_t, 90);
  CHECK(p != NULL && is_zero(p, 0, 90 * sizeof(sample_t)));
  mi_free(p);
}

static void check_strings(void) {
  char long_text[3000];
  memset(long_text, 'x', sizeof(long_text) - 1);
  long_text[sizeof(long_text) - 1] = 0;
  char* copy = mi_strdup(long_text);
  CHECK(copy != NULL && copy != long_text && strcmp(copy, long_text) == 0);
  CHECK(mi_usable_size(copy) >= sizeof(long_text));
  mi_free(copy);

  static const struct {
    const char* text;
    size_t      n;
    const char* result;
  } cases[] = {
      {"hello", 10, "hello"}, {"hello", 5, "hello"}, {"hello", 4, "hell"},
      {"hello", 0, ""},       {"", 7, ""},           {"hello", SIZE_MAX, "hello"},
  };
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    copy = mi_strndup(cases[i].text, hidden(cases[i].n));
    CHECK_FOR(copy != NULL && strcmp(copy, cases[i].result) == 0, "case %zu", i);
    mi_free(copy);
  }
  const char unterminated[3] = {'a', 'b', 'c'};
  copy = mi_strndup(unterminated, 3);
  CHECK(copy != NULL && strcmp(copy, "abc") == 0);
  mi_free(copy);

  wchar_t* wide = mi_wcsdup(L"wide text");
  CHECK(wide != NULL && wcscmp(wide, L"wide text") == 0);
  mi_free(wide);
  unsigned char* bytes = mi_mbsdup((const unsigned char*)"bytes");
  CHECK(bytes != NULL && strcmp((const char*)bytes, "bytes") == 0);
  mi_free(bytes);
}

static void check_realpath(void) {
  if (!TEST_HAS_REALPATH) {
    CHECK(mi_realpath("/", NULL) == NULL);
    CHECK_EQ(errno, ENOSYS);
    return;
  }
  char* path = mi_realpath("/", NULL);
  CHECK(is_root(path));
  mi_free(path);
  path = mi_realpath("/./..//", NULL);
  CHECK(is_root(path));
  mi_free(path);
  static char given[PATH_MAX];
  CHECK(mi_realpath("/.", given) == given && is_root(given));
  errno = 0;
  CHECK(mi_realpath("/no/such/file", NULL) == NULL);
  CHECK_EQ(errno, ENOENT);
  errno = 77;
  path = mi_realpath("/dev/null", NULL); // no link, of which readlink says EINVAL
  CHECK(path == NULL || errno == 77);
  mi_free(path);
}

// Never moves; contents stay; beyond the usable size the answer is NULL.  Where blocks are padded it always is.
static void check_expand(void) {
  for (size_t size = 1; size < 2 * MiB; size = size * 2 + 5) {
    uint8_t* p = (uint8_t*)mi_malloc(size);
    size_t   usable = mi_usable_size(p);
    pattern_fill(p, 0, size, size);
    void* same = MI_PADDING ? NULL : p;
    CHECK_FOR(mi_expand(p, usable) == same, "size %zu", size);
    CHECK_FOR(mi_expand(p, 0) == same, "size %zu", size);
    CHECK_FOR(mi__expand(p, size) == same, "size %zu", size);
    errno = 0;
    void* too_big = mi_expand(p, hidden(SIZE_MAX / 4));
    CHECK_FOR(too_big == NULL && errno == 0, "size %zu", size);
    too_big = mi__expand(p, hidden(SIZE_MAX / 4));
    CHECK_FOR(too_big == NULL && errno == ENOMEM, "size %zu", size);
    CHECK_FOR(pattern_check(p, size, size) == size, "size %zu", size);
    mi_free(p);
  }
}

// Pointers that were never ours are told apart, and freeing them through the careful entry does nothing.
static void check_foreign(void) {
  static char in_data[64];
  char        on_stack[64];
  void*       p = mi_malloc(100);
  void*       large = mi_malloc(64 * MiB);
  CHECK(mi_is_in_heap_region(p));
  CHECK(mi_is_in_heap_region(large));
  CHECK(!mi_is_in_heap_region(NULL));
  CHECK(!mi_is_in_heap_region(in_data));
  CHECK(!mi_is_in_heap_region(on_stack));
  mi_cfree(hidden_pointer(in_data));
  mi_cfree(hidden_pointer(on_stack));
  mi_free(p);
  mi_free(large);
}

int main(int argc, char** argv) {
  uint64_t seed = test_seed(argc, argv);
  check_every_get(seed);
  check_small();
  check_null();
  check_counted();
  check_reported_sizes();
  check_typed();
  check_strings();
  check_realpath();
  check_expand();
  check_foreign();
  return check_result();
}
