// Where slices come from: the choice of region and chunk.  Layer: arena.
#include "place.h"

#include "../support/assert.h"
#include "../support/option.h"
#include "limit.h"
#include "numa.h"
#include "part.h"
#include "shrink.h"
#include "space.h"
#include "window.h"

// This many chunks of region 0 are used before the first huge-page chunk is opened.
#define PLACE_HUGE_FROM 4
// A dense block of more slices than this gets huge pages in any case: as many slices were written all over before, and a mapping of its
// own would ask for them.
#define PLACE_LARGE     (16 * MI_CHUNK_SLICES)
// This many chunks beyond the lowest free ones are looked at for a run of which more is backed.
#define PLACE_LOOK      64
// In a huge-page region pages leave the chunks behind a large block to the next ones, so many at most.
#define PLACE_APART     15

// ---- taking and putting slices --------------------------------------------------------------------------------------

// How many slices were ever handed out that were not backed, and that were; under the arena lock.
static mi_atomic(size_t) place_n_fresh, place_n_reused, place_n_taken;

static void place_count(uint32_t bits, uint32_t dirty) {
  size_t n_reused = mi_popcount32(bits & dirty), n_fresh = mi_popcount32(bits) - n_reused;
  mi_store_relaxed(&place_n_reused, mi_load_relaxed(&place_n_reused) + n_reused);
  if (n_fresh > 0) mi_store_relaxed(&place_n_fresh, mi_load_relaxed(&place_n_fresh) + n_fresh);
}

// Slices of pinned regions do not count: their memory is there whether it is in use or not.
static void place_count_taken(const mi_region_t* region, size_t n) {
  if (!region->is_pinned) mi_store_relaxed(&place_n_taken, mi_load_relaxed(&place_n_taken) + n);
}

bool _mi_place_take(mi_region_t* region, size_t slice, size_t n, mi_chunk_kind_t kind) {
  bool is_zero = true;
  place_count_taken(region, n);
  for (size_t part; n > 0; slice += part, n -= part) {
    uint32_t bits = _mi_place_part(slice, n, &part);
    size_t   i = slice / MI_CHUNK_SLICES;
    if (((region->chunks[i].dirty_bits | region->chunks[i].stale_bits) & bits) != 0) is_zero = false;
    place_count(bits, region->chunks[i].dirty_bits);
    _mi_chunk_take(region, i, bits, kind);
  }
  return is_zero;
}

mi_noinline void _mi_place_put_given(mi_region_t* region, size_t slice, size_t n, mi_contents_t contents) {
  for (size_t part; n > 0; slice += part, n -= part) {
    uint32_t bits = _mi_place_part(slice, n, &part);
    _mi_chunk_put(region, slice / MI_CHUNK_SLICES, bits, contents);
  }
}

void _mi_place_put(mi_region_t* region, size_t slice, size_t n, mi_contents_t contents) {
  place_count_taken(region, 0 - n);
  _mi_place_put_given(region, slice, n, contents);
}

// The kind of chunks that a request takes in a region.
static mi_chunk_kind_t place_kind(mi_request_t request, bool is_huge) {
  if (request == MI_REQUEST_MEDIUM_HUGE) return MI_CHUNK_MEDIUM;
  if (request > MI_REQUEST_MEDIUM_HUGE) return MI_CHUNK_MIXED;
  return request == MI_REQUEST_HUGE && !is_huge ? MI_CHUNK_SMALL : (mi_chunk_kind_t)request;
}

// ---- where ------------------------------------------------------------------------------------------------------

// Where n <= 32 slices start in a partly used chunk that has them: at its end, if they are not all in it.  Backed slices first: they
// cost no page fault.
static size_t place_in_chunk(const mi_chunk_t* chunk, size_t n) {
  uint32_t free = mi_runs32(chunk->free_bits, n);
  if (mi_unlikely(free == 0)) return MI_CHUNK_SLICES - mi_high_ones32(chunk->free_bits);
  uint32_t backed = mi_runs32(chunk->free_bits & chunk->dirty_bits, n);
  return mi_ctz32(backed != 0 ? backed : free);
}

