// The chunks of a region, by the free slices that they have.  Layer: arena.
//
// Chunks lie in buckets: by the number of free slices (SMALL, HUGE) or the longest free run (the other kinds), once for
// all slices and once for those that are backed.  A request takes from the lowest bucket that suffices, the fullest chunk that fits,
// which one bit operation finds.  So other chunks become empty as a whole.
//
// A free run in MIXED chunks may begin at the end of one chunk and go on in the next, and over a wholly free one into the one after it.
// It counts for the chunk where it begins, which may itself be wholly free.  Runs longer than a chunk, up to two chunks and more, lie in
// MI_CHUNK_LONG buckets of their own, eight lengths in each.
//
// Runs of whole chunks are found by the bits of chunks, a word of 64 at a time.  Chunks form at most 128 groups, of at least 64 words
// (8 GiB) each, and a search looks only at groups that may have such a run.  A group that has none can be looked at only if one of its
// chunks was freed since the last look in vain.  So a search takes at most 2 us for each such free, and as much for all other groups
// together: the number of chunks does not matter.
//
// All of this under the arena lock; A1 to A4 (slices.h) are kept here.
#pragma once

#include "region.h"

// Slices that are free and backed now (A4), and how many ever became so.
size_t _mi_chunk_purgeable(void);
size_t _mi_chunk_freed(void);
// The least that the first of these was since the last call of this, and how much more it was at most.
size_t _mi_chunk_purgeable_low(size_t* swing);

// n slices became so that were in use before: slices that were put back since then had been taken for purging.
void _mi_chunk_set_freed(size_t n);

// The contents of slices that are put back: unknown, and backed (DIRTY); zeros, and not backed (ZERO); unknown, but not backed (STALE);
// or as they were before the slices were taken.
typedef enum mi_contents_e {
  MI_CONTENTS_DIRTY,
  MI_CONTENTS_ZERO,
  MI_CONTENTS_STALE,
  MI_CONTENTS_AS_BEFORE
} mi_contents_t;

// Are they not backed any more?
static inline bool _mi_chunk_went_back(mi_contents_t contents) {
  return contents == MI_CONTENTS_ZERO || contents == MI_CONTENTS_STALE;
}

// Is all of it free, and was it ever used?
bool _mi_chunk_is_free(const mi_region_t* region, size_t i);

// So many slices at the end of the chunk before are free for large blocks.
static inline size_t _mi_chunk_n_before(const mi_region_t* region, size_t i) {
  if (i == 0 || region->chunks[i - 1].kind != MI_CHUNK_MIXED) return 0;
  return mi_high_ones32(region->chunks[i - 1].free_bits);
}

// What a run of n slices, from chunk i on, makes resident behind its end: in a huge page of which nothing is backed yet.
static inline size_t _mi_chunk_n_behind(const mi_region_t* region, size_t i, size_t n) {
  size_t n_last = n % MI_CHUNK_SLICES;
  bool   is_backed = (n_last == 0 || region->chunks[i + n / MI_CHUNK_SLICES].dirty_bits != 0);
  return is_backed ? 0 : MI_CHUNK_SLICES - n_last;
}

// Chunks up to `end` (excluded) have been handed out once: the new ones are free.  False when out of memory, or when no
// memory may be opened for that kind.
bool _mi_chunk_use_to(mi_region_t* region, size_t end, mi_chunk_kind_t kind);

// The lowest run of n free chunks among those that were ever used, SIZE_MAX if there is none.
size_t _mi_chunk_find_there(mi_region_t* region, size_t n);

// The same for that kind; opens new ones at the end if there is none.  SIZE_MAX if that fails.
size_t _mi_chunk_find_free(mi_region_t* region, size_t n, mi_chunk_kind_t kind);

// The fullest chunk of a kind with n <= 32 slices, SIZE_MAX if there is none.  A MIXED one may have them across its end.
size_t _mi_chunk_fullest(const mi_region_t* region, mi_chunk_list_t list, mi_chunk_kind_t kind, size_t n);

// Where a run of n slices begins that goes on in the next chunks, SIZE_MAX if there is none.
size_t _mi_chunk_find_long(const mi_region_t* region, size_t n);

// One of the chunks of a kind that have most backed slices to give; SIZE_MAX if none has any.
size_t _mi_chunk_most_backed(const mi_region_t* region, mi_chunk_kind_t kind);

// The lowest n slices that are free, wherever they are: across chunks, and in chunks of other kinds; opens new ones at the end
// if there are none.  SIZE_MAX if that fails.
size_t _mi_chunk_find_slices(mi_region_t* region, size_t n, mi_chunk_kind_t kind);

// Takes the free slices `bits` of a chunk; a chunk that was wholly free gets that kind.
void _mi_chunk_take(mi_region_t* region, size_t i, uint32_t bits, mi_chunk_kind_t kind);

void _mi_chunk_put(mi_region_t* region, size_t i, uint32_t bits, mi_contents_t contents);

// The chunks from `end` on, which are free, were never handed out.
mi_cold void _mi_chunk_use_less(mi_region_t* region, size_t end);

// The slices of a region are no longer counted as purgeable: it is going to be removed.
void _mi_chunk_forget_all(mi_region_t* region);
