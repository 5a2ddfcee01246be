// A shadow model of the allocator: what every live block must be, checked at every operation.
//
// The model keeps its own memory (static tables) and never trusts the allocator with it.  Random choices come from a
// function, so that the same core runs from a seed (test-fuzz-model.c) and from a fuzzer's input (fuzz-operations.c,
// fuzz-heaps.c).
//
// M1  A live block's bytes [0, size) are its pattern: byte i is a function of its key and i.
// M2  No two live blocks share a byte of their usable ranges; `by_address` holds the ranges in order.
// M3  In a block of the zeroing family nothing beyond `n_dirty` has been written since it was first got.
// M4  n_live_bytes is the sum of the usable sizes.
// M5  A visit shows each live block once, and knows its usable size.
#pragma once

#include "../api/entries.h"

enum { model_max_blocks = 2000, model_max_size = 4 << 20 };

typedef struct block_s {
  uint8_t*     p;
  size_t       size;
  size_t       usable;
  size_t       alignment;
  size_t       offset;
  size_t       n_dirty;
  uint64_t     key;
  bool         is_zeroed; // of the zeroing family: may go on to the zeroing resizes
  const get_t* got;       // NULL once it has been resized
  int          owner;     // of several heaps, for `on_adopt`; 0 at first
  unsigned     n_seen;    // in a visit
} block_t;

typedef struct model_s {
  uint64_t (*next)(void* source);
  void* source;
  void (*on_adopt)(void* source, block_t* b, bool is_moved); // a block is new, has moved, or was resized; may be NULL
  size_t   max_live_bytes;
  size_t   n_live, n_live_bytes, n_peak_bytes, n_ops, n_failed;
  block_t  blocks[model_max_blocks]; // the first n_live are in use
  uint32_t by_address[model_max_blocks];
} model_t;

// Reports and counts; the run goes on, so that one fault shows all that it breaks.
#define MODEL_CHECK(m, cond, ...) \
  do { \
    if (!(cond)) { \
      if ((m)->n_failed++ < 20) { \
        printf("operation %zu: not so: %s: ", (m)->n_ops, #cond); \
        printf(__VA_ARGS__); \
        printf("\n"); \
        fflush(stdout); \
      } \
    } \
  } while (0)

static inline size_t model_pick(model_t* m, size_t n) {
  return n == 0 ? 0 : (size_t)(m->next(m->source) % n);
}
static inline bool model_chance(model_t* m, unsigned percent) {
  return m->next(m->source) % 100 < percent;
}

// Sizes are small most of the time; large ones stay rare or nothing else would be exercised.
static inline size_t model_size(model_t* m) {
  size_t   kind = model_pick(m, 100);
  uint64_t x = m->next(m->source);
  if (kind < 60) return log_size(x, 1024);
  if (kind < 90) return log_size(x, 40 * KiB);
  if (kind < 98) return log_size(x, 600 * KiB);
  return log_size(x, model_max_size);
}

static inline size_t model_alignment(model_t* m) {
  return (size_t)1 << (model_chance(m, 90) ? 3 + model_pick(m, 10) : model_pick(m, 21));
}

// ---- the address order (M2) -----------------------------------------------------------------------------------------

// Index of the first range that begins at p or later.
static inline size_t model_find(const model_t* m, const uint8_t* p) {
  size_t low = 0, high = m->n_live;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (m->blocks[m->by_address[middle]].p < p) low = middle + 1;
    else high = middle;
  }
  return low;
}

static inline void model_insert(model_t* m, const block_t* b) {
  size_t at = model_find(m, b->p);
  if (at > 0) {
    const block_t* before = &m->blocks[m->by_address[at - 1]];
    MODEL_CHECK(m, before->p + before->usable <= b->p, "%p+%zu runs into %p", (void*)before->p, before->usable,
                (void*)b->p);
  }
  if (at < m->n_live) {
    const block_t* after = &m->blocks[m->by_address[at]];
    MODEL_CHECK(m, b->p + b->usable <= after->p, "%p+%zu runs into %p", (void*)b->p, b->usable, (void*)after->p);
  }
  memmove(&m->by_address[at + 1], &m->by_address[at], (m->n_live - at) * sizeof(m->by_address[0]));
  m->by_address[at] = (uint32_t)m->n_live;
  m->blocks[m->n_live++] = *b;
  m->n_live_bytes += b->usable;
  if (m->n_live_bytes > m->n_peak_bytes) m->n_peak_bytes = m->n_live_bytes;
}

