// Handing out slices, under one lock: it is taken once per 64 KiB or more of use.  Layer: arena.
#include "slices.h"

#include "../support/assert.h"
#include "commit.h"
#include "limit.h"
#include "place.h"
#include "shrink.h"
#include "space.h"

// ---- counting (limit.h) -----------------------------------------------------------------------------------------------

// n slices are not backed any more.
static void slices_uncount(const mi_region_t* region, size_t n) {
  if (_mi_region_is_counted(region)) _mi_limit_remove(&_mi_limit_process, n * MI_SLICE_SIZE);
}

// What a run lacks, in bytes, that was taken when so many slices had been taken that were not backed: 0 if it is within the limit.  If
// not, it is put back, and the run is none.  Caller holds the arena lock.
static mi_noinline size_t slices_count_fresh(mi_run_t* run, size_t n, size_t moved) {
  n *= MI_SLICE_SIZE;
  if (!_mi_region_is_counted(run->region) || _mi_limit_add(&_mi_limit_process, n, moved)) return 0;
  _mi_place_put(run->region, run->slice, run->n_slices, MI_CONTENTS_AS_BEFORE);
  run->region = NULL;
  return n;
}

static mi_always_inline size_t slices_count_run(mi_run_t* run, size_t n_fresh, size_t moved) {
  size_t n = _mi_place_fresh() - n_fresh;
  return mi_likely(n == 0) ? 0 : slices_count_fresh(run, n, moved);
}

// The slices that are missing at the end of a region (part.h) look as if they were in use.
static size_t slices_n_counted(const mi_region_t* region) {
  size_t n = 0;
  if (region->base == 0 || !_mi_region_is_counted(region)) return 0;
  for (size_t i = 0; i < region->n_used; i++)
    n += mi_popcount32(~region->chunks[i].free_bits | region->chunks[i].dirty_bits);
  return n - region->n_missing;
}

size_t _mi_slices_n_counted(void) {
  size_t n = 0;
  _mi_lock_acquire(&_mi_region_lock);
  for (size_t i = 0; i < _mi_region_count(); i++) n += slices_n_counted(&_mi_region_all[i]);
  _mi_lock_release(&_mi_region_lock);
  return n;
}

void _mi_slices_put(mi_region_t* region, size_t slice, size_t n, mi_contents_t contents) {
  _mi_lock_acquire(&_mi_region_lock);
  size_t n_dirty = _mi_place_n_backed(region, slice, n), n_freed = _mi_chunk_freed();
  if (_mi_chunk_went_back(contents)) slices_uncount(region, n_dirty);
  _mi_place_put_given(region, slice, n, contents);
  _mi_chunk_set_freed(n_freed); // they were free before
  _mi_lock_release(&_mi_region_lock);
}

// Slices that were taken and counted, but not used.  Caller holds the arena lock.
static void slices_put_unused(mi_region_t* region, size_t slice, size_t n) {
  slices_uncount(region, n - _mi_place_n_backed(region, slice, n));
  _mi_place_put(region, slice, n, MI_CONTENTS_AS_BEFORE);
}

// ---- requests -------------------------------------------------------------------------------------------------------

// Takes the arena lock.  Returns how many slices had been taken that were not backed.
static mi_always_inline size_t slices_begin(void) {
  _mi_lock_acquire(&_mi_region_lock);
  if (mi_unlikely(mi_load_relaxed(&_mi_space_is_short))) _mi_space_refused = SIZE_MAX;
  return _mi_place_fresh();
}

static const mi_run_t slices_none = {NULL, 0, 0, false};

// Not all of the run may be committed.  If the program's function refuses to, memory of our own will do, unless it is bound.
static mi_cold mi_run_t slices_commit(mi_run_t run, size_t n, size_t align, mi_request_t request, size_t arena) {
  while (run.region != NULL && run.region->uncommitted != NULL && !_mi_commit_run(&run)) {
    bool may_be_own = (run.region->commit != NULL && !_mi_region_is_bound(arena));
    _mi_lock_acquire(&_mi_region_lock);
    slices_put_unused(run.region, run.slice, n);
    run = slices_none;
    size_t n_fresh = _mi_place_fresh();
    if (may_be_own) _mi_place_own(n, align, request, &run);
    if (run.region != NULL) slices_count_run(&run, n_fresh, 0);
    _mi_lock_release(&_mi_region_lock);
  }
  return run;
}

// What the limit on memory lacks for it, in bytes, if that is what refuses.
static mi_always_inline size_t slices_request(size_t n, size_t align, mi_request_t request, size_t arena, size_t moved,
                                              mi_run_t* run) {
  size_t n_missing = 0;
  size_t n_fresh = slices_begin();
  if (mi_unlikely(_mi_region_is_bound(arena))) {
    mi_region_t* region = &_mi_region_all[arena];
    if (!_mi_place_bound(region, n, align, request, run)) _mi_place_anywhere(region, n, align, request, run);
  }
  else if (mi_likely(_mi_space_n_shared == 0) || !_mi_place_shared(n, align, request, arena, run)) {
    _mi_place_own(n, align, request, run);
    if (mi_unlikely(run->region == NULL)) _mi_place_last(n, align, request, run);
  }
  if (mi_likely(run->region != NULL)) n_missing = slices_count_run(run, n_fresh, moved);
  _mi_lock_release(&_mi_region_lock);
  return n_missing;
}