// The first of n free slices in chunks that are partly used, SIZE_MAX if there are none.  What is backed comes first: it
// costs no page fault, and leaves the peak of memory as it is.  But a large block that grows needs room behind it: runs of
// any length stay together (grow: 49 MiB instead of 62), and wholly free chunks of region 0 are not broken for what is
// backed (grow: 49 MiB instead of 145); those of huge-page regions are, since no large block looks for room there.
static size_t place_find_used(const mi_region_t* region, size_t n, mi_chunk_kind_t kind) {
  size_t i = SIZE_MAX;
  if (n <= MI_CHUNK_SLICES) {
    if (kind != MI_CHUNK_MIXED) i = _mi_chunk_fullest(region, MI_CHUNK_BY_BACKED, kind, n);
    if (i == SIZE_MAX) i = _mi_chunk_fullest(region, MI_CHUNK_BY_FREE, kind, n);
    if (i == SIZE_MAX && kind != MI_CHUNK_MIXED && region->is_huge)
      i = _mi_chunk_fullest(region, MI_CHUNK_BY_BACKED, MI_CHUNK_NONE, n);
  }
  if (i != SIZE_MAX) return i * MI_CHUNK_SLICES + place_in_chunk(&region->chunks[i], n);
  return kind == MI_CHUNK_MIXED ? _mi_chunk_find_long(region, n) : SIZE_MAX;
}

// The same in wholly free chunks; opens new ones.  Arenas have an end, and the rest of a huge page is resident, so there a run begins in
// what is left of the chunk before; in other regions of our own that is left for blocks to grow into.  Pages among huge pages begin some
// chunks behind a large block: no other could go on there, and what it leaves of its last huge page would serve nobody.
static size_t place_find_new(mi_region_t* region, size_t n, mi_chunk_kind_t kind) {
  if (mi_unlikely(region->n_missing > 0)) _mi_part_open(region, MI_CHUNK_SLICES);
  size_t n_chunks = mi_div_up(n, MI_CHUNK_SLICES), i = _mi_chunk_find_free(region, n_chunks, kind);
  if (i == SIZE_MAX) return SIZE_MAX;
  size_t n_before = (region->origin != MI_REGION_OWN || region->is_huge ? _mi_chunk_n_before(region, i) : 0);
  if (kind == MI_CHUNK_MIXED) return i * MI_CHUNK_SLICES - n_before;
  bool   is_behind = (region->is_huge && n_before > 0);
  size_t apart = (is_behind ? _mi_chunk_find_free(region, PLACE_APART + n_chunks, kind) : SIZE_MAX);
  if (apart != SIZE_MAX) i = apart + (_mi_chunk_n_before(region, apart) > 0 ? PLACE_APART : 0);
  return i * MI_CHUNK_SLICES;
}

// Takes n of the free slices from `slice` on, where they are aligned.
static void place_take_run(mi_region_t* region, size_t slice, size_t n, size_t align, mi_chunk_kind_t kind,
                           mi_run_t* run) {
  size_t first = region->base >> MI_SLICE_SHIFT;
  if (align > 1) slice = mi_align_up(first + slice, align) - first;
  run->region = region;
  run->slice = slice;
  run->n_slices = n;
  run->is_zero = _mi_place_take(region, slice, n, kind);
}

static bool place_try(mi_region_t* region, size_t n, size_t align, mi_chunk_kind_t kind, bool is_new, mi_run_t* run) {
  // Within a chunk a run is where it falls; take more and give the ends back.  Chunks are aligned as they are.
  size_t extra = align - 1;
  size_t slice = is_new ? place_find_new(region, n + extra, kind) : place_find_used(region, n + extra, kind);
  if (slice == SIZE_MAX) return false;
  place_take_run(region, slice, n, align, kind, run);
  return true;
}

