// Blocks that have a page of their own.  Layer: heap.
#include "large.h"

#include <string.h>

#include "../arena/purge.h"
#include "../base/probe.h"
#include "../support/option.h"
#include "../support/stat.h"
#include "guard.h"

// From so many bytes on the system moves memory by its page tables rather than we by copying: two system calls and the
// faults of the new place cost about as much as copying 256 KiB.
#define LARGE_REMAP_MIN       (256 * MI_KiB)
// ... unless the new place is backed already: then up to this size copying is cheaper than the faults that the memory
// which is given up for it will cost the next block (docs/decisions/005).
#define LARGE_COPY_MAX        (8 * MI_MiB)
// Each moved block has kernel mappings of its own; the kernel allows 65530 in all.
#define LARGE_REMAP_COUNT_MAX 1024
// What does not fit well into a region gets one of its own.
#define LARGE_ALIGN_MAX       (32 * MI_MiB)

// What a thread may keep (L3): 4 MiB.
#define LARGE_KEEP_SLICES 64

static mi_atomic(size_t) large_n_remapped;

static size_t large_slices(size_t size) {
  return mi_div_up(size, MI_SLICE_SIZE);
}

// A region for this block alone.  Caller holds the arena lock.
static mi_region_t* large_region(size_t n, size_t align) {
  mi_region_t* region = _mi_region_add(n * MI_SLICE_SIZE, align, true);
  if (region == NULL && _mi_slices_release_regions()) region = _mi_region_add(n * MI_SLICE_SIZE, align, true);
  if (region == NULL || _mi_region_open(region, region->n_chunks)) return region;
  _mi_region_remove(region);
  return NULL;
}

static mi_run_t large_run(size_t n, size_t align, size_t arena) {
  bool is_bound = _mi_arena_is_bound(arena);
  if (align <= LARGE_ALIGN_MAX && (is_bound || n <= _mi_regions[0].n_chunks * MI_CHUNK_SLICES / 2)) {
    return _mi_slices_alloc(n, mi_max(1, align >> MI_SLICE_SHIFT), MI_CHUNK_MIXED, arena);
  }
  mi_run_t run = {NULL, 0, n, true};
  if (n > UINT32_MAX || is_bound) return run;
  _mi_lock_acquire(&_mi_arena_lock);
  run.region = large_region(n, align);
  _mi_lock_release(&_mi_arena_lock);
  return run;
}

// Clears the slices of a run that may hold something.
static void large_clear(const mi_run_t* run) {
  for (size_t i = 0, n_zero; i < run->n_slices; i += n_zero) {
    size_t n_dirty = _mi_slices_skip_dirty(run->region, run->slice + i, run->n_slices - i, &n_zero);
    if (MI_TRACK) mi_track_writable(_mi_region_slice_start(run->region, run->slice + i), n_dirty * MI_SLICE_SIZE);
    memset(_mi_region_slice_start(run->region, run->slice + i), 0, n_dirty * MI_SLICE_SIZE);
    i += n_dirty;
  }
}

// The page is CLAIMED, and in no list of a heap any more.
static void large_give_back_slices(mi_page_t* page) {
  mi_region_t* region = _mi_page_region(page);
  size_t       slice = _mi_page_slice(page);
  size_t       n = page->n_slices;
  bool         is_clean = false;
  if (_mi_page_has(page, MI_PAGE_REMAPPED)) {
    is_clean = (_mi_prim_unremap(_mi_page_start(page), n * MI_SLICE_SIZE) == 0);
    _mi_page_clear(page, MI_PAGE_REMAPPED);
    mi_fetch_sub_relaxed(&large_n_remapped, 1);
  }
  if (MI_TRACK) mi_track_closed(_mi_page_start(page), n * MI_SLICE_SIZE);
  _mi_page_delete_large(page);
  if (region->is_single) {
    _mi_lock_acquire(&_mi_arena_lock);
    _mi_region_remove(region);
    _mi_lock_release(&_mi_arena_lock);
  }
  else {
    _mi_slices_free(region, slice, n, is_clean);
  }
}

// The page is CLAIMED: gives it back to the arena.
static void large_give_back(mi_page_t* page) {
  if (_mi_page_has(page, MI_PAGE_IN_HEAP)) _mi_heap_remove_page(page);
  if (_mi_page_has(page, MI_PAGE_GUARDED)) {
    _mi_guard_free(page);
    return;
  }
  large_give_back_slices(page);
  _mi_purge_schedule(false);
}

void _mi_large_forget(mi_page_t* page) {
  _mi_heap_forget_page(page);
  large_give_back_slices(page);
}