// The limit on memory lacks so many bytes: they are taken from what is retained.  Where the system does not take that back, slices
// that are backed already will do.
static mi_cold mi_run_t slices_alloc_short(size_t n, size_t align, mi_request_t request, size_t arena, size_t moved,
                                           size_t n_missing) {
  mi_run_t run = slices_none;
  for (int tries = 0; n_missing > 0 && _mi_limit_make_room(n_missing, moved, &tries);)
    n_missing = slices_request(n, align, request, arena, moved, &run);
  if (n_missing == 0 || align > 1 || _mi_region_is_bound(arena)) return run;
  _mi_lock_acquire(&_mi_region_lock);
  _mi_place_counted(n, request, &run);
  _mi_lock_release(&_mi_region_lock);
  return run;
}

static mi_always_inline mi_run_t slices_alloc(size_t n, size_t align, mi_request_t request, size_t arena,
                                              size_t moved) {
  mi_run_t run = slices_none;
  size_t   n_missing = slices_request(n, align, request, arena, moved, &run);
  if (mi_likely(run.region != NULL && run.region->uncommitted == NULL)) return run;
  if (n_missing > 0) run = slices_alloc_short(n, align, request, arena, moved, n_missing);
  else if (run.region == NULL && !_mi_region_is_bound(arena)) _mi_space_report_none(n);
  return run.region == NULL ? run : slices_commit(run, n, align, request, arena);
}

mi_run_t _mi_slices_alloc(size_t n, size_t align, mi_request_t request, size_t arena) {
  return slices_alloc(n, align, request, arena, 0);
}

mi_run_t _mi_slices_alloc_moved(size_t n, size_t align, mi_request_t request, size_t arena, size_t moved) {
  return slices_alloc(n, align, request, arena, moved);
}

// What is freed after the system has refused memory goes back at once: it may be address space that is short, and others
// in the process need some too.
static mi_cold void slices_free_short(mi_region_t* region) {
  _mi_lock_acquire(&_mi_region_lock);
  bool is_part = (region->n_missing > 0);
  if (is_part || (region->n_used > 0 && _mi_chunk_is_free(region, region->n_used - 1))) _mi_shrink_band(region);
  _mi_lock_release(&_mi_region_lock);
}

mi_run_t _mi_slices_alloc_shared(size_t n, size_t align, size_t arena) {
  mi_run_t run = slices_none;
  _mi_lock_acquire(&_mi_region_lock);
  size_t n_fresh = _mi_place_fresh();
  if (mi_unlikely(_mi_space_n_shared > 0)) _mi_place_shared(n, align, MI_REQUEST_MIXED, arena, &run);
  if (mi_unlikely(run.region != NULL)) slices_count_run(&run, n_fresh, 0);
  _mi_lock_release(&_mi_region_lock);
  if (mi_likely(run.region == NULL || run.region->uncommitted == NULL)) return run;
  return slices_commit(run, n, align, MI_REQUEST_MIXED, arena);
}

void _mi_slices_free(mi_region_t* region, size_t slice, size_t n, bool is_clean) {
  _mi_lock_acquire(&_mi_region_lock);
  if (is_clean) slices_uncount(region, n);
  _mi_place_put(region, slice, n, is_clean ? MI_CONTENTS_ZERO : MI_CONTENTS_DIRTY);
  _mi_lock_release(&_mi_region_lock);
  if (mi_unlikely(mi_load_relaxed(&_mi_space_is_short)) && region->is_planned) slices_free_short(region);
}

static bool slices_are_free(mi_region_t* region, size_t slice, size_t n) {
  size_t end = mi_div_up(slice + n, MI_CHUNK_SLICES);
  if (end > region->n_usable) return false;
  size_t used = mi_min(slice + n, region->n_used * MI_CHUNK_SLICES);
  for (size_t part, at = slice; at < used; at += part) {
    uint32_t          bits = _mi_place_part(at, used - at, &part);
    const mi_chunk_t* chunk = &region->chunks[at / MI_CHUNK_SLICES];
    if ((chunk->free_bits & bits) != bits) return false;
    // A run may not end up in a chunk of pages: their buckets count on pages only.
    if (chunk->kind != MI_CHUNK_NONE && chunk->kind != MI_CHUNK_MIXED) return false;
  }
  return _mi_chunk_use_to(region, end, MI_CHUNK_MIXED);
}

// As slices_request: what the limit lacks.
static size_t slices_extend(mi_run_t* run, bool* ok) {
  size_t n_missing = 0;
  size_t n_fresh = slices_begin();
  *ok = slices_are_free(run->region, run->slice, run->n_slices);
  if (*ok) {
    mi_run_t more = *run;
    run->is_zero = _mi_place_take(run->region, run->slice, run->n_slices, MI_CHUNK_MIXED);
    n_missing = slices_count_run(&more, n_fresh, 0);
  }
  _mi_lock_release(&_mi_region_lock);
  if (n_missing > 0) *ok = false;
  return n_missing;
}

bool _mi_slices_extend(mi_region_t* region, size_t slice, size_t n, bool* is_zero) {
  mi_run_t run = {region, slice, n, false};
  int      tries = 0;
  bool     ok;
  for (size_t n_missing; (n_missing = slices_extend(&run, &ok)) > 0;) {
    if (!_mi_limit_make_room(n_missing, 0, &tries)) break;
  }
  if (ok && mi_unlikely(region->uncommitted != NULL) && !_mi_commit_run(&run)) {
    _mi_lock_acquire(&_mi_region_lock);
    slices_put_unused(region, slice, n);
    _mi_lock_release(&_mi_region_lock);
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