// From the fullest chunk of kind `from` that has a run of them which is backed.
static bool place_try_fullest(mi_region_t* region, mi_chunk_kind_t from, size_t n, mi_chunk_kind_t kind,
                              mi_run_t* run) {
  size_t i = _mi_chunk_fullest(region, MI_CHUNK_BY_BACKED, from, n);
  if (i == SIZE_MAX) return false;
  place_take_run(region, i * MI_CHUNK_SLICES + place_in_chunk(&region->chunks[i], n), n, 1, kind, run);
  return true;
}

// From the library's own regions: huge-page regions or the others.
static mi_always_inline bool place_try_each(bool is_huge, size_t n, size_t align, mi_chunk_kind_t kind, bool is_new,
                                            mi_run_t* run) {
  for (mi_region_t* region = &_mi_region_all[is_huge]; region != NULL; region = region->next) {
    if (place_try(region, n, align, kind, is_new, run)) return true;
  }
  return false;
}

// Is there address space that was never opened?  Then the system refused memory, and another region would not help.
static bool place_has_space(bool is_huge, size_t n) {
  for (const mi_region_t* region = &_mi_region_all[is_huge]; region != NULL; region = region->next) {
    if (region->n_usable - region->n_used >= mi_div_up(n, MI_CHUNK_SLICES)) return true;
  }
  return false;
}

// Where somebody else's mapping is in the way of one region, the next will do.
#define PLACE_ADD_TRIES 5

static bool place_try_added(bool is_huge, size_t n, size_t align, mi_chunk_kind_t kind, mi_run_t* run) {
  if (n > SIZE_MAX / MI_SLICE_SIZE - align) return false;
  for (int i = 0; i < PLACE_ADD_TRIES && !place_has_space(is_huge, n + align - 1); i++) {
    mi_region_t* region = _mi_space_add((n + align) * MI_SLICE_SIZE, is_huge);
    if (region == NULL) return false;
    if (place_try(region, n, align, kind, true, run)) return true;
  }
  return false;
}

// From the lowest wholly free chunks, if any that is free is backed: what comes in their order leaves more room (docs/decisions/064).
static bool place_try_backed(size_t n, mi_chunk_kind_t kind, mi_run_t* run) {
  for (mi_region_t* region = &_mi_region_all[0]; region != NULL; region = region->next) {
    bool is_backed = (region->nonempty[MI_CHUNK_BY_BACKED][MI_CHUNK_NONE] != 0);
    if (is_backed && place_try(region, n, 1, kind, true, run)) return true;
  }
  return false;
}

// Will all of n slices be written, within a chunk?
static bool place_is_filled(size_t n, size_t align, mi_request_t request) {
  if (request == MI_REQUEST_DENSE) return n <= MI_CHUNK_SLICES && align == 1;
  return request == MI_REQUEST_HUGE || request == MI_REQUEST_MEDIUM_HUGE;
}

// Huge pages are the same memory: where the system is short of it, the last resort asks for them, after others.
static bool place_may_open_huge(size_t size) {
  return !mi_load_relaxed(&_mi_space_is_short) && _mi_limit_has_room(size);
}

// A huge page is the next step of extension, and like the smaller ones it is a fraction of what there is.  What is there
// already comes first, for pages also what is free in other chunks of pages; in chunks of large blocks that is seldom backed.  `kind` is
// that of a chunk in a huge-page region, `plain` that of one in another.
static bool place_try_huge(size_t n, mi_chunk_kind_t kind, mi_chunk_kind_t plain, mi_run_t* run) {
  if (_mi_region_all[0].n_used < PLACE_HUGE_FROM || !_mi_region_may_be_huge()) return false;
  return place_try_each(true, n, 1, kind, false, run) ||
         (plain != MI_CHUNK_MIXED && place_try_each(false, n, 1, plain, false, run)) ||
         place_try_backed(n, plain, run) ||
         (place_may_open_huge(MI_CHUNK_SIZE) &&
          (place_try_each(true, n, 1, kind, true, run) || place_try_added(true, n, 1, kind, run)));
}

