// A script that uses every part of the allocator while calls of the system fail, and what must hold afterwards.
//
// Each block keeps its contents, NULL comes with ENOMEM, and with the system willing again everything is possible.
#pragma once

#include <pthread.h>

#include <mimalloc.h>

#include "../check.h"
#include "../modes/support.h"

enum { max_blocks = 2000, n_helpers = 2, blocks_per_helper = 100, max_written = 32 * 1024 };

typedef struct block_s {
  uint8_t* p;
  size_t   size;
  uint64_t key;
} block_t;

typedef struct run_s {
  block_t blocks[max_blocks];
  size_t  count;
  rng_t   rng;
  size_t  huge;      // the size of the largest blocks: it varies, so that a run cannot live on what others have left
  size_t  n_refused; // requests that got NULL
  size_t  n_wrong;   // NULL without ENOMEM, errno changed otherwise, changed contents
} run_t;

static size_t n_written(size_t size) {
  return size < max_written ? size : max_written;
}

static void wrong(run_t* r, const char* what, size_t size) {
  if (r->n_wrong++ < 5) printf("  %s, size %zu, errno %d\n", what, size, errno);
}

// errno was 0.
static bool is_served(run_t* r, const void* p, size_t size) {
  if (errno != (p == NULL ? ENOMEM : 0)) wrong(r, p == NULL ? "NULL without ENOMEM" : "errno has changed", size);
  r->n_refused += (p == NULL);
  return p != NULL;
}

static void take(run_t* r, void* p, size_t size, bool is_zeroed) {
  if (!is_served(r, p, size)) return;
  if (r->count == max_blocks) {
    mi_free(p);
    return;
  }
  if (is_zeroed && !is_zero(p, 0, n_written(size))) wrong(r, "not zero", size);
  block_t* b = &r->blocks[r->count++];
  b->p = (uint8_t*)p;
  b->size = size;
  b->key = rng_next(&r->rng);
  pattern_fill(p, 0, n_written(size), b->key);
  if (size > max_written) b->p[size - 1] = (uint8_t)b->key;
}

static void verify(run_t* r, const block_t* b) {
  if (pattern_check(b->p, n_written(b->size), b->key) != n_written(b->size)) wrong(r, "contents changed", b->size);
  if (b->size > max_written && b->p[b->size - 1] != (uint8_t)b->key) wrong(r, "last byte changed", b->size);
}

static void verify_all(run_t* r) {
  for (size_t i = 0; i < r->count; i++) verify(r, &r->blocks[i]);
}

static void put(run_t* r, size_t index) {
  verify(r, &r->blocks[index]);
  errno = EDOM;
  mi_free(r->blocks[index].p);
  if (errno != EDOM) wrong(r, "a free has changed errno", r->blocks[index].size);
  r->blocks[index] = r->blocks[--r->count];
}

static void get_plain(run_t* r, size_t n, size_t min, size_t max) {
  for (size_t i = 0; i < n; i++) {
    size_t size = min + rng_size(&r->rng, max - min);
    bool   is_zeroed = rng_below(&r->rng, 3) == 0;
    errno = 0;
    void* p = is_zeroed ? mi_calloc(1, size) : mi_malloc(size);
    take(r, p, size, is_zeroed);
  }
}

static void get_aligned(run_t* r) {
  for (size_t alignment = 32; alignment <= 8 * MiB; alignment *= 2) {
    size_t size = 1 + rng_size(&r->rng, 100 * KiB);
    errno = 0;
    take(r, mi_malloc_aligned(size, alignment), size, false);
  }
  errno = 0;
  take(r, mi_zalloc_aligned_at(50000, 4096, 24), 50000, true);
}