static inline void model_remove(model_t* m, size_t index) {
  size_t at = model_find(m, m->blocks[index].p);
  size_t last = m->n_live - 1;
  m->n_live_bytes -= m->blocks[index].usable;
  if (index != last) m->by_address[model_find(m, m->blocks[last].p)] = (uint32_t)index;
  memmove(&m->by_address[at], &m->by_address[at + 1], (last - at) * sizeof(m->by_address[0]));
  m->blocks[index] = m->blocks[last];
  m->n_live--;
}

// ---- operations -----------------------------------------------------------------------------------------------------

static inline void model_check_block(model_t* m, const block_t* b) {
  size_t wrong = pattern_check(b->p, b->size, b->key);
  MODEL_CHECK(m, wrong == b->size, "byte %zu of %zu at %p", wrong, b->size, (void*)b->p);
  MODEL_CHECK(m, mi_usable_size(b->p) == b->usable, "%zu of %p, was %zu", mi_usable_size(b->p), (void*)b->p, b->usable);
}

// Takes a fresh or resized block in: what must hold of its address and size, and the pattern up to `size`.
static inline void model_adopt(model_t* m, block_t* b, size_t n_kept, bool is_moved, const char* name) {
  b->usable = mi_usable_size(b->p);
  size_t asked = b->got == NULL ? b->size : get_asked(b->got, b->size);
  MODEL_CHECK(m, size_is_right(b->usable, asked), "%s(%zu) has %zu", name, b->size, b->usable);
  MODEL_CHECK(m, is_aligned(b->p + b->offset, b->alignment), "%s(%zu, %zu, %zu) at %p", name, b->size, b->alignment,
              b->offset, (void*)b->p);
  // A block may be used to its last usable byte; one of the zeroing family only as far as was asked.
  if (!b->is_zeroed && model_chance(m, 25)) b->size = b->usable;
  pattern_fill(b->p, n_kept < b->size ? n_kept : b->size, b->size, b->key);
  if (b->size > b->n_dirty) b->n_dirty = b->size;
  if (m->on_adopt != NULL) m->on_adopt(m->source, b, is_moved);
  model_insert(m, b);
}

static inline void model_get(model_t* m) {
  const get_t* g = &all_gets[model_pick(m, COUNT_OF(all_gets))];
  block_t      b = {0};
  b.alignment = (g->flags & E_ALIGN) != 0 ? model_alignment(m) : 8;
  b.offset = (g->flags & E_OFFSET) != 0 && model_chance(m, 50) ? model_pick(m, 300) : 0;
  b.size = (g->flags & E_SMALL) != 0 ? model_pick(m, MI_SMALL_SIZE_MAX + 1) : model_size(m);
  if (m->n_live == model_max_blocks || m->n_live_bytes + b.size > m->max_live_bytes) return;
  if (!get_allows(g, b.size, b.alignment, b.offset)) return;
  b.p = (uint8_t*)g->call(b.size, b.alignment, b.offset);
  MODEL_CHECK(m, b.p != NULL, "%s(%zu, %zu, %zu)", g->name, b.size, b.alignment, b.offset);
  if (b.p == NULL) return;
  if ((g->flags & E_ALIGN) == 0) b.alignment = b.size <= 8 ? 8 : 16;
  b.key = m->next(m->source);
  b.is_zeroed = (g->flags & E_ZERO) != 0;
  b.got = g;
  if (b.is_zeroed) MODEL_CHECK(m, is_zero(b.p, 0, b.size), "%s(%zu) at %p", g->name, b.size, (void*)b.p);
  model_adopt(m, &b, 0, true, g->name);
}

static inline void model_resize(model_t* m) {
  if (m->n_live == 0) return;
  size_t          index = model_pick(m, m->n_live);
  const resize_t* r = &all_resizes[model_pick(m, COUNT_OF(all_resizes))];
  block_t         b = m->blocks[index];
  size_t          old_size = b.size;
  bool            is_zeroing = (r->flags & E_ZERO) != 0;
  if (is_zeroing && !b.is_zeroed) return;
  size_t size = model_chance(m, 30) ? b.size + model_pick(m, 64) : model_size(m);
  if (size == 0 || m->n_live_bytes + size > m->max_live_bytes) return;
  size_t alignment = (r->flags & E_ALIGN) != 0 ? (size_t)16 << model_pick(m, 10) : 8;
  size_t offset = (r->flags & E_OFFSET) != 0 && model_chance(m, 50) ? model_pick(m, 300) : 0;
  model_check_block(m, &b);
  uint8_t* q = (uint8_t*)r->call(b.p, size, alignment, offset);
  MODEL_CHECK(m, q != NULL, "%s(%zu to %zu, %zu, %zu)", r->name, b.size, size, alignment, offset);
  if (q == NULL) return;
  size_t n_kept = old_size < size ? old_size : size;
  size_t wrong = pattern_check(q, n_kept, b.key);
  MODEL_CHECK(m, wrong == n_kept, "%s(%zu to %zu): byte %zu", r->name, old_size, size, wrong);
  if (is_zeroing && size > b.n_dirty) {
    MODEL_CHECK(m, is_zero(q, b.n_dirty, size), "%s(%zu to %zu) beyond %zu", r->name, old_size, size, b.n_dirty);
  }
  model_remove(m, index);
  // A plain resize may leave a block where it is, so one that was aligned at an offset need not be aligned itself.
  if ((r->flags & E_ALIGN) != 0) b.alignment = alignment;
  else b.alignment = q == b.p ? 1 : size <= 8 ? 8 : 16;
  bool is_moved = (q != b.p);
  b.offset = offset;
  b.p = q;
  b.size = size;
  b.is_zeroed = b.is_zeroed && is_zeroing;
  b.got = NULL;
  model_adopt(m, &b, n_kept, is_moved, r->name);
}