typedef struct place_choice_s {
  mi_region_t* region; // NULL: none yet
  size_t       slice, n_backed;
} place_choice_t;

size_t _mi_place_most_backed(const mi_region_t* region, size_t i, size_t n, size_t look, size_t n_slices,
                             size_t* most) {
  const mi_chunk_t* chunks = region->chunks;
  uint32_t          last = mi_mask32(n_slices - (n - 1) * MI_CHUNK_SLICES); // of the last of n chunks
  size_t            end = mi_min(i + n + look, region->n_used), best = i;
  size_t found = 0, n_backed = 0; // so many chunks before `at` are free; backed slices in the last n - 1 of them
  *most = 0;
  for (size_t at = i; at < end && *most < n_slices; at++) {
    if (!_mi_chunk_is_free(region, at)) {
      found = n_backed = 0;
      continue;
    }
    size_t n_here = n_backed + mi_popcount32(chunks[at].dirty_bits & last);
    if (++found >= n && n_here > *most) {
      *most = n_here;
      best = at + 1 - n;
    }
    n_backed += mi_popcount32(chunks[at].dirty_bits);
    if (found >= n) n_backed -= mi_popcount32(chunks[at + 1 - n].dirty_bits);
  }
  return best;
}

// Of the runs of free chunks of each region, or (`look` 0) of the lowest of each, the one where most of n slices is backed, if that is
// more than `choice` has.
static void place_choose(bool is_huge, size_t n, size_t look, place_choice_t* choice) {
  for (mi_region_t* region = &_mi_region_all[is_huge]; region != NULL; region = region->next) {
    if (region->nonempty[MI_CHUNK_BY_BACKED][MI_CHUNK_NONE] == 0) continue;
    size_t n_chunks = mi_div_up(n, MI_CHUNK_SLICES), n_backed = 0, i = _mi_chunk_find_there(region, n_chunks);
    if (i != SIZE_MAX) i = _mi_place_most_backed(region, i, n_chunks, look, n, &n_backed);
    if (is_huge && n_backed > 0) n_backed -= mi_min(n_backed, _mi_chunk_n_behind(region, i, n));
    if (n_backed > choice->n_backed) *choice = (place_choice_t){region, i * MI_CHUNK_SLICES, n_backed};
  }
}

// The same in chunks that are in use: the first run there, whatever is backed.
static void place_choose_used(bool is_huge, size_t n, place_choice_t* choice) {
  for (mi_region_t* region = &_mi_region_all[is_huge]; region != NULL && choice->region == NULL;
       region = region->next) {
    size_t slice = place_find_used(region, n, MI_CHUNK_MIXED);
    if (slice != SIZE_MAX) *choice = (place_choice_t){region, slice, _mi_place_n_backed(region, slice, n)};
  }
}

// Blocks of more than a chunk.  What is there already comes first: it costs no page fault, and leaves the peak of memory as it is
// (docs/decisions/051).  If half of a run is not backed, that where most is comes first, be it in chunks in use or in free ones.  Then huge
// pages for what is going to be dense, but in a small process only for very large blocks; others take them where more than half is there.
static bool place_try_large(size_t n, mi_request_t request, mi_run_t* run) {
  bool           is_small = (_mi_region_all[0].n_used < PLACE_HUGE_FROM && n <= PLACE_LARGE);
  bool           is_dense = (request == MI_REQUEST_DENSE && !is_small && _mi_region_may_be_huge());
  place_choice_t choice = {NULL, 0, 0};
  place_choose_used(is_dense, n, &choice);
  if (choice.n_backed <= n / 2) {
    // A block that has grown needs room behind it more than memory that is backed.
    size_t look = (request == MI_REQUEST_GROWN ? 0 : PLACE_LOOK);
    place_choose(is_dense, n, look, &choice);
    if (!is_dense) choice.n_backed = mi_max(choice.n_backed, n / 2);
    place_choose(!is_dense, n, look, &choice);
  }
  if (choice.region != NULL) {
    place_take_run(choice.region, choice.slice, n, 1, MI_CHUNK_MIXED, run);
    return true;
  }
  return is_dense && place_may_open_huge(n * MI_SLICE_SIZE + MI_CHUNK_SIZE) &&
         (place_try_each(true, n, 1, MI_CHUNK_MIXED, true, run) || place_try_added(true, n, 1, MI_CHUNK_MIXED, run));
}

