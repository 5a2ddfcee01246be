// Adding memory where it only grows.  Layer: arena.
#include "window.h"

#include <string.h>

#include "../support/stat.h"
#include "limit.h"
#include "reserve.h"
#include "space.h"

// The first window, where memory only grows: what describes it takes 33 KiB.
#define WINDOW_MIN (16 * MI_CHUNK_SIZE)

// As large as the steps of a large program may be: 32 MiB.
#define WINDOW_AHEAD_MAX ((32 * MI_MiB) / MI_SLICE_SIZE)

// Requests of which it holds fewer get no memory ahead: where sizes vary, pieces of it would stay that nothing fits into.
#define WINDOW_AHEAD_RUNS 8

// The system may give memory elsewhere than behind the last, and may do so once more.
#define WINDOW_TRIES 3

static size_t    window_n_there; // slices of all windows
static uintptr_t window_end;     // where the last piece of memory ended

static mi_region_t* window_find(uintptr_t start) {
  mi_region_t* region = &_mi_region_all[0];
  while (region != NULL && (start - region->base) >> MI_SLICE_SHIFT >= region->n_slices) region = region->next;
  return region;
}

// How many slices before `window_end` are free, as far as they are in one window.
static size_t window_tail(void) {
  const mi_region_t* region = window_find(window_end - 1);
  size_t             n = 0;
  if (region == NULL) return 0;
  for (size_t slice = (window_end - region->base) >> MI_SLICE_SHIFT; slice > 0; slice--, n++) {
    const mi_chunk_t* chunk = &region->chunks[(slice - 1) / MI_CHUNK_SLICES];
    if (((chunk->free_bits >> ((slice - 1) % MI_CHUNK_SLICES)) & 1) == 0) break;
  }
  return n;
}

// ---- making windows ---------------------------------------------------------------------------------------------------

// As large as all that there are, so that they stay few; and where a large block wants one, what is small comes behind it.
static size_t window_size(size_t n_slices) {
  size_t size = mi_align_up(n_slices * MI_SLICE_SIZE, MI_CHUNK_SIZE), have = 0;
  for (const mi_region_t* region = &_mi_region_all[0]; region != NULL; region = region->next)
    have += region->n_slices * MI_SLICE_SIZE;
  return mi_max(have, size > WINDOW_MIN / 2 ? size + WINDOW_MIN : WINDOW_MIN);
}

// It ends where addresses do, or the next one above begins.
static size_t window_limit(uintptr_t start) {
  size_t size = mi_align_down((uintptr_t)0 - start - 1, MI_SLICE_SIZE) + MI_SLICE_SIZE;
  for (size_t i = 0; i < _mi_region_count(); i++) {
    uintptr_t base = _mi_region_all[i].base;
    if (base > start) size = mi_min(size, base - start);
  }
  return size;
}

static size_t window_cost(size_t n_slices) {
  return _mi_reserve_layout(mi_div_up(window_size(n_slices), MI_CHUNK_SIZE), false).heap_links;
}

// Whoever has an address behind them has got it later, and so sees this, too (R1).
static void window_cut(mi_region_t* region, size_t n) {
  mi_store_growing(&region->n_slices, n);
  if (region != &_mi_region_all[0]) _mi_region_publish(region, region->base, n);
}

// Heap links come with the first heap that needs them.
static mi_region_t* window_make(void* start, size_t n_slices) {
  bool                is_first = (_mi_region_all[0].base == 0);
  mi_region_t*        region = (is_first ? &_mi_region_all[0] : _mi_space_find_entry());
  size_t              size = mi_min(window_size(n_slices), window_limit((uintptr_t)start));
  size_t              n_chunks = mi_div_up(size, MI_CHUNK_SIZE);
  mi_reserve_layout_t at = _mi_reserve_layout(n_chunks, false);
  mi_region_t         made;
  void*               table;
  if (region == NULL || _mi_prim_reserve(at.heap_links, MI_DESCRIPTOR_SIZE, &table) != 0) return NULL;
  memset(&made, 0, sizeof(made));
  if (!_mi_reserve_describe(&made, start, n_chunks, (char*)table, &at)) {
    _mi_prim_release(table, at.heap_links);
    return NULL;
  }
  made.n_slices = size >> MI_SLICE_SHIFT;
  made.heap_links = NULL;
  made.n_usable = 0;
  made.is_pinned = made.is_fixed = true;
  if (!is_first) return _mi_space_install(region, &made);
  *region = made;
  return region;
}

// ---- adding memory ----------------------------------------------------------------------------------------------------

