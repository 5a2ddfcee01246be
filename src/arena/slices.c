// Handing out slices, under one lock: it is taken once per 64 KiB or more of use.  Layer: arena.
#include "slices.h"

#include "../support/assert.h"
#include "../support/option.h"
#include "commit.h"
#include "numa.h"
#include "space.h"
#include "window.h"

// So many chunks of region 0 were used before the first huge-page chunk is opened.
#define CHUNK_HUGE_FROM 4

// Fewer chunks are not worth unmapping: 32 MiB.
#define SLICES_SHRINK_MIN 16

// ---- taking and putting slices --------------------------------------------------------------------------------------

// The part of [slice, slice + n) that lies in the chunk of `slice`, as bits; *n_part is its length.
static uint32_t chunk_part(size_t slice, size_t n, size_t* n_part) {
  size_t at = slice % MI_CHUNK_SLICES;
  *n_part = mi_min(n, MI_CHUNK_SLICES - at);
  return mi_mask32(*n_part) << at;
}

// How many slices were ever handed out that were not backed, and that were; under the arena lock.
static mi_atomic(size_t) slices_n_fresh, slices_n_reused;

static void slices_count(uint32_t bits, uint32_t dirty) {
  size_t n_reused = mi_popcount32(bits & dirty);
  mi_store_relaxed(&slices_n_reused, mi_load_relaxed(&slices_n_reused) + n_reused);
  mi_store_relaxed(&slices_n_fresh, mi_load_relaxed(&slices_n_fresh) + mi_popcount32(bits) - n_reused);
}

static bool slices_take(mi_region_t* region, size_t slice, size_t n, mi_chunk_kind_t kind) {
  bool is_zero = true;
  for (size_t part; n > 0; slice += part, n -= part) {
    uint32_t bits = chunk_part(slice, n, &part);
    size_t   i = slice / MI_CHUNK_SLICES;
    if (((region->chunks[i].dirty_bits | region->chunks[i].stale_bits) & bits) != 0) is_zero = false;
    slices_count(bits, region->chunks[i].dirty_bits);
    _mi_chunk_take(region, i, bits, kind);
  }
  return is_zero;
}

// Caller holds the arena lock.
static void slices_put(mi_region_t* region, size_t slice, size_t n, mi_chunk_hold_t hold) {
  for (size_t part; n > 0; slice += part, n -= part) {
    uint32_t bits = chunk_part(slice, n, &part);
    _mi_chunk_put(region, slice / MI_CHUNK_SLICES, bits, hold);
  }
}

void _mi_slices_put(mi_region_t* region, size_t slice, size_t n, mi_chunk_hold_t hold) {
  _mi_lock_acquire(&_mi_region_lock);
  slices_put(region, slice, n, hold);
  _mi_lock_release(&_mi_region_lock);
}

// ---- allocation -----------------------------------------------------------------------------------------------------

// Where n <= 32 slices start in a partly used chunk that has them.  Backed slices first: they cost no page fault.
static size_t chunk_place(const mi_chunk_t* chunk, size_t n) {
  uint32_t backed = mi_runs32(chunk->free_bits & chunk->dirty_bits, n);
  return mi_ctz32(backed != 0 ? backed : mi_runs32(chunk->free_bits, n));
}

// The first of n free slices in chunks that are partly used, SIZE_MAX if there are none.  What is backed comes first: it
// costs no page fault, and leaves the peak of memory as it is.  But a large block that grows needs room behind it: runs of
// any length stay together (grow: 49 MiB instead of 62), and wholly free chunks of region 0 are not broken for what is
// backed (grow: 49 MiB instead of 145); those of huge-page regions are, since no large block looks for room there.
static size_t slices_find_used(const mi_region_t* region, size_t n, mi_chunk_kind_t kind) {
  size_t i = SIZE_MAX;
  if (n > MI_CHUNK_SLICES) return SIZE_MAX;
  if (kind != MI_CHUNK_MIXED) i = _mi_chunk_fullest(region, MI_CHUNK_BY_BACKED, kind, n);
  if (i == SIZE_MAX) i = _mi_chunk_fullest(region, MI_CHUNK_BY_FREE, kind, n);
  if (i == SIZE_MAX && kind != MI_CHUNK_MIXED && region->is_huge)
    i = _mi_chunk_fullest(region, MI_CHUNK_BY_BACKED, MI_CHUNK_NONE, n);
  return i == SIZE_MAX ? SIZE_MAX : i * MI_CHUNK_SLICES + chunk_place(&region->chunks[i], n);
}