// A large block in a huge page that is backed and free.
static bool place_try_free_huge(size_t n, mi_run_t* run) {
  for (mi_region_t* region = &_mi_region_all[MI_REGION_HUGE]; region != NULL; region = region->next) {
    if (place_try_fullest(region, MI_CHUNK_NONE, n, MI_CHUNK_MIXED, run)) return true;
  }
  return false;
}

// Huge-page regions are for pages in huge-page chunks and for dense blocks, but what those have given back is for all (`may_break`: a
// huge page that is free, too); and when nothing else is left, so is the rest of them.
static bool place_try_any(size_t n, size_t align, mi_chunk_kind_t kind, bool may_break, mi_run_t* run) {
  return place_try_each(false, n, align, kind, false, run) || place_try_each(true, n, align, kind, false, run) ||
         (may_break && place_try_free_huge(n, run)) || place_try_each(false, n, align, kind, true, run) ||
         place_try_added(false, n, align, kind, run) || place_try_each(true, n, align, kind, true, run);
}

// Where memory only grows all that is free is looked through before there is more.
static bool place_try_grown(size_t n, size_t align, mi_request_t request, mi_run_t* run) {
  bool may_grow =
      (request == MI_REQUEST_META || (_mi_window_is_open() && _mi_option_get_fast(mi_option_disallow_os_alloc) == 0));
  if (place_try_each(false, n, align, MI_CHUNK_MIXED, false, run)) return true;
  do {
    for (mi_region_t* region = &_mi_region_all[0]; region != NULL; region = region->next) {
      if (_mi_place_anywhere(region, n, align, MI_REQUEST_MIXED, run)) return true;
    }
  } while (may_grow && n <= SIZE_MAX / MI_SLICE_SIZE - align && _mi_window_grow(n + align - 1));
  return false;
}

// What is ours; maps more of it if need be.
void _mi_place_own(size_t n, size_t align, mi_request_t request, mi_run_t* run) {
  if (!MI_PRIM_VIRTUAL) {
    place_try_grown(n, align, request, run);
    return;
  }
  mi_chunk_kind_t kind = place_kind(request, false);
  if (place_is_filled(n, align, request) && place_try_huge(n, place_kind(request, true), kind, run)) return;
  if (n > MI_CHUNK_SLICES && align == 1 && request != MI_REQUEST_THIN && place_try_large(n, request, run)) return;
  // A block that has grown, or may, needs room behind it.
  bool may_break = (request == MI_REQUEST_MIXED && n <= MI_CHUNK_SLICES && align == 1);
  if (place_try_any(n, align, kind, may_break, run)) return;
  bool may_open = (_mi_option_get_fast(mi_option_disallow_os_alloc) == 0);
  if (may_open && _mi_shrink_regions()) place_try_any(n, align, kind, false, run);
}

// Only from that region.
bool _mi_place_bound(mi_region_t* region, size_t n, size_t align, mi_request_t request, mi_run_t* run) {
  mi_chunk_kind_t kind = place_kind(request, region->is_huge);
  return place_try(region, n, align, kind, false, run) || place_try(region, n, align, kind, true, run);
}

