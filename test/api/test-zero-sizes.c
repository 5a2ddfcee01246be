// Proves: a request for zero bytes gives a block of its own, aligned and freeable, from every entry; a resize to zero
// bytes gives such a block and frees the old one.
#include "../check.h"
#include "entries.h"

enum { n_each = 8 };

static void check_fresh_blocks(void) {
  static void* blocks[COUNT_OF(all_gets) * n_each];
  size_t       count = 0;
  for (size_t i = 0; i < COUNT_OF(all_gets); i++) {
    const get_t* g = &all_gets[i];
    for (size_t k = 0; k < n_each; k++) {
      size_t alignment = (g->flags & E_ALIGN) != 0 ? (size_t)8 << k : 8;
      void*  p = g->call(0, alignment, 0);
      CHECK_FOR(p != NULL, "%s", g->name);
      CHECK_FOR(is_aligned(p, alignment), "%s", g->name);
      for (size_t j = 0; j < count; j++) CHECK_FOR(blocks[j] != p, "%s", g->name);
      blocks[count++] = p;
    }
  }
  for (size_t i = 0; i < count; i++) mi_free(blocks[i]);
}

static void check_resized_blocks(void) {
  static const size_t sizes[] = {0, 1, 8, 100, 5000, 70000, 3000000};
  for (size_t i = 0; i < COUNT_OF(all_resizes); i++) {
    const resize_t* r = &all_resizes[i];
    for (size_t k = 0; k < COUNT_OF(sizes); k++) {
      if (r->call == resize_reallocarr) continue; // refuses size 0
      uint8_t* p = (uint8_t*)mi_zalloc_aligned(sizes[k], 64);
      CHECK(p != NULL);
      void* q = r->call(p, 0, 64, 0);
      CHECK_FOR(q != NULL, "%s", r->name);
      void* other = mi_malloc(0);
      CHECK_FOR(q != other, "%s", r->name);
      mi_free(other);
      mi_free(q);
    }
  }
}

// mi_realloc(p, 0) promises that the first byte of its result may be read, and is 0; but where blocks are padded that byte
// is padding, which nobody may touch.
static void check_first_byte(void) {
  for (size_t size = 1; size <= 1 * MiB; size *= 4) {
    uint8_t* p = (uint8_t*)mi_malloc(size);
    memset(p, 0xAB, size);
    uint8_t* q = (uint8_t*)mi_realloc(p, hidden(0));
    CHECK(q != NULL && size_is_right(mi_usable_size(q), 0));
    if (!MI_PADDING) CHECK_EQ(q[0], 0);
    mi_free(q);
  }
  uint8_t* q = (uint8_t*)mi_realloc(NULL, hidden(0));
  CHECK(q != NULL);
  mi_free(q);
}

// The same with an alignment that no block of 0 bytes has by itself; free blocks hold links.
static void check_first_byte_aligned(void) {
  enum { n = 50 };
  uint8_t* p[n];
  for (size_t i = 0; i < n; i++) memset(p[i] = (uint8_t*)mi_malloc_aligned(64, 64), 0xAB, 64);
  for (size_t i = 0; i < n; i++) mi_free(p[i]);
  for (size_t i = 0; i < n; i++) {
    p[i] = (uint8_t*)mi_malloc(1000);
    p[i] = (uint8_t*)(i % 2 == 0 ? mi_realloc_aligned(p[i], hidden(0), 64)
                                 : mi_realloc_aligned_at(p[i], hidden(0), 64, 64));
    CHECK(p[i] != NULL && is_aligned(p[i], 64));
    if (!MI_PADDING) CHECK_EQ(p[i][0], 0);
  }
  for (size_t i = 0; i < n; i++) mi_free(p[i]);
}

// Zero counts through the two arguments of the counted entries.
static void check_zero_counts(void) {
  void* blocks[] = {
      mi_calloc(hidden(0), 8),
      mi_calloc(8, hidden(0)),
      mi_mallocn(hidden(0), 8),
      mi_mallocn(8, hidden(0)),
      mi_reallocn(NULL, hidden(0), 8),
      mi_recalloc(NULL, hidden(0), 8),
      mi_reallocarray(NULL, 0, 8),
      mi_ucalloc(hidden(0), 8, NULL),
      mi_calloc_aligned(hidden(0), 8, 32),
      mi_new_n(hidden(0), 8),
      mi_calloc(0, hidden(SIZE_MAX)),
      mi_calloc(hidden(SIZE_MAX), 0),
      mi_strdup(""),
      mi_strndup("text", hidden(0)),
      mi_wcsdup(L""),
  };
  for (size_t i = 0; i < COUNT_OF(blocks); i++) {
    CHECK_FOR(blocks[i] != NULL, "entry %zu", i);
    for (size_t j = 0; j < i; j++) CHECK_FOR(blocks[i] != blocks[j], "entries %zu and %zu", i, j);
  }
  for (size_t i = 0; i < COUNT_OF(blocks); i++) mi_free(blocks[i]);
}

int main(int argc, char** argv) {
  test_seed(argc, argv);
  check_fresh_blocks();
  check_resized_blocks();
  check_first_byte();
  check_first_byte_aligned();
  check_zero_counts();
  return check_result();
}
