// Resizing blocks that have a page of their own.  Layer: heap.
#include "large_resize.h"

#include <string.h>

#include "../arena/dense.h"
#include "../arena/purge_at_peak.h"
#include "../arena/recur.h"
#include "../support/stat.h"
#include "event.h"
#include "lost.h"

// From so many bytes on the system moves memory by its page tables rather than we by copying: two system calls and the
// faults of the new place cost about as much as copying 256 KiB.
#define RESIZE_REMAP_MIN       (256 * MI_KiB)
// ... unless the new place is backed already: then up to this size copying is cheaper than the faults that the memory
// which is given up for it will cost the next block (docs/decisions/005).  Nor if as much is free and backed elsewhere: a program
// that grows and frees would never use it (docs/decisions/044).
#define RESIZE_COPY_MAX        (8 * MI_MiB)
// Each moved block has kernel mappings of its own; the kernel allows 65530 in all.
#define RESIZE_REMAP_COUNT_MAX 1024

static void resize_set_slices(mi_page_t* page, size_t n) {
  _mi_stat_change(&_mi_stat_live.malloc_huge, ((int64_t)n - (int64_t)page->n_slices) * (int64_t)MI_SLICE_SIZE);
  _mi_heap_resize_page(page, n);
}

// What is behind n slices of a moved block becomes an ordinary mapping again.  Where the system refuses, the block keeps it, but not
// its memory.
static mi_remap_t resize_unremap_tail(const mi_page_t* page, size_t n) {
  char*      tail = _mi_page_start(page) + n * MI_SLICE_SIZE;
  size_t     size = (page->n_slices - n) * MI_SLICE_SIZE;
  mi_remap_t remap = _mi_prim_unremap(tail, size);
  if (remap == MI_REMAP_REFUSED) _mi_prim_purge(tail, size);
  return remap;
}

static void* resize_shrink(mi_page_t* page, size_t n) {
  mi_run_t   tail = {_mi_page_region(page), _mi_page_slice(page) + n, page->n_slices - n, false};
  bool       is_moved = _mi_page_has(page, MI_PAGE_REMAPPED);
  mi_remap_t remap = MI_REMAP_DONE;
  if (tail.n_slices == 0) return _mi_page_large_block(page);
  if (is_moved && (remap = resize_unremap_tail(page, n)) == MI_REMAP_REFUSED) return _mi_page_large_block(page);
  resize_set_slices(page, n);
  if (remap == MI_REMAP_DONE) _mi_slices_free(tail.region, tail.slice, tail.n_slices, is_moved);
  else _mi_lost_add(_mi_page_new_deleted(tail), remap);
  _mi_event_freed();
  return _mi_page_large_block(page);
}

// By the system, which moves it if there is no room; no contents are copied.  CLAIMED meanwhile: in the child of a fork nobody
// knows where it is.
static void* resize_mapped(mi_page_t* page, size_t n) {
  size_t offset = (size_t)(_mi_page_large_block(page) - _mi_page_large_start(page));
  if (n == page->n_slices) return _mi_page_large_block(page);
  mi_store_release(&page->word, _mi_page_word_make(MI_PAGE_CLAIMED, 0, NULL));
  bool ok = _mi_mapped_resize(page, n * MI_SLICE_SIZE);
  bool is_shrinking = (n < page->n_slices);
  if (ok) {
    page->block = _mi_page_large_start(page) + offset;
    resize_set_slices(page, n);
  }
  mi_store_release(&page->word, _mi_page_word_make(MI_PAGE_OWNED, 0, NULL));
  return ok || is_shrinking ? _mi_page_large_block(page) : NULL;
}

// Is it in slices, though it is so large that it could have a mapping?
static bool resize_is_recurring(const mi_page_t* page) {
  bool is_large = (page->n_slices > MI_LARGE_MAPPED_MIN / MI_SLICE_SIZE);
  return is_large && _mi_large_wants_mapping(page->n_slices, 1, _mi_heap_arena_of(page));
}

// What is not looked at when it is freed (large.c) has no part in the credit.  n_old: of the slices that had.
static void resize_count_growth(const mi_page_t* page, size_t n_old, size_t n) {
  bool is_looked_at = (!_mi_page_has(page, MI_PAGE_REMAPPED) && _mi_page_region(page)->origin == MI_REGION_OWN);
  if (is_looked_at) _mi_dense_grown(n_old * MI_SLICE_SIZE, n * MI_SLICE_SIZE);
}