// The same in wholly free chunks; opens new ones.  Arenas have an end, so there a run begins in what is left of the chunk
// before; in our own regions that is left for blocks to grow into.
static size_t slices_find_new(mi_region_t* region, size_t n, mi_chunk_kind_t kind) {
  size_t i = _mi_chunk_find_free(region, mi_div_up(n, MI_CHUNK_SLICES), kind);
  if (i == SIZE_MAX) return SIZE_MAX;
  size_t n_before = 0;
  if (mi_unlikely(region->origin != MI_REGION_OWN) && kind == MI_CHUNK_MIXED && i > 0) {
    const mi_chunk_t* before = &region->chunks[i - 1];
    if (before->kind == MI_CHUNK_MIXED) n_before = mi_high_ones64((uint64_t)before->free_bits << 32);
  }
  return i * MI_CHUNK_SLICES - n_before;
}

// Takes n of the free slices from `slice` on, where they are aligned.
static void slices_take_run(mi_region_t* region, size_t slice, size_t n, size_t align, mi_chunk_kind_t kind,
                            mi_run_t* run) {
  size_t first = region->base >> MI_SLICE_SHIFT;
  if (align > 1) slice = mi_align_up(first + slice, align) - first;
  run->region = region;
  run->slice = slice;
  run->n_slices = n;
  run->is_zero = slices_take(region, slice, n, kind);
}

static bool slices_alloc_in(mi_region_t* region, size_t n, size_t align, mi_chunk_kind_t kind, bool is_new,
                            mi_run_t* run) {
  // Within a chunk a run is where it falls; take more and give the ends back.  Chunks are aligned as they are.
  size_t extra = align - 1;
  size_t slice = is_new ? slices_find_new(region, n + extra, kind) : slices_find_used(region, n + extra, kind);
  if (slice == SIZE_MAX) return false;
  slices_take_run(region, slice, n, align, kind, run);
  return true;
}

bool _mi_slices_forget(mi_region_t* region) {
  for (size_t i = 0; i < region->n_used; i++) {
    if (!_mi_chunk_is_free(region, i)) return false;
  }
  _mi_chunk_forget_all(region);
  return true;
}

static bool chunk_is_clean(const mi_chunk_t* chunk) {
  return (chunk->dirty_bits | chunk->stale_bits) == 0;
}

// Free chunks at the end of a band go back, as if they had never been used: all of them, or those that read as zero, if
// they are many.
static bool slices_shrink(mi_region_t* region, bool only_clean) {
  size_t n = region->n_used;
  while (n > 0 && _mi_chunk_is_free(region, n - 1) && (!only_clean || chunk_is_clean(&region->chunks[n - 1]))) n--;
  if (n == region->n_open || (only_clean && region->n_open - n < SLICES_SHRINK_MIN + n / 8)) return false;
  if (!_mi_space_close(region, n)) return false;
  _mi_chunk_use_less(region, n);
  return true;
}

bool _mi_slices_release_regions(void) {
  bool any = false;
  if (!MI_PRIM_VIRTUAL) return false;
  for (size_t i = 0; i < _mi_region_count(); i++) {
    mi_region_t* region = &_mi_region_all[i];
    if (region->base == 0 || region->origin != MI_REGION_OWN) continue;
    if (region->is_planned) {
      if (slices_shrink(region, false)) any = true;
    }
    else if (i > MI_REGION_HUGE && _mi_slices_forget(region)) {
      _mi_space_remove(region);
      any = true;
    }
  }
  return any;
}

void _mi_slices_shrink(void) {
  _mi_lock_acquire(&_mi_region_lock);
  for (size_t i = 0; i < _mi_region_count(); i++) {
    if (_mi_region_all[i].is_planned) slices_shrink(&_mi_region_all[i], true);
  }
  _mi_lock_release(&_mi_region_lock);
}

// From the library's own regions: huge-page regions or the others.
static mi_always_inline bool slices_alloc_each(bool is_huge, size_t n, size_t align, mi_chunk_kind_t kind, bool is_new,
                                               mi_run_t* run) {
  for (mi_region_t* region = &_mi_region_all[is_huge]; region != NULL; region = region->next) {
    if (slices_alloc_in(region, n, align, kind, is_new, run)) return true;
  }
  return false;
}

