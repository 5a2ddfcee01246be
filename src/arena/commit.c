// Committing and decommitting slices.  Layer: arena.
#include "commit.h"

#include "../support/stat.h"

static bool commit_is_done(const mi_region_t* region, size_t slice) {
  return ((region->uncommitted[slice / MI_CHUNK_SLICES] >> (slice % MI_CHUNK_SLICES)) & 1) == 0;
}

// The first slices of [*at, end) that all are (or are not) committed: from *at on, as many as are returned.
static size_t commit_find(const mi_region_t* region, size_t* at, size_t end, bool is_done) {
  size_t n = 0;
  _mi_lock_acquire(&_mi_region_lock); // the words have bits of other slices too
  while (*at < end && commit_is_done(region, *at) != is_done) (*at)++;
  while (*at + n < end && commit_is_done(region, *at + n) == is_done) n++;
  _mi_lock_release(&_mi_region_lock);
  return n;
}

static void commit_set(mi_region_t* region, size_t slice, size_t n, bool is_done, bool is_zero) {
  _mi_lock_acquire(&_mi_region_lock);
  for (size_t i = slice; i < slice + n; i++) {
    uint32_t    bit = (uint32_t)1 << (i % MI_CHUNK_SLICES);
    uint32_t*   word = &region->uncommitted[i / MI_CHUNK_SLICES];
    mi_chunk_t* chunk = &region->chunks[i / MI_CHUNK_SLICES];
    *word = (is_done ? *word & ~bit : *word | bit);
    chunk->stale_bits = (is_zero ? chunk->stale_bits & ~bit : chunk->stale_bits | bit);
  }
  int64_t bytes = (int64_t)(n * MI_SLICE_SIZE);
  _mi_region_count_committed(region, is_done ? bytes : -bytes);
  _mi_lock_release(&_mi_region_lock);
}

// By the program's function.
static bool commit_ask(const mi_region_t* region, void* start, size_t size, bool commit, bool* is_zero) {
  _mi_stat_count(commit ? &_mi_stat_live.commit_calls : &_mi_stat_live.purge_calls, 1);
  if (!region->commit(commit, start, size, is_zero, region->commit_arg)) return false;
  if (!commit) _mi_stat_count(&_mi_stat_live.purged, (int64_t)size);
  return true;
}

// False if the function, or the system, refuses.
static bool commit_call(mi_region_t* region, size_t slice, size_t n, bool commit) {
  void*  start = _mi_region_slice_start(region, slice);
  size_t size = n * MI_SLICE_SIZE;
  bool   is_zero = (region->commit == NULL), ok;
  if (region->commit != NULL) ok = commit_ask(region, start, size, commit, &is_zero);
  else ok = ((commit ? _mi_prim_commit(start, size) : _mi_prim_decommit(start, size)) == 0);
  if (ok) commit_set(region, slice, n, commit, commit && is_zero);
  return ok;
}

static bool commit_is_zero(const mi_run_t* run) {
  bool is_zero = true;
  _mi_lock_acquire(&_mi_region_lock);
  for (size_t i = 0; i < run->n_slices; i++) is_zero &= _mi_region_slice_is_zero(run->region, run->slice + i);
  _mi_lock_release(&_mi_region_lock);
  return is_zero;
}

// What was committed of a run that cannot be had as a whole goes back with the next purge, which looks for dirty slices.
static void commit_set_dirty(mi_region_t* region, size_t slice, size_t end) {
  _mi_lock_acquire(&_mi_region_lock);
  for (size_t i = slice; i < end; i++) {
    uint32_t bit = (uint32_t)1 << (i % MI_CHUNK_SLICES);
    if (commit_is_done(region, i)) region->chunks[i / MI_CHUNK_SLICES].dirty_bits |= bit;
  }
  _mi_lock_release(&_mi_region_lock);
}

bool _mi_commit_run(mi_run_t* run) {
  size_t end = run->slice + run->n_slices;
  bool   any = false;
  for (size_t at = run->slice, n; (n = commit_find(run->region, &at, end, false)) > 0; at += n) {
    if (!commit_call(run->region, at, n, true)) {
      if (any) commit_set_dirty(run->region, run->slice, at);
      return false;
    }
    any = true;
  }
  if (any) run->is_zero = commit_is_zero(run);
  return true;
}

bool _mi_commit_undo(mi_region_t* region, size_t slice, size_t n) {
  size_t end = slice + n;
  bool   ok = true;
  for (size_t at = slice; (n = commit_find(region, &at, end, true)) > 0; at += n) {
    if (!commit_call(region, at, n, false)) ok = false;
  }
  return ok;
}
