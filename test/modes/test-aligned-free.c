// Proves: sizes up to 64 KiB times alignments up to 4 MiB through every aligned entry and every way to free: each block
// is aligned, keeps its contents to the last usable byte beside its neighbours, and is really free afterwards.
#include "../check.h"
#include "../api/entries.h"

enum { n_held = 24 }; // blocks alive at a time, so that neighbours exist

typedef struct held_s {
  uint8_t*     p;
  size_t       size, usable, alignment, n_filled;
  uint64_t     key;
  const get_t* got;
  const put_t* put;
} held_t;

static held_t held[n_held];
static size_t n_gets;

static void release(held_t* h) {
  if (h->p == NULL) return;
  CHECK_FOR(pattern_check(h->p, h->n_filled, h->key) == h->n_filled, "%s(%zu, %zu)", h->got->name, h->size,
            h->alignment);
  CHECK_FOR(mi_usable_size(h->p) == h->usable, "%s(%zu, %zu)", h->got->name, h->size, h->alignment);
  h->put->call(h->p, get_asked(h->got, h->size), h->alignment);
  h->p = NULL;
}

static void hold(const get_t* g, const put_t* put, size_t size, size_t alignment, size_t offset) {
  held_t* h = &held[n_gets++ % n_held];
  release(h);
  h->p = (uint8_t*)g->call(size, alignment, offset);
  CHECK_FOR(h->p != NULL && is_aligned(h->p + offset, alignment), "%s(%zu, %zu, %zu)", g->name, size, alignment,
            offset);
  if (h->p == NULL) return;
  h->size = size;
  h->alignment = alignment;
  h->usable = mi_usable_size(h->p);
  h->key = n_gets;
  h->got = g;
  h->put = put;
  CHECK_FOR(size_is_right(h->usable, get_asked(g, size)), "%s(%zu, %zu, %zu)", g->name, size, alignment, offset);
  // All that may be used, but not more than twice the size or the test does nothing but fill.
  h->n_filled = h->usable < 2 * size + 64 ? h->usable : 2 * size + 64;
  if (h->n_filled > h->usable) h->n_filled = h->usable;
  pattern_fill(h->p, 0, h->n_filled, h->key);
}

static void check_product(const size_t* sizes, size_t n_sizes, size_t max_alignment) {
  for (size_t i = 0; i < COUNT_OF(all_gets); i++) {
    const get_t* g = &all_gets[i];
    for (size_t k = 0; k < COUNT_OF(all_puts); k++) {
      const put_t* put = &all_puts[k];
      if (!put_allows(put, g)) continue;
      for (size_t alignment = 8; alignment <= ((g->flags & E_ALIGN) != 0 ? max_alignment : 8); alignment *= 2) {
        for (size_t s = 0; s < n_sizes; s++) {
          size_t size = sizes[s];
          size_t offset = (g->flags & E_OFFSET) == 0 ? 0
                          : s % 4 == 0               ? 0
                          : s % 4 == 1               ? 8
                          : s % 4 == 2               ? size / 2
                                                     : alignment - 8;
          if (get_allows(g, size, alignment, offset)) hold(g, put, size, alignment, offset);
        }
      }
    }
  }
  for (size_t i = 0; i < n_held; i++) release(&held[i]);
}

int main(int argc, char** argv) {
  test_seed(argc, argv);
  watchdog(120);
  static size_t sizes[400];
  size_t        count = 0;
  sizes[count++] = 0;
  sizes[count++] = 1;
  // Every class boundary of the usable sizes and its neighbours, thinned out above 4 KiB in the default run.
  size_t step = 0;
  for (size_t size = 1; size <= 64 * KiB; step++) {
    size_t good = mi_good_size(size);
    bool   is_thin = test_scale() == 1 && (TEST_SANITIZED ? step % 8 != 0 : good > 512 && step % 3 != 0);
    if (!is_thin && count + 3 <= COUNT_OF(sizes)) {
      sizes[count++] = good - 1;
      sizes[count++] = good;
      sizes[count++] = good + 1;
    }
    size = good + 1;
  }
  size_t before = rss_now();
  check_product(sizes, count, 64 * KiB);
  static const size_t few[] = {1, 16, 24, 100, 4096, 5000, 65536};
  check_product(few, COUNT_OF(few), 4 * MiB);
  printf("%zu sizes, %zu blocks\n", count, n_gets);
  mi_collect(true);
  CHECK(rss_within("resident at the end", minus(rss_now(), before), 16 * MiB));
  return check_result();
}