// Is there address space that was never opened?  Then it is memory that the system refused, and more address space would
// not help: each failure would only add another region.
static bool slices_have_space(bool is_huge, size_t n) {
  for (const mi_region_t* region = &_mi_region_all[is_huge]; region != NULL; region = region->next) {
    if (region->n_usable - region->n_used >= mi_div_up(n, MI_CHUNK_SLICES)) return true;
  }
  return false;
}

// Where somebody else's mapping is in the way of one region, the next will do.
#define SLICES_ADD_TRIES 5

static bool slices_alloc_added(bool is_huge, size_t n, size_t align, mi_chunk_kind_t kind, mi_run_t* run) {
  if (n > SIZE_MAX / MI_SLICE_SIZE - align) return false;
  for (int i = 0; i < SLICES_ADD_TRIES && !slices_have_space(is_huge, n + align - 1); i++) {
    mi_region_t* region = _mi_space_add((n + align) * MI_SLICE_SIZE, is_huge);
    if (region == NULL) return false;
    if (slices_alloc_in(region, n, align, kind, true, run)) return true;
  }
  return false;
}

// From wholly free chunks of other kinds that are backed.
static bool slices_alloc_backed(size_t n, mi_run_t* run) {
  for (mi_region_t* region = &_mi_region_all[0]; region != NULL; region = region->next) {
    bool is_backed = (region->nonempty[MI_CHUNK_BY_BACKED][MI_CHUNK_NONE] != 0);
    if (is_backed && slices_alloc_in(region, n, 1, MI_CHUNK_SMALL, true, run)) return true;
  }
  return false;
}

// A huge page is the next step of extension, and like the smaller ones it is a fraction of what there is.  What is there
// already comes first.
static bool slices_alloc_huge(size_t n, mi_run_t* run) {
  if (_mi_region_all[0].n_used < CHUNK_HUGE_FROM || !_mi_region_may_be_huge()) return false;
  return slices_alloc_each(true, n, 1, MI_CHUNK_HUGE, false, run) ||
         slices_alloc_each(false, n, 1, MI_CHUNK_SMALL, false, run) || slices_alloc_backed(n, run) ||
         slices_alloc_each(true, n, 1, MI_CHUNK_HUGE, true, run) || slices_alloc_added(true, n, 1, MI_CHUNK_HUGE, run);
}

// Huge-page regions are for pages in huge-page chunks, but what those have given back is for all; and when nothing else
// is left, so is the rest of them.
static bool slices_alloc_any(size_t n, size_t align, mi_chunk_kind_t kind, mi_run_t* run) {
  return slices_alloc_each(false, n, align, kind, false, run) || slices_alloc_each(true, n, align, kind, false, run) ||
         slices_alloc_each(false, n, align, kind, true, run) || slices_alloc_added(false, n, align, kind, run) ||
         slices_alloc_each(true, n, align, kind, true, run);
}

static bool slices_alloc_anywhere(mi_region_t* region, size_t n, size_t align, mi_chunk_kind_t kind, mi_run_t* run);

// Where memory only grows all that is free is looked through before there is more.
static bool slices_alloc_grown(size_t n, size_t align, mi_chunk_kind_t kind, mi_run_t* run) {
  bool may_grow =
      (kind == MI_CHUNK_META || (_mi_window_is_open() && _mi_option_get_fast(mi_option_disallow_os_alloc) == 0));
  if (slices_alloc_each(false, n, align, MI_CHUNK_MIXED, false, run)) return true;
  do {
    for (mi_region_t* region = &_mi_region_all[0]; region != NULL; region = region->next) {
      if (slices_alloc_anywhere(region, n, align, MI_CHUNK_MIXED, run)) return true;
    }
  } while (may_grow && n <= SIZE_MAX / MI_SLICE_SIZE - align && _mi_window_grow(n + align - 1));
  return false;
}

// What is ours; maps more of it if need be.
static void slices_alloc_own(size_t n, size_t align, mi_chunk_kind_t kind, mi_run_t* run) {
  if (!MI_PRIM_VIRTUAL) {
    slices_alloc_grown(n, align, kind, run);
    return;
  }
  if (kind == MI_CHUNK_HUGE) {
    if (slices_alloc_huge(n, run)) return;
    kind = MI_CHUNK_SMALL;
  }
  if (slices_alloc_any(n, align, kind, run)) return;
  bool may_open = (_mi_option_get_fast(mi_option_disallow_os_alloc) == 0);
  if (may_open && _mi_slices_release_regions()) slices_alloc_any(n, align, kind, run);
}