static bool resize_extend(mi_page_t* page, size_t n, bool zero) {
  mi_run_t more = {_mi_page_region(page), _mi_page_slice(page) + page->n_slices, n - page->n_slices, false};
  if (!_mi_slices_extend(more.region, more.slice, more.n_slices, &more.is_zero)) return false;
  _mi_purge_at_peak();
  resize_count_growth(page, page->n_slices, n);
  if (zero && !more.is_zero) _mi_large_clear(&more);
  resize_set_slices(page, n);
  return true;
}

// A part of a place that is not to be had.  If that is LOST the part goes as well, so that all of it can be mapped again.
static void resize_give_up(char* to, size_t size, mi_remap_t remap) {
  if (remap != MI_REMAP_LOST || _mi_prim_release(to, size) != 0) _mi_prim_purge(to, size);
}

// Moves whole slices.  The system moves one mapping at a time: where a range has several, its halves are tried, and a few
// slices that cannot be moved are copied.  Never REFUSED.  *any_moved: not all of it was copied.
static mi_remap_t resize_move(char* from, char* to, size_t size, bool* any_moved) {
  mi_remap_t remap = _mi_prim_remap(from, to, size);
  if (remap != MI_REMAP_REFUSED) {
    *any_moved = true;
    return remap;
  }
  if (size <= RESIZE_REMAP_MIN) {
    memcpy(to, from, size);
    return MI_REMAP_DONE;
  }
  size_t half = mi_align_up(size / 2, MI_SLICE_SIZE);
  remap = resize_move(from, to, half, any_moved);
  if (remap != MI_REMAP_DONE) {
    resize_give_up(to + half, size - half, remap);
    return remap;
  }
  remap = resize_move(from + half, to + half, size - half, any_moved);
  if (remap == MI_REMAP_DONE) return remap;
  memcpy(from, to, half);
  resize_give_up(to, half, remap);
  return remap;
}

// False: the contents are where they were, and `to` is given up.  Where the system moves nothing, as kernels before 5.7, `to` is a page
// as any other.
static bool resize_move_page(mi_page_t* from, mi_page_t* to) {
  bool       any_moved = false;
  size_t     size = from->n_slices * MI_SLICE_SIZE;
  mi_remap_t remap = resize_move(_mi_page_start(from), _mi_page_start(to), size, &any_moved);
  if (remap != MI_REMAP_DONE) {
    _mi_large_lose(to, from, remap);
    return false;
  }
  if (!any_moved) return true;
  _mi_page_set(to, MI_PAGE_REMAPPED);
  mi_fetch_add_relaxed(&_mi_large_n_remapped, 1);
  return true;
}

static void* resize_remap(mi_page_t* page, size_t n, bool zero) {
  size_t n_old = page->n_slices;
  if (n_old * MI_SLICE_SIZE < RESIZE_REMAP_MIN || mi_load_relaxed(&_mi_large_n_remapped) >= RESIZE_REMAP_COUNT_MAX)
    return NULL;
  if (_mi_page_large_block(page) != _mi_page_start(page)) return NULL;
  _mi_lost_retry();
  // What is moved is likely to grow again: an eighth more makes that cheap, and is address space only, or a part of a huge page.  A heap
  // with a limit was asked for n.
  size_t       n_more = (_mi_limit_is_set(&_mi_heap_of(page)->limit) ? 0 : n / 8);
  size_t       arena = _mi_heap_arena_of(page);
  size_t       size = n_old * MI_SLICE_SIZE;
  // What is dense stays among huge pages: elsewhere its memory would be missing there.
  mi_request_t request = (_mi_page_region(page)->is_huge ? MI_REQUEST_DENSE : MI_REQUEST_GROWN);
  mi_run_t     run = _mi_slices_alloc_moved(n + n_more, 1, request, arena, size);
  if (run.region == NULL) run = _mi_slices_alloc_moved(n, 1, request, arena, size);
  if (run.region == NULL) return NULL;
  if (zero && !run.is_zero) {
    mi_run_t tail = {run.region, run.slice + n_old, run.n_slices - n_old, false};
    _mi_large_clear(&tail);
  }
  mi_page_t* moved = _mi_large_add(NULL, page, _mi_page_new_large(run, 0, 0));
  if (moved == NULL) return NULL;
  bool is_fixed = (run.region->is_fixed || _mi_page_region(page)->is_fixed);
  // In a huge-page region it is backed, and what is mapped there anew would not ask for huge pages any more.
  bool is_backed = (!run.is_zero && n_old * MI_SLICE_SIZE <= RESIZE_COPY_MAX) || run.region->is_huge;
  if (is_fixed || is_backed || _mi_chunk_purgeable() >= n_old) {
    memcpy(_mi_page_start(moved), _mi_page_start(page), n_old * MI_SLICE_SIZE);
  }
  else if (!resize_move_page(page, moved)) {
    return NULL;
  }
  moved->keeper = page->keeper;
  resize_count_growth(moved, _mi_page_has(page, MI_PAGE_REMAPPED) ? 0 : n_old, moved->n_slices);
  _mi_large_free_moved(page);
  _mi_limit_settle();
  return _mi_page_large_block(moved);
}

