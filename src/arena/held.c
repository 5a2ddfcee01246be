// Mappings that wait for the next large block.  Layer: arena.  held.h has the invariants.
#include "held.h"

#include "../base/bits.h"

#define HELD_MAX       16  // mappings
#define HELD_RECALL_MS 200 // HM1
#define HELD_MS_MIB    10  // HM1, decision 46

mi_atomic(size_t)  _mi_held_n; // written under the lock, as all that follows
static mi_range_t* held_first;
static size_t      held_size;      // of all that are held
static size_t      held_most;      // HM3
static size_t      held_unmapped;  // what went back lately and was not mapped again
static int64_t     held_last_gone; // when
static int64_t     held_until;     // the end of the hold

static void held_recall(size_t size, int64_t now) {
  int64_t from = (held_until > now ? held_until : now);
  held_until = _mi_recall_until(from, now, size / MI_SLICE_SIZE, HELD_MS_MIB);
}

static bool held_is_lately(int64_t now) {
  return held_unmapped > 0 && now - held_last_gone < HELD_RECALL_MS;
}

static bool held_has_place(size_t size, size_t n_used) {
  return mi_load_relaxed(&_mi_held_n) < HELD_MAX && held_size + n_used + size <= held_most; // HM3
}

bool _mi_held_wants(size_t size, size_t n_used, int64_t now) {
  if (now < held_until) {
    held_most = mi_max(held_most, n_used + size);
    return held_has_place(size, n_used);
  }
  held_unmapped = (held_is_lately(now) ? held_unmapped : 0) + size;
  held_last_gone = now;
  held_most = 0;
  return false;
}

bool _mi_held_push(mi_range_t* range, size_t n_used) {
  if (!held_has_place(range->size, n_used)) return false;
  range->right = held_first;
  held_first = range;
  held_size += range->size;
  mi_store_relaxed(&_mi_held_n, mi_load_relaxed(&_mi_held_n) + 1);
  return true;
}

// Takes the one that `*at` leads to.
static mi_range_t* held_unlink(mi_range_t** at) {
  mi_range_t* range = *at;
  *at = range->right;
  held_size -= range->size;
  mi_store_relaxed(&_mi_held_n, mi_load_relaxed(&_mi_held_n) - 1);
  return range;
}

// HM4
static bool held_is_better(const mi_range_t* range, const mi_range_t* best, size_t size) {
  if (range->size >= size) return best->size < size || range->size < best->size;
  return range->size > best->size;
}

mi_range_t* _mi_held_take(size_t size, size_t n_used, int64_t now) {
  if (held_first == NULL) {
    if (!held_is_lately(now)) return NULL;
    size_t n = mi_min(size, held_unmapped);
    held_unmapped -= n;
    held_recall(n, now);
    held_most = mi_max(held_most, n_used + size);
    return NULL;
  }
  mi_range_t** best = &held_first;
  for (mi_range_t** at = &held_first->right; *at != NULL; at = &(*at)->right) {
    if (held_is_better(*at, *best, size)) best = at;
  }
  mi_range_t* range = held_unlink(best);
  if (range->size >= size) held_recall(size, now);
  held_most = mi_max(held_most, n_used + size);
  return range;
}

mi_range_t* _mi_held_pop(int64_t now) {
  return held_first == NULL || now < held_until ? NULL : held_unlink(&held_first);
}

bool _mi_held_is_room(size_t n_used) {
  return held_size + n_used <= held_most + held_most / 8;
}