// Each block keeps its contents whether it grows, moves, or is refused.
static void grow(run_t* r, size_t from, size_t to) {
  errno = 0;
  uint8_t* p = (uint8_t*)mi_malloc(from);
  if (!is_served(r, p, from)) return;
  size_t   size = from;
  uint64_t key = rng_next(&r->rng);
  pattern_fill(p, 0, n_written(size), key);
  while (size < to) {
    size_t bigger = size + size / 2 + 1;
    errno = 0;
    uint8_t* q = (uint8_t*)mi_realloc(p, bigger);
    if (!is_served(r, q, bigger)) break;
    if (pattern_check(q, n_written(size), key) != n_written(size)) wrong(r, "realloc lost contents", bigger);
    pattern_fill(q, n_written(size), n_written(bigger), key);
    p = q;
    size = bigger;
  }
  if (pattern_check(p, n_written(size), key) != n_written(size)) wrong(r, "refused realloc changed contents", size);
  size_t   less = size - size / 4;
  uint8_t* q = (uint8_t*)mi_realloc(p, less);
  if (q != NULL) p = q;
  if (pattern_check(p, n_written(less), key) != n_written(less)) wrong(r, "a smaller block has other contents", less);
  mi_free(p);
}

typedef struct helper_s {
  void*    blocks[blocks_per_helper];
  size_t   sizes[blocks_per_helper];
  uint64_t seed;
  size_t   n_bad;
} helper_t;

// A thread that leaves every second of its blocks to the main thread.
static void* help(void* arg) {
  helper_t* h = (helper_t*)arg;
  rng_t     rng = rng_make(h->seed);
  for (size_t i = 0; i < blocks_per_helper; i++) {
    size_t size = 1 + rng_size(&rng, i % 10 == 0 ? 300 * KiB : 3000);
    errno = 0;
    void* p = mi_malloc(size);
    if (errno != (p == NULL ? ENOMEM : 0)) h->n_bad++;
    if (p != NULL) memset(p, 0xAB, size < 5000 ? size : 5000);
    h->blocks[i] = p;
    h->sizes[i] = size;
  }
  for (size_t i = 0; i < blocks_per_helper; i += 2) {
    mi_free(h->blocks[i]);
    h->blocks[i] = NULL;
  }
  return NULL;
}

static void use_threads(run_t* r) {
  static helper_t helpers[n_helpers];
  pthread_t       threads[n_helpers];
  bool            is_running[n_helpers];
  for (size_t i = 0; i < n_helpers; i++) {
    helpers[i].seed = rng_next(&r->rng);
    helpers[i].n_bad = 0;
    is_running[i] = pthread_create(&threads[i], NULL, &help, &helpers[i]) == 0;
  }
  for (size_t i = 0; i < n_helpers; i++) {
    if (!is_running[i]) continue;
    pthread_join(threads[i], NULL);
    if (helpers[i].n_bad > 0) wrong(r, "NULL without ENOMEM, or errno has changed, in a thread", 0);
    for (size_t k = 1; k < blocks_per_helper; k += 2) {
      errno = (helpers[i].blocks[k] == NULL ? ENOMEM : 0); // the thread has looked at its own
      take(r, helpers[i].blocks[k], helpers[i].sizes[k], false);
    }
  }
}

static void script(run_t* r) {
  get_plain(r, 400, 0, 1000);
  get_plain(r, 60, 1000, 60 * KiB);
  get_plain(r, 20, 64 * KiB, 400 * KiB);
  grow(r, 10, 3 * MiB);
  get_aligned(r);
  get_plain(r, 5, 600 * KiB, 3 * MiB);
  get_plain(r, 2, r->huge, r->huge + 20 * MiB);
  use_threads(r);
  for (size_t i = 0; i < 200 && r->count > 0; i++) put(r, rng_below(&r->rng, r->count));
  mi_collect(true);
  get_plain(r, 100, 0, 100 * KiB);
  grow(r, 300 * KiB, 40 * MiB);
  verify_all(r);
}

// With the system willing again everything must be possible.
static void recover(run_t* r) {
  size_t n_refused = r->n_refused;
  verify_all(r);
  get_plain(r, 100, 0, 20 * KiB);
  get_plain(r, 10, 100 * KiB, 2 * MiB);
  get_plain(r, 1, 34 * MiB, 35 * MiB);
  get_aligned(r);
  use_threads(r);
  if (r->n_refused != n_refused) wrong(r, "refused after the failures ended", r->n_refused - n_refused);
  while (r->count > 0) put(r, r->count - 1);
  mi_collect(true);
}