// Only from that region.
static bool slices_alloc_bound(mi_region_t* region, size_t n, size_t align, mi_chunk_kind_t kind, mi_run_t* run) {
  if (kind == MI_CHUNK_HUGE && !region->is_huge) kind = MI_CHUNK_SMALL;
  return slices_alloc_in(region, n, align, kind, false, run) || slices_alloc_in(region, n, align, kind, true, run);
}

// From the arenas that are for all: first those of the node, then those of none, then those of others.  They come before
// memory of our own, since the program has paid for them already.
static mi_noinline bool slices_alloc_shared(size_t n, size_t align, mi_chunk_kind_t kind, size_t arena, mi_run_t* run) {
  if (kind == MI_CHUNK_META || _mi_option_get_fast(mi_option_disallow_arena_alloc) != 0) return false;
  int node = -1;
  if (_mi_space_n_bound > 0) {
    node = (int)(arena >= MI_ARENA_NEAR(0) ? arena - MI_ARENA_NEAR(0) : _mi_numa_node());
  }
  for (int far = 0; far <= (node >= 0 ? 2 : 0); far++) {
    for (size_t i = MI_REGION_HUGE + 1; i < _mi_region_count(); i++) {
      mi_region_t* region = &_mi_region_all[i];
      int          is_far = (region->numa_node == node ? 0 : (region->numa_node < 0 ? 1 : 2));
      if (region->is_exclusive || !_mi_region_is_arena(region) || (node >= 0 && is_far != far)) continue;
      if (slices_alloc_bound(region, n, align, kind, run)) return true;
    }
  }
  return false;
}

// ---- the last resort ------------------------------------------------------------------------------------------------

static mi_noinline bool slices_alloc_anywhere(mi_region_t* region, size_t n, size_t align, mi_chunk_kind_t kind,
                                              mi_run_t* run) {
  size_t slice = _mi_chunk_find_slices(region, n + align - 1, kind);
  if (slice == SIZE_MAX) return false;
  slices_take_run(region, slice, n, align, kind, run);
  return true;
}

// Before a request is refused all regions that may serve it are looked through.
static mi_cold void slices_alloc_last(size_t n, size_t align, mi_chunk_kind_t kind, mi_run_t* run) {
  bool may_share = (kind != MI_CHUNK_META && _mi_option_get_fast(mi_option_disallow_arena_alloc) == 0);
  for (size_t i = 0; i < _mi_region_count(); i++) {
    mi_region_t* region = &_mi_region_all[i];
    if (region->base == 0 || region->is_exclusive) continue;
    if (_mi_region_is_arena(region) && !may_share) continue;
    if (slices_alloc_anywhere(region, n, align, kind, run)) return;
  }
}

// ---- requests -------------------------------------------------------------------------------------------------------

static const mi_run_t slices_none = {NULL, 0, 0, false};

// Not all of the run may be committed.  If the program's function refuses to, memory of our own will do, unless it is bound.
static mi_cold mi_run_t slices_commit(mi_run_t run, size_t n, size_t align, mi_chunk_kind_t kind, size_t arena) {
  while (run.region != NULL && run.region->uncommitted != NULL && !_mi_commit_run(&run)) {
    bool may_be_own = (run.region->commit != NULL && !_mi_region_is_bound(arena));
    _mi_lock_acquire(&_mi_region_lock);
    slices_put(run.region, run.slice, n, MI_CHUNK_HOLDS_AS_IT_IS);
    run = slices_none;
    if (may_be_own) slices_alloc_own(n, align, kind, &run);
    _mi_lock_release(&_mi_region_lock);
  }
  return run;
}

