// Handing out slices.  Layer: arena.
//
// Chunks lie in buckets by what they can still give: the number of free slices (SMALL, DENSE) or the longest free run (the
// other kinds), once for all slices and once for those that are backed.  Taking from the lowest bucket that suffices is
// "the fullest chunk that fits", found with one bit operation; the others empty out whole.
//
// One lock guards it all: it is taken once per 64 KiB or more of use.
#include "chunk.h"

#include "../base/assert.h"
#include "../support/option.h"
#include "../support/stat.h"

static mi_atomic(size_t) chunk_purgeable;     // A4; written under the lock
static size_t            chunk_purgeable_low; // its minimum since the last restart

// So many chunks of region 0 were used before the first dense one is opened.
#define CHUNK_DENSE_FROM 4

mi_lock_t _mi_purge_lock;

// ---- buckets --------------------------------------------------------------------------------------------------------

// A wholly free chunk is found by its bit, and by what of it is backed.
static size_t chunk_bucket_of(const mi_chunk_t* chunk, mi_chunk_list_t list) {
  uint32_t bits = chunk->free_bits;
  if (list == MI_CHUNK_BY_BACKED) bits &= chunk->dirty_bits;
  else if (chunk->kind == MI_CHUNK_NONE) return 0;
  bool is_of_slices = (chunk->kind == MI_CHUNK_SMALL || chunk->kind == MI_CHUNK_DENSE);
  return is_of_slices ? mi_popcount32(bits) : mi_longest_run32(bits);
}

static void chunk_bucket_remove(mi_region_t* region, mi_chunk_t* chunk, mi_chunk_list_t list) {
  size_t    bucket = chunk->bucket[list];
  uint32_t* head = &region->buckets[list][chunk->kind][bucket];
  if (bucket == 0) return;
  if (chunk->prev[list] != 0) region->chunks[chunk->prev[list] - 1].next[list] = chunk->next[list];
  else *head = chunk->next[list];
  if (chunk->next[list] != 0) region->chunks[chunk->next[list] - 1].prev[list] = chunk->prev[list];
  if (*head == 0) region->nonempty[list][chunk->kind] &= ~((uint64_t)1 << bucket);
  chunk->bucket[list] = 0;
}

static void chunk_bucket_add(mi_region_t* region, mi_chunk_t* chunk, mi_chunk_list_t list, size_t bucket) {
  uint32_t  index = (uint32_t)(chunk - region->chunks) + 1;
  uint32_t* head = &region->buckets[list][chunk->kind][bucket];
  if (bucket == 0) return;
  chunk->next[list] = *head;
  chunk->prev[list] = 0;
  if (*head != 0) region->chunks[*head - 1].prev[list] = index;
  *head = index;
  region->nonempty[list][chunk->kind] |= (uint64_t)1 << bucket;
  chunk->bucket[list] = (uint8_t)bucket;
}

static void chunk_bucket_move(mi_region_t* region, mi_chunk_t* chunk, mi_chunk_list_t list) {
  size_t bucket = chunk_bucket_of(chunk, list);
  if (bucket == chunk->bucket[list]) return;
  chunk_bucket_remove(region, chunk, list);
  chunk_bucket_add(region, chunk, list, bucket);
}

static void chunk_bucket_update(mi_region_t* region, mi_chunk_t* chunk) {
  chunk_bucket_move(region, chunk, MI_CHUNK_BY_FREE);
  chunk_bucket_move(region, chunk, MI_CHUNK_BY_BACKED);
}

static void chunk_set_kind(mi_region_t* region, mi_chunk_t* chunk, mi_chunk_kind_t kind) {
  chunk_bucket_remove(region, chunk, MI_CHUNK_BY_FREE);
  chunk_bucket_remove(region, chunk, MI_CHUNK_BY_BACKED);
  chunk->kind = (uint8_t)kind;
}

// ---- whole chunks ---------------------------------------------------------------------------------------------------