static inline void model_put_at(model_t* m, size_t index) {
  block_t      b = m->blocks[index];
  const put_t* put = &all_puts[model_pick(m, COUNT_OF(all_puts))];
  if (b.got == NULL ? put->flags != 0 : !put_allows(put, b.got)) put = &all_puts[0];
  model_check_block(m, &b);
  model_remove(m, index);
  put->call(b.p, MI_PADDING ? b.usable : b.size, b.alignment);
}

static inline void model_expand(model_t* m) {
  if (m->n_live == 0) return;
  size_t         index = model_pick(m, m->n_live);
  const block_t* b = &m->blocks[index];
  size_t         size = model_size(m);
  void*          q = mi_expand(b->p, size);
  MODEL_CHECK(m, q == NULL || (q == b->p && size <= mi_usable_size(b->p)), "expand of %p to %zu", (void*)b->p, size);
  model_check_block(m, b);
}

static inline void model_check_all(model_t* m) {
  for (size_t i = 0; i < m->n_live; i++) model_check_block(m, &m->blocks[i]);
}

static inline void model_clear(model_t* m) {
  while (m->n_live > 0) model_put_at(m, m->n_live - 1);
}

// ---- visits (M5) ----------------------------------------------------------------------------------------------------

// Others may have blocks of the heap, too: the C library.
static inline bool model_visit_block(const mi_heap_t* heap, const mi_heap_area_t* area, void* block, size_t block_size,
                                     void* arg) {
  model_t*       m = (model_t*)arg;
  const uint8_t* start = (const uint8_t*)block;
  (void)heap;
  (void)area;
  if (block == NULL) return true;
  size_t at = model_find(m, start);
  if (at == m->n_live) return true;
  block_t* b = &m->blocks[m->by_address[at]];
  // An aligned block may begin behind the start, and one of no bytes at the end.
  if (b->p >= start + block_size && !(b->p == start + block_size && b->usable == 0)) return true;
  b->n_seen++;
  MODEL_CHECK(m, b->p + b->size <= start + block_size, "visited %p+%zu, block %p+%zu", block, block_size, (void*)b->p,
              b->size);
  return true;
}

// The visit of a heap shows the blocks of this owner, and no others.
static inline void model_visit(model_t* m, mi_heap_t* heap, int owner) {
  for (size_t i = 0; i < m->n_live; i++) m->blocks[i].n_seen = 0;
  bool is_whole = mi_heap_visit_blocks(heap, true, &model_visit_block, m);
  MODEL_CHECK(m, is_whole, "the visit of %p has ended", (void*)heap);
  for (size_t i = 0; i < m->n_live; i++) {
    const block_t* b = &m->blocks[i];
    MODEL_CHECK(m, b->n_seen == (b->owner == owner), "%p+%zu of %zu, alignment %zu at %zu, seen %u times", (void*)b->p,
                b->size, b->usable, b->alignment, b->offset, b->n_seen);
  }
}

static inline void model_step(model_t* m) {
  size_t kind = model_pick(m, 1000);
  m->n_ops++;
  if (kind < 400) model_get(m);
  else if (kind < 600) model_resize(m);
  else if (kind < 950) {
    if (m->n_live > 0) model_put_at(m, model_pick(m, m->n_live));
  }
  else if (kind < 980) model_expand(m);
  else if (kind < 990) mi_collect(false);
  else if (kind < 992) mi_collect(true);
  else if (kind == 992) model_check_all(m);
  else if (kind == 993) model_visit(m, mi_heap_main(), 0);
  else if (kind < 999) {
    for (size_t i = 0; i < 300; i++) model_get(m);
  } // a ramp
  else {
    while (m->n_live > 0 && model_chance(m, 99)) model_put_at(m, model_pick(m, m->n_live));
  } // a slump
}
