// Proves: what a zeroing entry gives is zero even when its memory has just been dirty: every entry and size class,
// after plain frees, frees by another thread, a collect, a purge, and a neighbour's resize.
#include "../check.h"
#include "../api/entries.h"
#include <pthread.h>

enum { max_batch = 64 };

static void* batch[max_batch];

static void dirty(size_t n, size_t size) {
  for (size_t i = 0; i < n; i++) {
    batch[i] = mi_malloc(size);
    CHECK(batch[i] != NULL);
    if (batch[i] != NULL) memset(batch[i], 0xAB, mi_usable_size(batch[i]));
  }
}

static void* free_batch(void* arg) {
  for (size_t i = 0; i < (size_t)(uintptr_t)arg; i++) mi_free(batch[i]);
  return NULL;
}

static void free_elsewhere(size_t n) {
  pthread_t t;
  CHECK_EQ(pthread_create(&t, NULL, &free_batch, (void*)(uintptr_t)n), 0);
  pthread_join(t, NULL);
}

enum { after_free, after_free_elsewhere, after_collect, after_shrink, n_ways };

static void give_back(size_t n, size_t size, int way) {
  if (way == after_free_elsewhere) {
    free_elsewhere(n);
    return;
  }
  for (size_t i = 0; i < n; i++) {
    if (way == after_shrink) batch[i] = mi_realloc(batch[i], size / 8 + 1); // the rest of the block is free and dirty
    mi_free(batch[i]);
  }
  if (way == after_collect) mi_collect(true);
}

// Batches of about 256 KiB, at least two blocks: more than what is served from a fresh place.
static size_t batch_of(size_t size) {
  size_t n = 256 * KiB / (size + 1);
  return n < 2 ? 2 : n > max_batch ? max_batch : n;
}

static void check_entry(const get_t* g, size_t size, int way) {
  size_t n = batch_of(size);
  dirty(n, size);
  give_back(n, size, way);
  for (size_t i = 0; i < n; i++) {
    size_t alignment = (g->flags & E_ALIGN) != 0 ? (size_t)16 << (i % 7) : 8;
    size_t offset = (g->flags & E_OFFSET) != 0 ? 8 * (i % 5) : 0;
    if ((g->flags & E_RESIZE) != 0 && alignment <= sizeof(void*)) offset = 0;
    batch[i] = g->call(size, alignment, offset);
    CHECK_FOR(batch[i] != NULL && is_zero(batch[i], 0, size), "%s(%zu), way %d", g->name, size, way);
    if (batch[i] != NULL) memset(batch[i], 0xAB, size);
  }
  for (size_t i = 0; i < n; i++) mi_free(batch[i]);
}

// From dirty neighbours and dirty free blocks, a block of the zeroing family grows.
static void check_resize(const resize_t* r, size_t from, size_t to, int way) {
  size_t n = batch_of(to);
  dirty(n, to);
  give_back(n, to, way);
  uint8_t* p = (uint8_t*)mi_zalloc(from);
  CHECK(p != NULL);
  memset(p, 0xCD, from);
  size_t size = from;
  while (size < to) {
    size_t   bigger = size + size / 3 + 1;
    uint8_t* q = (uint8_t*)r->call(p, bigger, 32, 0);
    CHECK_FOR(q != NULL && is_zero(q, size, bigger), "%s(%zu to %zu), way %d", r->name, size, bigger, way);
    if (q == NULL) break;
    CHECK_FOR(q[0] == 0xCD && q[size - 1] == 0xCD, "%s(%zu to %zu), way %d", r->name, size, bigger, way);
    memset(q, 0xCD, bigger);
    p = q;
    size = bigger;
  }
  mi_free(p);
}

int main(int argc, char** argv) {
  test_seed(argc, argv);
  watchdog(120);
  size_t n_classes = 0, max_size = TEST_SANITIZED ? 64 * KiB : 600 * KiB;
  for (size_t size = 1; size <= max_size; size = mi_good_size(size) + 1, n_classes++) {
    size_t good = mi_good_size(size);
    // Above 64 KiB each class takes long: one entry in turn there, all entries in a soak.
    bool   is_short = test_scale() == 1 && good > 16 * KiB;
    size_t turn = 0;
    for (size_t i = 0; i < COUNT_OF(all_gets); i++) {
      const get_t* g = &all_gets[i];
      if ((g->flags & E_ZERO) == 0 || ((g->flags & E_SMALL) != 0 && good > MI_SMALL_SIZE_MAX)) continue;
      turn++;
      if (is_short && turn % 8 != n_classes % 8) continue;
      for (int way = 0; way < n_ways; way++) {
        if (test_scale() == 1 && way == after_collect && n_classes % 5 != 0) continue;
        check_entry(g, good - (good > 8 ? n_classes % 2 : 0), way);
      }
    }
  }
  printf("%zu classes\n", n_classes);
  static const size_t large[] = {1 * MiB, 3 * MiB + 17, 12 * MiB, 40 * MiB};
  for (size_t s = 0; s < COUNT_OF(large) - (TEST_SANITIZED ? 2 : 0); s++) {
    for (size_t i = 0; i < COUNT_OF(all_gets); i++) {
      const get_t* g = &all_gets[i];
      if ((g->flags & E_ZERO) == 0 || (g->flags & E_SMALL) != 0 || (s > 1 && i % 6 != 1)) continue;
      for (int way = 0; way < n_ways; way++) check_entry(g, large[s], way);
    }
  }
  for (size_t i = 0; i < COUNT_OF(all_resizes); i++) {
    const resize_t* r = &all_resizes[i];
    if ((r->flags & E_ZERO) == 0) continue;
    for (int way = 0; way < n_ways; way++) {
      check_resize(r, 1, 8 * KiB, way);
      check_resize(r, 3000, 300 * KiB, way);
      check_resize(r, 200 * KiB, (TEST_SANITIZED ? 1 : 8) * MiB, way);
    }
  }
  return check_result();
}