static bool chunk_is_free(const mi_region_t* region, size_t i) {
  return i < region->n_used && ((region->free_chunks[i / 64] >> (i % 64)) & 1) != 0;
}

static void chunk_set_free(mi_region_t* region, size_t i) {
  region->free_chunks[i / 64] |= (uint64_t)1 << (i % 64);
  region->free_hint = mi_min(region->free_hint, i / 64);
}

static void chunk_clear_free(mi_region_t* region, size_t i) {
  region->free_chunks[i / 64] &= ~((uint64_t)1 << (i % 64));
}

// Chunks up to `end` (excluded) have been handed out once: the new ones are free and clean.
static bool chunk_use_to(mi_region_t* region, size_t end) {
  if (end > region->n_open && !_mi_region_open(region, end)) return false;
  for (size_t i = region->n_used; i < end; i++) {
    region->chunks[i].free_bits = UINT32_MAX;
    chunk_set_free(region, i);
  }
  region->n_used = mi_max(region->n_used, end);
  return true;
}

// The lowest run of n free chunks; opens new ones at the end if there is none.  Returns SIZE_MAX when out of memory.
static size_t chunk_find_free(mi_region_t* region, size_t n) {
  size_t n_words = mi_div_up(region->n_used, 64);
  while (region->free_hint < n_words && region->free_chunks[region->free_hint] == 0) region->free_hint++;
  size_t found = 0; // length of the run that ends before i
  size_t i = region->free_hint * 64;
  while (i < region->n_used) {
    uint64_t word = region->free_chunks[i / 64] >> (i % 64);
    if (word == 0) {
      i = (i / 64 + 1) * 64;
      found = 0;
    }
    else if ((word & 1) == 0) {
      i += mi_ctz64(word);
      found = 0;
    }
    else {
      i++;
      if (++found == n) return i - n;
    }
  }
  size_t first = region->n_used - found; // the last ones may be free: go on from there
  if (n > region->n_chunks - first || !chunk_use_to(region, first + n)) return SIZE_MAX;
  return first;
}

// ---- taking and putting slices --------------------------------------------------------------------------------------

static void chunk_count_purgeable(size_t n, bool add) {
  size_t now = mi_load_relaxed(&chunk_purgeable);
  now = add ? now + n : now - n;
  mi_store_relaxed(&chunk_purgeable, now);
  if (now < chunk_purgeable_low) chunk_purgeable_low = now;
}

// Takes the free slices `bits` of a chunk; a chunk that was wholly free gets that kind.
static void chunk_take(mi_region_t* region, size_t i, uint32_t bits, mi_chunk_kind_t kind) {
  mi_chunk_t* chunk = &region->chunks[i];
  mi_assert_internal((chunk->free_bits & bits) == bits);
  if (chunk->kind == MI_CHUNK_NONE) {
    chunk_clear_free(region, i);
    chunk_set_kind(region, chunk, kind);
  }
  chunk->free_bits &= ~bits;
  chunk_bucket_update(region, chunk);
  chunk_count_purgeable(mi_popcount32(bits & chunk->dirty_bits), false);
}

static void chunk_put(mi_region_t* region, size_t i, uint32_t bits) {
  mi_chunk_t* chunk = &region->chunks[i];
  mi_assert_internal((chunk->free_bits & bits) == 0);
  chunk->free_bits |= bits;
  chunk_count_purgeable(mi_popcount32(bits & chunk->dirty_bits), true);
  if (chunk->free_bits == UINT32_MAX) {
    chunk_set_kind(region, chunk, MI_CHUNK_NONE);
    chunk_set_free(region, i);
  }
  chunk_bucket_update(region, chunk);
}

// The part of [slice, slice + n) that lies in the chunk of `slice`, as bits; *n_part is its length.
static uint32_t chunk_part(size_t slice, size_t n, size_t* n_part) {
  size_t at = slice % MI_CHUNK_SLICES;
  *n_part = mi_min(n, MI_CHUNK_SLICES - at);
  return mi_mask32(*n_part) << at;
}