// The page of a new block of the heap, or (NULL) of the heap of another block.  NULL when out of memory, and then the run is
// given back.
static mi_page_t* large_page(mi_heap_t* heap, const mi_page_t* other, const mi_run_t* run, size_t offset) {
  mi_page_t* page = _mi_page_new_large(*run, offset, 0);
  if (heap != NULL ? !_mi_heap_add_page(heap, page) : !_mi_heap_add_page_beside(other, page)) {
    large_give_back(page);
    return NULL;
  }
  mi_store_release(&page->word, page_word_make(MI_PAGE_OWNED, 0, NULL));
  _mi_stat_increase(&_mi_stats.malloc_huge, (int64_t)(run->n_slices * MI_SLICE_SIZE));
  return page;
}

void* _mi_large_malloc(mi_heap_t* heap, size_t size, size_t align, size_t offset, bool zero) {
  // Pages start at multiples of `align`, so the block starts where adding `offset` makes one again.
  size_t adjust = (align - (offset & (align - 1))) & (align - 1);
  if (size > (size_t)PTRDIFF_MAX - adjust - MI_SLICE_SIZE) return NULL;
  mi_run_t run = large_run(large_slices(mi_max(size, 1) + adjust), align, mi_load_relaxed(&heap->arena));
  if (run.region == NULL) return NULL;
  if (zero && !run.is_zero) large_clear(&run);
  mi_page_t* page = large_page(heap, NULL, &run, adjust);
  if (page == NULL) return NULL;
  _mi_stat_count(&_mi_stats.malloc_huge_count, 1);
  return _mi_page_large_block(page);
}

static bool large_may_keep(const mi_page_t* page) {
  return !MI_TRACK && page->n_slices <= LARGE_KEEP_SLICES &&
         !_mi_page_has(page, MI_PAGE_REMAPPED | MI_PAGE_IN_HEAP | MI_PAGE_GUARDED) &&
         _mi_page_large_block(page) == _mi_page_start(page) && !mi_load_relaxed(&_mi_option_purges_at_once);
}

bool _mi_large_free(mi_theap_t* theap, mi_page_t* page) {
  // acq_rel: of two frees at the same time one wins, and what the other threads wrote to the block is over.
  uint64_t claimed = page_word_make(MI_PAGE_CLAIMED, 0, NULL);
  if (_mi_page_kind(page) != MI_PAGE_LARGE || mi_exchange_acq_rel(&page->word, claimed) == claimed) return false;
  _mi_stat_decrease(&_mi_stats.malloc_huge, (int64_t)(page->n_slices * MI_SLICE_SIZE));
  MI_PROBE2(large_free, page->free, page->n_slices);
  if (theap != NULL && large_may_keep(page)) {
    page = mi_exchange_acq_rel(&theap->kept_large, page);
    mi_store_relaxed(&theap->presence, (uint32_t)MI_THEAP_OUTSIDE); // the background thread shall look here again
  }
  if (page != NULL) large_give_back(page);
  return true;
}

void _mi_large_discard(mi_page_t* page) {
  if (MI_TRACK) mi_track_unblock(_mi_page_large_block(page));
  _mi_stat_decrease(&_mi_stats.malloc_huge, (int64_t)(page->n_slices * MI_SLICE_SIZE));
  mi_store_relaxed(&_mi_page_owner(page)->heap, (mi_heap_t*)NULL); // heap.h, Q7
  if (_mi_page_has(page, MI_PAGE_GUARDED)) _mi_guard_free(page);
  else large_give_back_slices(page);
}

void* _mi_large_malloc_kept(mi_theap_t* theap, size_t size, bool zero) {
  if (mi_load_relaxed(&theap->kept_large) == NULL) return NULL;
  mi_page_t* page = mi_exchange_acq_rel(&theap->kept_large, (mi_page_t*)NULL); // or the background thread was faster
  if (page == NULL) return NULL;
  size_t n = large_slices(size);
  if (n > page->n_slices || page->n_slices > n + n / 4) {
    mi_store_release(&theap->kept_large, page);
    return NULL;
  }
  void* p = _mi_page_large_block(page);
  if (zero) memset(p, 0, page->n_slices * MI_SLICE_SIZE);
  _mi_page_clear(page, MI_PAGE_IS_ZERO);
  _mi_stat_increase(&_mi_stats.malloc_huge, (int64_t)(page->n_slices * MI_SLICE_SIZE));
  mi_store_release(&page->word, page_word_make(MI_PAGE_OWNED, 0, NULL));
  return p;
}