// From the arenas that are for all: first those of the node, then those of none, then those of others.  They come before
// memory of our own, since the program has paid for them already.
bool _mi_place_shared(size_t n, size_t align, mi_request_t request, size_t arena, mi_run_t* run) {
  if (request == MI_REQUEST_META || _mi_option_get_fast(mi_option_disallow_arena_alloc) != 0) return false;
  int node = -1;
  if (_mi_space_n_bound > 0) {
    node = (int)(arena >= MI_ARENA_NEAR(0) ? arena - MI_ARENA_NEAR(0) : _mi_numa_node());
  }
  for (int far = 0; far <= (node >= 0 ? 2 : 0); far++) {
    for (size_t i = MI_REGION_HUGE + 1; i < _mi_region_count(); i++) {
      mi_region_t* region = &_mi_region_all[i];
      int          is_far = (region->numa_node == node ? 0 : (region->numa_node < 0 ? 1 : 2));
      if (region->is_exclusive || !_mi_region_is_arena(region) || (node >= 0 && is_far != far)) continue;
      if (_mi_place_bound(region, n, align, request, run)) return true;
    }
  }
  return false;
}

// ---- the last resort ------------------------------------------------------------------------------------------------

bool _mi_place_anywhere(mi_region_t* region, size_t n, size_t align, mi_request_t request, mi_run_t* run) {
  mi_chunk_kind_t kind = place_kind(request, region->is_huge);
  size_t          slice = _mi_chunk_find_slices(region, n + align - 1, kind);
  if (slice == SIZE_MAX) return false;
  region->is_mixed_up = MI_PRIM_VIRTUAL; // where memory only grows all chunks are for all
  place_take_run(region, slice, n, align, kind, run);
  return true;
}

// Before a request is refused all regions that may serve it are looked through, and parts of chunks will do.
void _mi_place_last(size_t n, size_t align, mi_request_t request, mi_run_t* run) {
  bool may_share = (request != MI_REQUEST_META && _mi_option_get_fast(mi_option_disallow_arena_alloc) == 0);
  bool may_open = (request == MI_REQUEST_META || _mi_option_get_fast(mi_option_disallow_os_alloc) == 0);
  for (size_t i = 0; i < _mi_region_count(); i++) {
    mi_region_t* region = &_mi_region_all[i];
    if (region->base == 0 || region->is_exclusive) continue;
    if (_mi_region_is_arena(region) && !may_share) continue;
    if (_mi_place_anywhere(region, n, align, request, run)) return;
    if (may_open && _mi_part_open(region, n + align - 1) && _mi_place_anywhere(region, n, align, request, run)) return;
  }
}

bool _mi_place_counted(size_t n, mi_request_t request, mi_run_t* run) {
  mi_chunk_kind_t kind = place_kind(request, false);
  for (mi_region_t* region = &_mi_region_all[0]; region != NULL && n <= MI_CHUNK_SLICES; region = region->next) {
    if (place_try_fullest(region, kind, n, kind, run)) return true;
    if (place_try_fullest(region, MI_CHUNK_NONE, n, kind, run)) return true;
  }
  return false;
}

// ---- how many -------------------------------------------------------------------------------------------------------

size_t _mi_place_fresh(void) {
  return mi_load_relaxed(&place_n_fresh);
}

size_t _mi_place_reused(void) {
  return mi_load_relaxed(&place_n_reused);
}

size_t _mi_place_n_backed(const mi_region_t* region, size_t slice, size_t n) {
  size_t n_backed = 0;
  for (size_t part; n > 0; slice += part, n -= part) {
    uint32_t bits = _mi_place_part(slice, n, &part);
    n_backed += mi_popcount32(bits & region->chunks[slice / MI_CHUNK_SLICES].dirty_bits);
  }
  return n_backed;
}

size_t _mi_place_n_taken(void) {
  return mi_load_relaxed(&place_n_taken);
}