static bool slices_take(mi_region_t* region, size_t slice, size_t n, mi_chunk_kind_t kind) {
  bool is_zero = true;
  for (size_t part; n > 0; slice += part, n -= part) {
    uint32_t bits = chunk_part(slice, n, &part);
    size_t   i = slice / MI_CHUNK_SLICES;
    if ((region->chunks[i].dirty_bits & bits) != 0) is_zero = false;
    chunk_take(region, i, bits, kind);
  }
  return is_zero;
}

static void slices_put(mi_region_t* region, size_t slice, size_t n) {
  for (size_t part; n > 0; slice += part, n -= part) {
    uint32_t bits = chunk_part(slice, n, &part);
    chunk_put(region, slice / MI_CHUNK_SLICES, bits);
  }
}

static void slices_mark(mi_region_t* region, size_t slice, size_t n, bool dirty) {
  for (size_t part; n > 0; slice += part, n -= part) {
    uint32_t    bits = chunk_part(slice, n, &part);
    mi_chunk_t* chunk = &region->chunks[slice / MI_CHUNK_SLICES];
    if (dirty) chunk->dirty_bits |= bits;
    else chunk->dirty_bits &= ~bits;
  }
}

// ---- allocation -----------------------------------------------------------------------------------------------------

// The fullest chunk of a kind with n <= 32 slices, SIZE_MAX if there is none.
static size_t chunk_fullest(const mi_region_t* region, mi_chunk_list_t list, mi_chunk_kind_t kind, size_t n) {
  uint64_t buckets = region->nonempty[list][kind] & ~(((uint64_t)1 << n) - 1);
  return buckets == 0 ? SIZE_MAX : region->buckets[list][kind][mi_ctz64(buckets)] - 1;
}

// Where n <= 32 slices start in a partly used chunk that has them.  Backed slices first: they cost no page fault.
static size_t chunk_place(const mi_chunk_t* chunk, size_t n) {
  uint32_t backed = mi_runs32(chunk->free_bits & chunk->dirty_bits, n);
  return mi_ctz32(backed != 0 ? backed : mi_runs32(chunk->free_bits, n));
}

// The first of n free slices in chunks that are partly used, SIZE_MAX if there are none.  What is backed comes first: it
// costs no page fault, and leaves the peak of memory as it is.  But a large block that grows needs room behind it: runs of
// any length stay together (grow: 49 MiB instead of 62), and wholly free chunks of region 0 are not broken for what is
// backed (grow: 49 MiB instead of 145); those of region 1 are, since no large block looks for room there.
static size_t slices_find_used(const mi_region_t* region, size_t n, mi_chunk_kind_t kind) {
  size_t i = SIZE_MAX;
  if (n > MI_CHUNK_SLICES) return SIZE_MAX;
  if (kind != MI_CHUNK_MIXED) i = chunk_fullest(region, MI_CHUNK_BY_BACKED, kind, n);
  if (i == SIZE_MAX) i = chunk_fullest(region, MI_CHUNK_BY_FREE, kind, n);
  if (i == SIZE_MAX && kind != MI_CHUNK_MIXED && region == &_mi_regions[MI_REGION_DENSE])
    i = chunk_fullest(region, MI_CHUNK_BY_BACKED, MI_CHUNK_NONE, n);
  return i == SIZE_MAX ? SIZE_MAX : i * MI_CHUNK_SLICES + chunk_place(&region->chunks[i], n);
}

// The same in wholly free chunks; opens new ones.
static size_t slices_find_new(mi_region_t* region, size_t n) {
  size_t i = chunk_find_free(region, mi_div_up(n, MI_CHUNK_SLICES));
  return i == SIZE_MAX ? SIZE_MAX : i * MI_CHUNK_SLICES;
}