// A part at a time, of which the old memory goes back at once: there is never twice the memory.
static void resize_copy_out(char* from, char* to, size_t size) {
  for (size_t at = 0, part; at < size; at += part) {
    part = mi_min(size - at, MI_CHUNK_SIZE);
    memcpy(to + at, from + at, part);
    _mi_prim_purge(from + at, part);
  }
}

// A page with a mapping of its own and the contents of the other: moved by the system or, if they lie in several mappings
// (after resize_remap, or by calls of the program), copied, once in the life of a block: one mapping can be resized.
static mi_page_t* resize_new_moved(mi_page_t* page, size_t n) {
  size_t size = page->n_slices * MI_SLICE_SIZE;
  void*  descriptor = NULL;
  if (n > UINT32_MAX) return NULL;
  if (!_mi_page_has(page, MI_PAGE_REMAPPED))
    descriptor = _mi_mapped_new_from(_mi_page_start(page), size, n * MI_SLICE_SIZE);
  if (descriptor != NULL) {
    _mi_page_set(page, MI_PAGE_IS_ZERO);
  }
  else {
    if ((descriptor = _mi_large_map(n, 1)) == NULL) return NULL;
    resize_copy_out(_mi_page_start(page), _mi_mapped_start(descriptor), size);
  }
  return _mi_page_new_mapped(descriptor, n, 0);
}

// A recurring block: what is new costs least in a mapping, and grows best there, but serves no other block when it is freed.
static bool resize_may_stay(const mi_page_t* page, size_t n) {
  return _mi_chunk_purgeable() >= n - page->n_slices || n * MI_SLICE_SIZE >= _mi_recur_largest();
}

// The block gets a mapping of its own.  NULL when it cannot have one, or comes again.
static void* resize_move_out(mi_page_t* page, size_t n) {
  bool is_plain = (_mi_page_large_block(page) == _mi_page_start(page) && !_mi_region_is_arena(_mi_page_region(page)));
  if (!is_plain || !_mi_large_wants_mapping(n, 1, _mi_heap_arena_of(page))) return NULL;
  if (_mi_recur_takes_slices(n * MI_SLICE_SIZE) && resize_may_stay(page, n)) return NULL;
  mi_page_t* moved = resize_new_moved(page, n);
  if (moved == NULL) return NULL;
  _mi_large_add(NULL, page, moved); // it has its heap link, so this does not fail
  _mi_large_free_moved(page);
  return _mi_page_large_block(moved);
}

// What the thread keeps may lie where the block could grow, and is memory that it could be copied to.
static bool resize_drop_kept(void) {
  mi_theap_t* thread = _mi_theap_backing();
  if (thread == NULL || !_mi_large_drop_kept(thread)) return false;
  _mi_event_freed();
  return true;
}

void* _mi_large_resize(mi_page_t* page, size_t new_size, bool zero) {
  size_t adjust = (size_t)(_mi_page_large_block(page) - _mi_page_large_start(page));
  if (new_size > (size_t)PTRDIFF_MAX - adjust - MI_SLICE_SIZE) return NULL;
  size_t n = mi_div_up(mi_max(new_size, 1) + adjust, MI_SLICE_SIZE);
  if (n > UINT32_MAX || !_mi_heap_may_grow(page, n)) return NULL;
  if (_mi_page_is_mapped(page)) return resize_mapped(page, n);
  if (n <= page->n_slices) return resize_shrink(page, n);
  if (resize_is_recurring(page) && resize_extend(page, n, zero)) return _mi_page_large_block(page);
  void* moved = resize_move_out(page, n);
  if (moved != NULL) return moved;
  if (resize_extend(page, n, zero)) return _mi_page_large_block(page);
  if (resize_drop_kept() && resize_extend(page, n, zero)) return _mi_page_large_block(page);
  return resize_remap(page, n, zero);
}