mi_run_t _mi_slices_alloc(size_t n, size_t align, mi_chunk_kind_t kind, size_t arena) {
  mi_run_t run = slices_none;
  _mi_lock_acquire(&_mi_region_lock);
  if (mi_unlikely(_mi_region_is_bound(arena))) {
    mi_region_t* region = &_mi_region_all[arena];
    if (!slices_alloc_bound(region, n, align, kind, &run)) slices_alloc_anywhere(region, n, align, kind, &run);
  }
  else if (mi_likely(_mi_space_n_shared == 0) || !slices_alloc_shared(n, align, kind, arena, &run)) {
    slices_alloc_own(n, align, kind, &run);
    if (mi_unlikely(run.region == NULL)) slices_alloc_last(n, align, kind, &run);
  }
  _mi_lock_release(&_mi_region_lock);
  if (mi_unlikely(run.region == NULL) && !_mi_region_is_bound(arena)) _mi_space_report_none(n);
  if (mi_likely(run.region == NULL || run.region->uncommitted == NULL)) return run;
  return slices_commit(run, n, align, kind, arena);
}

// What is freed after the system has refused memory goes back at once: it may be address space that is short, and others
// in the process need some too.
static mi_cold void slices_free_short(mi_region_t* region) {
  _mi_lock_acquire(&_mi_region_lock);
  if (region->n_used > 0 && _mi_chunk_is_free(region, region->n_used - 1)) slices_shrink(region, false);
  _mi_lock_release(&_mi_region_lock);
}

mi_run_t _mi_slices_alloc_shared(size_t n, size_t align, size_t arena) {
  mi_run_t run = slices_none;
  _mi_lock_acquire(&_mi_region_lock);
  if (mi_unlikely(_mi_space_n_shared > 0)) slices_alloc_shared(n, align, MI_CHUNK_MIXED, arena, &run);
  _mi_lock_release(&_mi_region_lock);
  if (mi_likely(run.region == NULL || run.region->uncommitted == NULL)) return run;
  return slices_commit(run, n, align, MI_CHUNK_MIXED, arena);
}

void _mi_slices_free(mi_region_t* region, size_t slice, size_t n, bool is_clean) {
  _mi_slices_put(region, slice, n, is_clean ? MI_CHUNK_HOLDS_ZERO : MI_CHUNK_HOLDS_DIRTY);
  if (mi_unlikely(mi_load_relaxed(&_mi_space_is_short)) && region->is_planned) slices_free_short(region);
}

static bool slices_are_free(mi_region_t* region, size_t slice, size_t n) {
  size_t end = mi_div_up(slice + n, MI_CHUNK_SLICES);
  if (end > region->n_usable) return false;
  size_t used = mi_min(slice + n, region->n_used * MI_CHUNK_SLICES);
  for (size_t part, at = slice; at < used; at += part) {
    uint32_t          bits = chunk_part(at, used - at, &part);
    const mi_chunk_t* chunk = &region->chunks[at / MI_CHUNK_SLICES];
    if ((chunk->free_bits & bits) != bits) return false;
    // A run may not end up in a chunk of pages: their buckets count on pages only.
    if (chunk->kind != MI_CHUNK_NONE && chunk->kind != MI_CHUNK_MIXED) return false;
  }
  return _mi_chunk_use_to(region, end, MI_CHUNK_MIXED);
}

bool _mi_slices_extend(mi_region_t* region, size_t slice, size_t n, bool* is_zero) {
  _mi_lock_acquire(&_mi_region_lock);
  mi_run_t run = {region, slice, n, false};
  bool     ok = slices_are_free(region, slice, n);
  if (ok) run.is_zero = slices_take(region, slice, n, MI_CHUNK_MIXED);
  _mi_lock_release(&_mi_region_lock);
  if (ok && mi_unlikely(region->uncommitted != NULL) && !_mi_commit_run(&run)) {
    _mi_slices_put(region, slice, n, MI_CHUNK_HOLDS_AS_IT_IS);
    ok = false;
  }
  *is_zero = run.is_zero;
  return ok;
}

size_t _mi_slices_skip_dirty(const mi_region_t* region, size_t slice, size_t n, size_t* n_zero) {
  size_t n_dirty = 0;
  _mi_lock_acquire(&_mi_region_lock);
  while (n_dirty < n && !_mi_region_slice_is_zero(region, slice + n_dirty)) n_dirty++;
  size_t end = n_dirty;
  while (end < n && _mi_region_slice_is_zero(region, slice + end)) end++;
  _mi_lock_release(&_mi_region_lock);
  *n_zero = end - n_dirty;
  return n_dirty;
}

size_t _mi_slices_taken_fresh(void) {
  return mi_load_relaxed(&slices_n_fresh);
}

size_t _mi_slices_reused(void) {
  return mi_load_relaxed(&slices_n_reused);
}