static bool slices_alloc_in(mi_region_t* region, size_t n, size_t align, mi_chunk_kind_t kind, bool is_new,
                            mi_run_t* run) {
  // Within a chunk a run is where it falls; take more and give the ends back.  Chunks are aligned as they are.
  size_t extra = align - 1;
  size_t slice = is_new ? slices_find_new(region, n + extra) : slices_find_used(region, n + extra, kind);
  if (slice == SIZE_MAX) return false;
  if (extra > 0)
    slice = (mi_align_up((region->base >> MI_SLICE_SHIFT) + slice, align)) - (region->base >> MI_SLICE_SHIFT);
  run->region = region;
  run->slice = slice;
  run->n_slices = n;
  run->is_zero = slices_take(region, slice, n, kind);
  return true;
}

bool _mi_slices_release_regions(void) {
  bool any = false;
  for (size_t i = MI_REGION_DENSE + 1; i < MI_REGION_COUNT; i++) {
    mi_region_t* region = &_mi_regions[i];
    size_t       n_dirty = 0;
    size_t       c = 0;
    if (region->base == 0 || region->is_single) continue;
    for (; c < region->n_used && chunk_is_free(region, c); c++) n_dirty += mi_popcount32(region->chunks[c].dirty_bits);
    if (c < region->n_used) continue;
    chunk_count_purgeable(n_dirty, false);
    _mi_region_remove(region);
    any = true;
  }
  return any;
}

static mi_region_t* slices_add_region(size_t size) {
  mi_region_t* region = _mi_region_add(size, MI_CHUNK_SIZE, false);
  if (region == NULL && _mi_slices_release_regions()) region = _mi_region_add(size, MI_CHUNK_SIZE, false);
  return region;
}

// Is there address space that was never opened?  Then it is memory that the system refused, and more address space would
// not help: each failure would only reserve another region.
static bool slices_have_space(size_t n) {
  for (size_t i = 0; i < MI_REGION_COUNT; i++) {
    const mi_region_t* region = &_mi_regions[i];
    if (region->is_single || i == MI_REGION_DENSE) continue;
    if (region->n_chunks - region->n_used >= mi_div_up(n, MI_CHUNK_SLICES)) return true;
  }
  return false;
}

// A huge page is the next step of extension, and like the smaller ones it is a fraction of what there is.  What is there
// already comes first.
static bool slices_alloc_dense(size_t n, mi_run_t* run) {
  mi_region_t* low = &_mi_regions[0];
  mi_region_t* dense = &_mi_regions[MI_REGION_DENSE];
  if (dense->base == 0 || low->n_used < CHUNK_DENSE_FROM || _mi_option_get_fast(mi_option_allow_thp) == 0) return false;
  if (slices_alloc_in(dense, n, 1, MI_CHUNK_DENSE, false, run)) return true;
  if (slices_alloc_in(low, n, 1, MI_CHUNK_SMALL, false, run)) return true;
  bool low_is_backed = (low->nonempty[MI_CHUNK_BY_BACKED][MI_CHUNK_NONE] != 0);
  return slices_alloc_in(low_is_backed ? low : dense, n, 1, low_is_backed ? MI_CHUNK_SMALL : MI_CHUNK_DENSE, true, run);
}

// From the regions that there are.  Region 1 is for dense pages, but what they have given back is for all; and when
// nothing else is left, so is the rest of it.
static bool slices_alloc_any(size_t n, size_t align, mi_chunk_kind_t kind, mi_run_t* run) {
  mi_region_t* dense = &_mi_regions[MI_REGION_DENSE];
  for (size_t i = 0; i < MI_REGION_COUNT; i++) {
    mi_region_t* region = &_mi_regions[i];
    if (region->is_single || i == MI_REGION_DENSE || region->n_chunks * MI_CHUNK_SLICES < n) continue;
    if (slices_alloc_in(region, n, align, kind, false, run)) return true;
    if (i == 0 && dense->base != 0 && slices_alloc_in(dense, n, align, kind, false, run)) return true;
    if (slices_alloc_in(region, n, align, kind, true, run)) return true;
  }
  return dense->base != 0 && dense->n_chunks * MI_CHUNK_SLICES >= n &&
         slices_alloc_in(dense, n, align, kind, true, run);
}