// The slices of a window from `slice` on are there.
static void window_put(mi_region_t* region, size_t slice, size_t n) {
  size_t end = mi_div_up(slice + n, MI_CHUNK_SLICES);
  for (size_t i = region->n_used; i < end; i++) region->chunks[i].kind = MI_CHUNK_MIXED; // and nothing is free
  if (end > region->n_used) region->n_used = region->n_usable = region->n_open = end;
  window_n_there += n;
  _mi_region_count_committed(region, (int64_t)(n * MI_SLICE_SIZE));
  _mi_stat_increase(&_mi_stat_live.reserved, (int64_t)(n * MI_SLICE_SIZE));
  for (size_t part; n > 0; slice += part, n -= part) {
    size_t at = slice % MI_CHUNK_SLICES;
    part = mi_min(n, MI_CHUNK_SLICES - at);
    _mi_chunk_put(region, slice / MI_CHUNK_SLICES, mi_mask32(part) << at, MI_CONTENTS_ZERO);
  }
}

// n slices count before they are there (WI6).
static bool window_count(size_t n) {
  return _mi_limit_add(&_mi_limit_process, n * MI_SLICE_SIZE, 0);
}

static void window_uncount(size_t n) {
  _mi_limit_remove(&_mi_limit_process, n * MI_SLICE_SIZE);
}

// n slices from the system that are counted.
static bool window_get(size_t n, void** start) {
  if (_mi_prim_reserve(n * MI_SLICE_SIZE, MI_SLICE_SIZE, start) == 0) return true;
  window_uncount(n);
  return false;
}

// A piece of memory may reach from one window into the next.  A new one has room for n_run slices.
static bool window_add(char* start, size_t n, size_t n_run) {
  while (n > 0) {
    mi_region_t* region = window_find((uintptr_t)start);
    if (region == NULL && (region = window_make(start, n_run)) == NULL) {
      _mi_prim_release(start, n * MI_SLICE_SIZE);
      window_uncount(n);
      return false;
    }
    size_t slice = _mi_region_slice_index(region, start);
    size_t part = mi_min(n, region->n_slices - slice);
    window_put(region, slice, part);
    start += part * MI_SLICE_SIZE;
    window_end = (uintptr_t)start;
    n -= part;
  }
  return true;
}

// An eighth ahead, but only of small requests: a large one says nothing about the next.
static bool window_take(size_t n, size_t n_run, size_t room) {
  size_t ahead = mi_min(mi_min(window_n_there / 8, WINDOW_AHEAD_MAX), room - n);
  void*  start;
  if (n_run > ahead / WINDOW_AHEAD_RUNS || !_mi_limit_allows((n + ahead) * MI_SLICE_SIZE)) ahead = 0;
  bool ok = window_count(n + ahead) && window_get(n + ahead, &start);
  if (!ok && ahead > 0) ok = window_count(n) && window_get(n + (ahead = 0), &start);
  return ok && window_add((char*)start, n + ahead, n_run);
}

// The same where a new window has to begin: the one in which memory ended ends there.  What describes the new one must not lie
// between its pieces, so its place is kept before memory is taken.
static bool window_take_new(size_t n) {
  mi_region_t* last = window_find(window_end - 1);
  size_t       cost = window_cost(n);
  void *       place, *start;
  if (!window_count(n)) return false;
  if (_mi_prim_reserve(cost, MI_DESCRIPTOR_SIZE, &place) != 0) {
    window_uncount(n);
    return false;
  }
  bool ok = window_get(n, &start);
  _mi_prim_release(place, cost);
  if (!ok) return false;
  if (last != NULL) window_cut(last, (window_end - last->base) >> MI_SLICE_SHIFT);
  return window_add((char*)start, n, n);
}

// How many slices can be added to the window in which memory ends.
static size_t window_room(void) {
  const mi_region_t* last = window_find(window_end - 1);
  return last == NULL ? 0 : last->n_slices - ((window_end - last->base) >> MI_SLICE_SHIFT);
}

// ---- who may have more ------------------------------------------------------------------------------------------------

static mi_atomic(size_t) window_n_open;

void _mi_window_open(void) {
  mi_fetch_add_relaxed(&window_n_open, 1);
}

void _mi_window_close(void) {
  mi_fetch_sub_relaxed(&window_n_open, 1);
}

bool _mi_window_is_open(void) {
  return mi_load_relaxed(&window_n_open) != 0;
}

bool _mi_window_grow(size_t n) {
  size_t tail = window_tail();
  for (int i = 0; tail < n && i < WINDOW_TRIES; i++) {
    size_t room = window_room();
    if (!(n - tail <= room ? window_take(n - tail, n, room) : window_take_new(n))) return false;
    tail = window_tail();
  }
  return tail >= n;
}