void _mi_large_drop_kept(mi_theap_t* theap) {
  mi_page_t* page = mi_exchange_acq_rel(&theap->kept_large, (mi_page_t*)NULL);
  if (page != NULL) large_give_back(page);
}

// ---- resizing -------------------------------------------------------------------------------------------------------

static void large_set_slices(mi_page_t* page, size_t n) {
  int64_t added = ((int64_t)n - (int64_t)page->n_slices) * (int64_t)MI_SLICE_SIZE;
  if (added > 0) _mi_stat_increase(&_mi_stats.malloc_huge, added);
  else _mi_stat_decrease(&_mi_stats.malloc_huge, -added);
  page->n_slices = (uint32_t)n;
}

static void* large_shrink(mi_page_t* page, size_t n) {
  size_t n_old = page->n_slices;
  if (n == n_old) return _mi_page_large_block(page);
  // A moved block keeps its tail: only as a whole does it become an ordinary mapping again.
  if (!_mi_page_has(page, MI_PAGE_REMAPPED)) {
    large_set_slices(page, n);
    _mi_slices_free(_mi_page_region(page), _mi_page_slice(page) + n, n_old - n, false);
    _mi_purge_schedule(false);
  }
  return _mi_page_large_block(page);
}

static bool large_extend(mi_page_t* page, size_t n, bool zero) {
  mi_run_t more = {_mi_page_region(page), _mi_page_slice(page) + page->n_slices, n - page->n_slices, false};
  if (!_mi_slices_extend(more.region, more.slice, more.n_slices, &more.is_zero)) return false;
  if (zero && !more.is_zero) large_clear(&more);
  large_set_slices(page, n);
  return true;
}

// Moves whole slices.  The system moves one mapping at a time: where a range has several, its halves are tried, and a
// single slice that cannot be moved is copied.
static void large_move(char* from, char* to, size_t size) {
  if (_mi_prim_remap(from, to, size) == 0) return;
  if (size <= LARGE_REMAP_MIN) {
    memcpy(to, from, size);
    return;
  }
  size_t half = mi_align_up(size / 2, MI_SLICE_SIZE);
  large_move(from, to, half);
  large_move(from + half, to + half, size - half);
}

static void* large_remap(mi_page_t* page, size_t n, bool zero) {
  size_t n_old = page->n_slices;
  if (n_old * MI_SLICE_SIZE < LARGE_REMAP_MIN || mi_load_relaxed(&large_n_remapped) >= LARGE_REMAP_COUNT_MAX)
    return NULL;
  if (_mi_page_large_block(page) != _mi_page_start(page) || _mi_page_region(page)->is_single) return NULL;
  // What is moved is likely to grow again: an eighth more makes that cheap, and is address space only.
  size_t   arena = _mi_page_arena(page);
  mi_run_t run = _mi_slices_alloc(n + n / 8, 1, MI_CHUNK_MIXED, arena);
  if (run.region == NULL) run = _mi_slices_alloc(n, 1, MI_CHUNK_MIXED, arena);
  if (run.region == NULL) return NULL;
  if (zero && !run.is_zero) {
    mi_run_t tail = {run.region, run.slice + n_old, run.n_slices - n_old, false};
    large_clear(&tail);
  }
  mi_page_t* moved = large_page(NULL, page, &run, 0);
  if (moved == NULL) return NULL;
  bool is_fixed = (run.region->is_fixed || _mi_page_region(page)->is_fixed);
  if (is_fixed || (!run.is_zero && n_old * MI_SLICE_SIZE <= LARGE_COPY_MAX)) {
    memcpy(_mi_page_start(moved), _mi_page_start(page), n_old * MI_SLICE_SIZE);
  }
  else {
    large_move(_mi_page_start(page), _mi_page_start(moved), n_old * MI_SLICE_SIZE);
    _mi_page_set(moved, MI_PAGE_REMAPPED);
    mi_fetch_add_relaxed(&large_n_remapped, 1);
  }
  _mi_large_free(NULL, page);
  return _mi_page_large_block(moved);
}

void* _mi_large_realloc(mi_page_t* page, size_t new_size, bool zero) {
  size_t adjust = (size_t)(_mi_page_large_block(page) - _mi_page_start(page));
  if (new_size > (size_t)PTRDIFF_MAX - adjust - MI_SLICE_SIZE) return NULL;
  size_t n = large_slices(mi_max(new_size, 1) + adjust);
  if (n > UINT32_MAX) return NULL;
  if (n <= page->n_slices) return large_shrink(page, n);
  if (_mi_page_region(page)->is_single) return NULL;
  if (large_extend(page, n, zero)) return _mi_page_large_block(page);
  return large_remap(page, n, zero);
}