mi_run_t _mi_slices_alloc(size_t n, size_t align, mi_chunk_kind_t kind, size_t arena) {
  mi_run_t run = {NULL, 0, 0, false};
  _mi_lock_acquire(&_mi_arena_lock);
  if (arena != MI_ARENA_ANY) {
    mi_region_t* region = &_mi_regions[arena];
    if (!slices_alloc_in(region, n, align, kind, false, &run)) slices_alloc_in(region, n, align, kind, true, &run);
    _mi_lock_release(&_mi_arena_lock);
    return run;
  }
  bool found = (kind == MI_CHUNK_DENSE && slices_alloc_dense(n, &run));
  if (!found) {
    if (kind == MI_CHUNK_DENSE) kind = MI_CHUNK_SMALL;
    found = slices_alloc_any(n, align, kind, &run);
  }
  if (!found && n <= SIZE_MAX / MI_SLICE_SIZE - align && !slices_have_space(n + align - 1)) {
    mi_region_t* region = slices_add_region((n + align) * MI_SLICE_SIZE);
    if (region != NULL) slices_alloc_in(region, n, align, kind, true, &run);
  }
  _mi_lock_release(&_mi_arena_lock);
  return run;
}

void _mi_slices_free(mi_region_t* region, size_t slice, size_t n, bool is_clean) {
  _mi_lock_acquire(&_mi_arena_lock);
  slices_mark(region, slice, n, !is_clean);
  slices_put(region, slice, n);
  _mi_lock_release(&_mi_arena_lock);
}

static bool slices_are_free(mi_region_t* region, size_t slice, size_t n) {
  size_t end = mi_div_up(slice + n, MI_CHUNK_SLICES);
  if (end > region->n_chunks) return false;
  size_t used = mi_min(slice + n, region->n_used * MI_CHUNK_SLICES);
  for (size_t part, at = slice; at < used; at += part) {
    uint32_t          bits = chunk_part(at, used - at, &part);
    const mi_chunk_t* chunk = &region->chunks[at / MI_CHUNK_SLICES];
    if ((chunk->free_bits & bits) != bits) return false;
    // A run may not end up in a chunk of pages: their buckets count on pages only.
    if (chunk->kind != MI_CHUNK_NONE && chunk->kind != MI_CHUNK_MIXED) return false;
  }
  return chunk_use_to(region, end);
}

bool _mi_slices_extend(mi_region_t* region, size_t slice, size_t n, bool* is_zero) {
  _mi_lock_acquire(&_mi_arena_lock);
  bool ok = slices_are_free(region, slice, n);
  if (ok) *is_zero = slices_take(region, slice, n, MI_CHUNK_MIXED);
  _mi_lock_release(&_mi_arena_lock);
  return ok;
}

static bool slice_is_dirty(const mi_region_t* region, size_t slice) {
  return ((region->chunks[slice / MI_CHUNK_SLICES].dirty_bits >> (slice % MI_CHUNK_SLICES)) & 1) != 0;
}

size_t _mi_slices_skip_dirty(const mi_region_t* region, size_t slice, size_t n, size_t* n_zero) {
  size_t n_dirty = 0;
  size_t end = 0;
  _mi_lock_acquire(&_mi_arena_lock);
  while (n_dirty < n && slice_is_dirty(region, slice + n_dirty)) n_dirty++;
  end = n_dirty;
  while (end < n && !slice_is_dirty(region, slice + end)) end++;
  _mi_lock_release(&_mi_arena_lock);
  *n_zero = end - n_dirty;
  return n_dirty;
}

// ---- purging --------------------------------------------------------------------------------------------------------

size_t _mi_slices_purgeable(void) {
  return mi_load_relaxed(&chunk_purgeable);
}

