// Where slices come from: the choice of region and chunk.  Layer: arena.
//
// All of this under the arena lock.  slices.h has the invariants of slices that are handed out.
#pragma once

#include "chunk.h"

// The part of [slice, slice + n) that lies in the chunk of `slice`, as bits; *n_part is its length.
static inline uint32_t _mi_place_part(size_t slice, size_t n, size_t* n_part) {
  size_t at = slice % MI_CHUNK_SLICES;
  *n_part = mi_min(n, MI_CHUNK_SLICES - at);
  return mi_mask32(*n_part) << at;
}

// Takes n slices that are free (true: they read as zero), and puts them back.
bool _mi_place_take(mi_region_t* region, size_t slice, size_t n, mi_chunk_kind_t kind);
void _mi_place_put(mi_region_t* region, size_t slice, size_t n, mi_contents_t contents);

// Puts back slices that were taken by way of their chunk to be purged (give.h), and that never counted as taken.
void _mi_place_put_given(mi_region_t* region, size_t slice, size_t n, mi_contents_t contents);

// The following take n slices, aligned to `align` slices, for that request.

// From regions of the allocator's own (MI_REGION_OWN); opens more of them if need be.
void _mi_place_own(size_t n, size_t align, mi_request_t request, mi_run_t* run);

// Only from that region: where its kind of chunks has room, or from wherever n slices are free.
bool _mi_place_bound(mi_region_t* region, size_t n, size_t align, mi_request_t request, mi_run_t* run);
bool _mi_place_anywhere(mi_region_t* region, size_t n, size_t align, mi_request_t request, mi_run_t* run);

// From the arenas that serve all heaps: first those of the node, then those of no node, then those of other nodes.  They come before
// memory of our own, because the program has paid for them already.
bool _mi_place_shared(size_t n, size_t align, mi_request_t request, size_t arena, mi_run_t* run);

// The last resort: all regions that may serve the request are looked through.
mi_cold void _mi_place_last(size_t n, size_t align, mi_request_t request, mi_run_t* run);

// Only slices that are free and backed, in chunks for that request or in wholly free chunks of our own regions; n is a chunk at most.
mi_cold bool _mi_place_counted(size_t n, mi_request_t request, mi_run_t* run);

// Looks at runs of n free chunks that begin at i, or at most `look` chunks further up.  Returns where the run begins of whose first
// n_slices slices, which reach into its last chunk, most are backed; the lowest of several.  *most: how many.  Takes O(n + look).
size_t _mi_place_most_backed(const mi_region_t* region, size_t i, size_t n, size_t look, size_t n_slices, size_t* most);

// How many slices were ever taken that were not backed (fresh), and that were (reused).
size_t _mi_place_fresh(void);
size_t _mi_place_reused(void);

// How many of n slices are marked as backed.  Caller holds the arena lock.
size_t _mi_place_n_backed(const mi_region_t* region, size_t slice, size_t n);

// How many slices are taken, those of spare pages and of kept blocks included.
size_t _mi_place_n_taken(void);