size_t _mi_slices_purgeable_low(bool restart) {
  _mi_lock_acquire(&_mi_arena_lock);
  size_t low = chunk_purgeable_low;
  if (restart) chunk_purgeable_low = mi_load_relaxed(&chunk_purgeable);
  _mi_lock_release(&_mi_arena_lock);
  return low;
}

// Purges slices that were taken for it, without the arena lock; they are clean then.
static void slices_purge_run(mi_region_t* region, size_t slice, size_t n) {
  int err = _mi_prim_purge(_mi_region_slice_start(region, slice), n * MI_SLICE_SIZE);
  _mi_stat_count(&_mi_stats.purge_calls, 1);
  if (err == 0) _mi_stat_count(&_mi_stats.purged, (int64_t)(n * MI_SLICE_SIZE));
  _mi_slices_free(region, slice, n, err == 0);
}

#define PURGE_BATCH 8 // chunks per system call: so much is missing from the arena meanwhile, and may be opened anew

// Purges the highest run of wholly free, dirty chunks below chunk *end, at most `most` slices.  Returns how many slices
// were dirty (0: there are none), and in *end where the run started.
static size_t purge_free_chunks(mi_region_t* region, size_t* end, size_t most) {
  size_t n = 0;
  size_t n_dirty = 0;
  _mi_lock_acquire(&_mi_arena_lock);
  size_t i = mi_min(*end, region->n_used);
  for (; i > 0 && n < PURGE_BATCH && n_dirty < most; i--) {
    bool want = chunk_is_free(region, i - 1) && region->chunks[i - 1].dirty_bits != 0;
    if (!want && n > 0) break;
    if (!want) continue;
    n++;
    n_dirty += mi_popcount32(region->chunks[i - 1].dirty_bits);
  }
  for (size_t c = i; c < i + n; c++) chunk_take(region, c, UINT32_MAX, MI_CHUNK_MIXED);
  _mi_lock_release(&_mi_arena_lock);
  if (n > 0) slices_purge_run(region, i * MI_CHUNK_SLICES, n * MI_CHUNK_SLICES);
  *end = i;
  return n_dirty;
}

// The same for the highest partly used chunk with dirty free slices below *end.
static size_t purge_partial_chunk(mi_region_t* region, size_t* end) {
  uint32_t bits = 0;
  _mi_lock_acquire(&_mi_arena_lock);
  size_t i = mi_min(*end, region->n_used);
  while (i > 0 && bits == 0) {
    i--;
    const mi_chunk_t* chunk = &region->chunks[i];
    if (chunk->kind != MI_CHUNK_NONE) bits = chunk->free_bits & chunk->dirty_bits;
  }
  if (bits != 0) chunk_take(region, i, bits, MI_CHUNK_MIXED);
  _mi_lock_release(&_mi_arena_lock);
  for (uint32_t rest = bits; rest != 0;) {
    size_t at = mi_ctz32(rest);
    size_t n = (~(rest >> at) == 0 ? MI_CHUNK_SLICES - at : mi_ctz32(~(rest >> at)));
    slices_purge_run(region, i * MI_CHUNK_SLICES + at, n);
    rest &= ~(mi_mask32(n) << at);
  }
  *end = i;
  return mi_popcount32(bits);
}

static size_t purge_region(mi_region_t* region, size_t most) {
  size_t done = 0;
  for (int partial = 0; partial <= 1; partial++) {
    size_t n = 1;
    size_t end = SIZE_MAX;
    while (done < most && n > 0) {
      // Held from taking to putting back, so that a fork never finds slices in between.
      _mi_lock_acquire(&_mi_purge_lock);
      n = (partial == 0 ? purge_free_chunks(region, &end, most - done) : purge_partial_chunk(region, &end));
      _mi_lock_release(&_mi_purge_lock);
      done += n;
    }
  }
  return done;
}

size_t _mi_slices_purge(size_t n) {
  size_t done = 0;
  for (size_t i = 0; i < MI_REGION_COUNT && done < n && _mi_slices_purgeable() > 0; i++) {
    done += purge_region(&_mi_regions[i], n - done);
  }
  return done;
}
