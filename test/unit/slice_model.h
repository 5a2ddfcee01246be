// A map of our own of each slice of one region, and operations on the region that are checked against it.
//
// A test sets `region` (and what it knows of its memory), calls map_begin, and takes and gives slices through here only.
#pragma once

#include "../check.h"
#include "../modes/support.h"
#include "arena/purge.h"
#include "arena/slices.h"
#include "base/track.h"

enum { max_chunks = 256, max_slices = max_chunks * MI_CHUNK_SLICES, max_live = 400, max_live_slices = 2000 };

static mi_region_t* region = &_mi_region_all[0];
static size_t       arena = MI_ARENA_ANY; // what is asked for
static bool         is_bounded;           // requests may be refused when the region is full
static bool         purged_is_stale;      // what was purged is not known to be zero

// What slices of a chunk hold when it is used for the first time.
static bool fresh_is_dirty, fresh_is_stale;

// ---- the map --------------------------------------------------------------------------------------------------------

static bool    map_used[max_slices];
static bool    map_dirty[max_slices];
static bool    map_stale[max_slices];
static uint8_t map_kind[max_chunks]; // of the chunks that have a slice in use
static size_t  map_n_used;           // chunks that were ever used
static size_t  map_elsewhere;        // purgeable slices of other regions

typedef struct live_s {
  size_t          slice, n;
  mi_chunk_kind_t kind;
  uint64_t        key;
} live_t;

static live_t live[max_live];
static size_t n_live, n_live_slices;

static uint32_t map_free_bits(size_t chunk) {
  uint32_t bits = 0;
  for (size_t i = 0; i < MI_CHUNK_SLICES; i++) bits |= (uint32_t)!map_used[chunk * MI_CHUNK_SLICES + i] << i;
  return bits;
}

static uint32_t map_dirty_bits(size_t chunk) {
  uint32_t bits = 0;
  for (size_t i = 0; i < MI_CHUNK_SLICES; i++) bits |= (uint32_t)map_dirty[chunk * MI_CHUNK_SLICES + i] << i;
  return bits;
}

static size_t map_purgeable(void) {
  size_t n = 0;
  if (region->is_pinned) return 0;
  for (size_t i = 0; i < max_slices; i++) n += !map_used[i] && map_dirty[i];
  return n;
}

static bool map_any(const bool* map, size_t slice, size_t n) {
  for (size_t i = slice; i < slice + n; i++) {
    if (map[i]) return true;
  }
  return false;
}

static bool map_is_zero(size_t slice, size_t n) {
  return !map_any(map_dirty, slice, n) && !map_any(map_stale, slice, n);
}

static mi_chunk_kind_t map_kind_of(size_t chunk) {
  return map_free_bits(chunk) == UINT32_MAX ? MI_CHUNK_NONE : (mi_chunk_kind_t)map_kind[chunk];
}

// How much a chunk can still give of its kind, of its free slices or of those that are backed.
static size_t map_room(size_t chunk, mi_chunk_list_t list) {
  uint32_t        bits = map_free_bits(chunk);
  mi_chunk_kind_t kind = map_kind_of(chunk);
  size_t          room = 0, run = 0;
  if (list == MI_CHUNK_BY_BACKED) bits &= map_dirty_bits(chunk);
  for (size_t i = 0; i < MI_CHUNK_SLICES; i++) {
    bool is_free = ((bits >> i) & 1) != 0;
    run = is_free ? run + 1 : 0;
    if (kind == MI_CHUNK_SMALL || kind == MI_CHUNK_HUGE) room += is_free;
    else if (run > room) room = run;
  }
  return room;
}

static bool map_may_have_run(size_t chunk) {
  mi_chunk_kind_t kind = map_kind_of(chunk);
  return chunk < map_n_used && (kind == MI_CHUNK_NONE || kind == MI_CHUNK_MIXED);
}

// How long the run is that begins in the chunk and goes on in the next two; 0: there is none, or it is of whole chunks.
static size_t map_run_across(size_t chunk) {
  size_t border = (chunk + 1) * MI_CHUNK_SLICES, begin = border, end = border;
  if (!map_may_have_run(chunk)) return 0;
  while (begin > chunk * MI_CHUNK_SLICES && !map_used[begin - 1]) begin--;
  while (end < border + 2 * MI_CHUNK_SLICES && map_may_have_run(end / MI_CHUNK_SLICES) && !map_used[end]) end++;
  bool is_whole = (border - begin == MI_CHUNK_SLICES && end >= border + MI_CHUNK_SLICES);
  return begin == border || end == border || is_whole ? 0 : end - begin;
}

// What a chunk has for runs that begin in it.
static size_t map_reach(size_t chunk) {
  size_t across = map_run_across(chunk),
         room = (map_kind_of(chunk) == MI_CHUNK_NONE ? 0 : map_room(chunk, MI_CHUNK_BY_FREE));
  if (map_kind_of(chunk) == MI_CHUNK_NONE && across <= MI_CHUNK_SLICES) return 0;
  return across > room ? across : room;
}

// In which bucket such a chunk is: those for more than a chunk have eight lengths each.
static size_t map_bucket(size_t reach) {
  if (reach <= MI_CHUNK_SLICES) return reach;
  size_t i = (reach - MI_CHUNK_SLICES - 1) / 8;
  return MI_CHUNK_SLICES + 1 + (i < MI_CHUNK_LONG ? i : MI_CHUNK_LONG - 1);
}

// The least that a chunk in use has and that is enough; 0: none has.
static size_t map_fullest(mi_chunk_kind_t kind, size_t needed, mi_chunk_list_t list) {
  size_t best = 0;
  for (size_t c = 0; c < map_n_used; c++) {
    size_t room = (map_kind_of(c) == kind ? map_room(c, list) : 0);
    if (room > 0 && kind == MI_CHUNK_MIXED && list == MI_CHUNK_BY_FREE)
      room = map_reach(c) <= MI_CHUNK_SLICES ? map_reach(c) : 0;
    if (room >= needed && (best == 0 || room < best)) best = room;
  }
  return best;
}

// Does a run that long begin in one of the three chunks up to this one?  As one that is aligned may begin later.
static bool map_is_in_long(size_t chunk, size_t needed) {
  for (size_t c = chunk; c + 2 >= chunk && c <= chunk; c--) {
    if (map_run_across(c) >= needed) return true;
  }
  return false;
}

// Has a bucket of long runs only those that suffice?  Of others not all chunks are looked at.
static bool map_has_long(size_t needed) {
  size_t from = (needed <= MI_CHUNK_SLICES ? MI_CHUNK_SLICES + 1 : map_bucket(needed) + 1);
  for (size_t c = 0; c < map_n_used && needed <= 2 * MI_CHUNK_SLICES; c++) {
    if (map_bucket(map_reach(c)) >= from) return true;
  }
  return false;
}

static size_t map_first_free(size_t n_chunks) {
  size_t found = 0;
  for (size_t c = 0; c < max_chunks && c < region->n_usable; c++) {
    found = (map_kind_of(c) == MI_CHUNK_NONE ? found + 1 : 0);
    if (found == n_chunks) return c + 1 - n_chunks;
  }
  return SIZE_MAX;
}

// The lowest n free slices, wherever they are; SIZE_MAX if there are none.
static size_t map_anywhere(size_t n) {
  size_t found = 0;
  for (size_t i = 0; i < max_slices && i < region->n_usable * MI_CHUNK_SLICES; i++) {
    found = (map_used[i] ? 0 : found + 1);
    if (found == n) return i + 1 - n;
  }
  return SIZE_MAX;
}

static void map_set(size_t slice, size_t n, bool used, mi_chunk_kind_t kind) {
  for (size_t i = slice; i < slice + n; i++) {
    if (used && map_kind_of(i / MI_CHUNK_SLICES) == MI_CHUNK_NONE) map_kind[i / MI_CHUNK_SLICES] = (uint8_t)kind;
    map_used[i] = used;
  }
}

// Chunks that the region has used meanwhile hold what they hold when they are fresh.
static void map_grow(void) {
  for (; map_n_used < region->n_used && map_n_used < max_chunks; map_n_used++) {
    for (size_t i = map_n_used * MI_CHUNK_SLICES; i < (map_n_used + 1) * MI_CHUNK_SLICES; i++) {
      map_dirty[i] = fresh_is_dirty;
      map_stale[i] = fresh_is_stale;
    }
  }
}

// What was in use before us stays so.
static void map_begin(void) {
  memset(map_used, 0, sizeof(map_used));
  memset(map_dirty, 0, sizeof(map_dirty));
  memset(map_stale, 0, sizeof(map_stale));
  map_n_used = region->n_used;
  for (size_t i = 0; i < region->n_used * MI_CHUNK_SLICES; i++) {
    const mi_chunk_t* chunk = &region->chunks[i / MI_CHUNK_SLICES];
    map_kind[i / MI_CHUNK_SLICES] = chunk->kind;
    map_used[i] = ((chunk->free_bits >> (i % MI_CHUNK_SLICES)) & 1) == 0;
    map_dirty[i] = ((chunk->dirty_bits >> (i % MI_CHUNK_SLICES)) & 1) != 0;
    map_stale[i] = ((chunk->stale_bits >> (i % MI_CHUNK_SLICES)) & 1) != 0;
  }
  map_elsewhere = _mi_chunk_purgeable() - map_purgeable();
}

// ---- the invariants -------------------------------------------------------------------------------------------------

static bool is_in_bucket(size_t chunk, mi_chunk_list_t list) {
  const mi_chunk_t* state = &region->chunks[chunk];
  size_t            bucket = state->bucket[list];
  bool              is_long = (bucket > MI_CHUNK_SLICES);
  uint32_t          at =
      is_long ? region->long_buckets[bucket - MI_CHUNK_SLICES - 1] : region->buckets[list][state->kind][bucket];
  for (size_t i = 0; at != 0 && i <= max_chunks; i++) {
    if (at == chunk + 1) return true;
    at = region->chunks[at - 1].next[list];
  }
  return false;
}

static void check_chunk(size_t c) {
  const mi_chunk_t* chunk = &region->chunks[c];
  bool              is_free = ((region->free_chunks[c / 64] >> (c % 64)) & 1) != 0;
  CHECK_EQ(chunk->free_bits, map_free_bits(c)); // A1
  CHECK_EQ(chunk->dirty_bits, map_dirty_bits(c));
  CHECK_EQ(chunk->kind, map_kind_of(c));
  CHECK_EQ(is_free, chunk->free_bits == UINT32_MAX); // A2
  bool is_of_runs = (chunk->kind == MI_CHUNK_MIXED || is_free);
  CHECK_EQ(chunk->bucket[MI_CHUNK_BY_FREE], is_of_runs ? map_bucket(map_reach(c)) : map_room(c, MI_CHUNK_BY_FREE));
  CHECK_EQ(chunk->bucket[MI_CHUNK_BY_BACKED], map_room(c, MI_CHUNK_BY_BACKED));
  for (mi_chunk_list_t list = MI_CHUNK_BY_FREE; list < MI_CHUNK_LISTS; list++) {
    CHECK(chunk->bucket[list] == 0 || is_in_bucket(c, list));
  }
}

static void check_all(void) {
  CHECK(region->n_used <= max_chunks);
  for (size_t c = 0; c < region->n_used && c < max_chunks; c++) check_chunk(c);
  for (size_t c = region->n_used; c < max_chunks; c++) CHECK_EQ(map_free_bits(c), UINT32_MAX);
  CHECK_EQ(_mi_chunk_purgeable(), map_elsewhere + map_purgeable()); // A4
}

// ---- contents -------------------------------------------------------------------------------------------------------

// The first word of a slice, and one in it that is always the same: few OS pages are touched.
static uint64_t* word_of(size_t slice, size_t which) {
  size_t    at = (which == 0 ? 0 : (size_t)(mix64(slice) % (MI_SLICE_SIZE / 8)) * 8);
  uint64_t* word = (uint64_t*)(void*)(_mi_region_slice_start(region, slice) + at);
  mi_track_readable(word, sizeof(*word)); // slices without blocks are out of bounds to tools
  return word;
}

static void fill(size_t slice, size_t n, uint64_t key) {
  for (size_t i = slice; i < slice + n; i++) *word_of(i, 0) = *word_of(i, 1) = pattern_word(key, i);
}

static void check_filled(size_t slice, size_t n, uint64_t key) {
  for (size_t i = slice; i < slice + n; i++) {
    uint64_t want = pattern_word(key, i);
    CHECK_FOR(*word_of(i, 0) == want && *word_of(i, 1) == want, "slice %zu", i);
  }
}

static void check_zero(size_t slice, size_t n) {
  for (size_t i = slice; i < slice + n; i++) CHECK_FOR(*word_of(i, 0) == 0 && *word_of(i, 1) == 0, "slice %zu", i);
}

// ---- taking and giving ----------------------------------------------------------------------------------------------

// The first slice from there on that is aligned so.
static size_t align_slice(size_t slice, size_t align) {
  size_t first = region->base / MI_SLICE_SIZE;
  return (first + slice + align - 1) / align * align - first;
}

enum { apart = 15 }; // arena/place.c

// Is the end of the chunk before free for large blocks?
static bool map_is_behind(size_t chunk) {
  return chunk > 0 && map_kind_of(chunk - 1) == MI_CHUNK_MIXED && !map_used[chunk * MI_CHUNK_SLICES - 1];
}

// Where n slices are taken that no partly used chunk of their kind has: in wholly free chunks, or else anywhere.
static size_t map_first(size_t n, mi_chunk_kind_t kind) {
  bool   is_huge = (region == &_mi_region_all[MI_REGION_HUGE]), is_mixed = (kind == MI_CHUNK_MIXED);
  size_t n_chunks = (n + MI_CHUNK_SLICES - 1) / MI_CHUNK_SLICES, chunk = map_first_free(n_chunks);
  if (chunk == SIZE_MAX) return map_anywhere(n);
  // Among huge pages, pages leave chunks behind large blocks.
  if (is_huge && !is_mixed && map_is_behind(chunk)) {
    chunk = map_first_free(apart + n_chunks);
    if (map_is_behind(chunk)) chunk += apart;
  }
  size_t slice = chunk * MI_CHUNK_SLICES;
  // In an arena, or in huge pages, a run begins where the one before it ended.
  if (!(is_bounded || is_huge) || !is_mixed || !map_is_behind(chunk)) return slice;
  while (!map_used[slice - 1]) slice--;
  return slice;
}

// Chunks of region 1 that are wholly free are taken for what of them is backed.
static size_t map_fullest_backed(size_t n, mi_chunk_kind_t kind) {
  if (n > MI_CHUNK_SLICES || kind == MI_CHUNK_MIXED) return 0;
  size_t backed = map_fullest(kind, n, MI_CHUNK_BY_BACKED);
  if (backed == 0 && region == &_mi_region_all[MI_REGION_HUGE] && map_fullest(kind, n, MI_CHUNK_BY_FREE) == 0)
    backed = map_fullest(MI_CHUNK_NONE, n, MI_CHUNK_BY_BACKED);
  return backed;
}

static size_t map_n_dirty(size_t slice, size_t n) {
  size_t n_dirty = 0;
  for (size_t i = slice; i < slice + n; i++) n_dirty += map_dirty[i];
  return n_dirty;
}

enum { look = 64 }; // chunks beyond the first ones (arena/place.c)

// Where in wholly free chunks most of a run of more than a chunk is backed, the lowest place of several; SIZE_MAX: nothing is.
static size_t map_most_backed(size_t needed) {
  size_t n_chunks = (needed + MI_CHUNK_SLICES - 1) / MI_CHUNK_SLICES, first = map_first_free(n_chunks);
  size_t most = 0, best = SIZE_MAX;
  if (first == SIZE_MAX) return SIZE_MAX;
  for (size_t c = first, n_free = 0; c < region->n_used && c < first + n_chunks + look; c++) {
    n_free = (map_free_bits(c) == UINT32_MAX ? n_free + 1 : 0);
    if (n_free < n_chunks) continue;
    size_t slice = (c + 1 - n_chunks) * MI_CHUNK_SLICES, n_dirty = map_n_dirty(slice, needed);
    if (n_dirty <= most) continue;
    most = n_dirty;
    best = slice;
  }
  return best;
}

// A run of any length is in the least that suffices within a chunk or across a border, or in a longer one, or is new; if it is longer
// than a chunk, that is where most is backed, unless a region is asked for, or half of a run in chunks that are in use is.
static void check_mixed(mi_run_t run, size_t needed, size_t align) {
  size_t chunk = run.slice / MI_CHUNK_SLICES;
  size_t fullest = (needed <= MI_CHUNK_SLICES ? map_fullest(MI_CHUNK_MIXED, needed, MI_CHUNK_BY_FREE) : 0);
  bool   may_choose = (needed > MI_CHUNK_SLICES && align == 1 && arena == MI_ARENA_ANY);
  size_t most_backed = (may_choose ? map_most_backed(needed) : SIZE_MAX);
  size_t first = (most_backed != SIZE_MAX ? most_backed : align_slice(map_first(needed, MI_CHUNK_MIXED), align));
  bool   is_new = (run.slice == first);
  if (fullest > 0) CHECK(map_reach(chunk) == fullest || (align > 1 && chunk > 0 && map_reach(chunk - 1) == fullest));
  else if (most_backed != SIZE_MAX && run.slice != most_backed) {
    size_t n_dirty = map_n_dirty(run.slice, needed);
    CHECK(map_is_in_long(chunk, needed) && (n_dirty > needed / 2 || n_dirty >= map_n_dirty(most_backed, needed)));
  }
  else if (map_has_long(needed) && most_backed == SIZE_MAX) CHECK(map_is_in_long(chunk, needed));
  else CHECK(is_new || (needed > MI_CHUNK_SLICES && needed <= 2 * MI_CHUNK_SLICES && map_is_in_long(chunk, needed)));
}

// What the arena gave is what it had to give.
static void check_run(mi_run_t run, size_t n, size_t align, mi_chunk_kind_t kind) {
  size_t needed = n + align - 1;
  size_t fullest = (needed <= MI_CHUNK_SLICES ? map_fullest(kind, needed, MI_CHUNK_BY_FREE) : 0);
  size_t backed = map_fullest_backed(needed, kind);
  size_t chunk = run.slice / MI_CHUNK_SLICES;
  CHECK_EQ(run.n_slices, n);
  CHECK(is_aligned(_mi_region_slice_start(region, run.slice), align * MI_SLICE_SIZE));
  CHECK_FOR(!map_any(map_used, run.slice, n), "slice %zu is in use", run.slice);
  CHECK_EQ(run.is_zero, map_is_zero(run.slice, n)); // A3
  if (run.is_zero) check_zero(run.slice, n);
  if (kind == MI_CHUNK_MIXED) {
    check_mixed(run, needed, align);
    return;
  }
  if (fullest > 0) CHECK_EQ(map_kind_of(chunk), kind);
  if (backed > 0) CHECK_EQ(map_room(chunk, MI_CHUNK_BY_BACKED), backed); // what is backed comes first
  else if (fullest > 0) CHECK_EQ(map_room(chunk, MI_CHUNK_BY_FREE), fullest);
  else CHECK_EQ(run.slice, align_slice(map_first(needed, kind), align));
}

// SIZE_MAX if the region is full.
static size_t take(size_t n, size_t align, mi_chunk_kind_t kind) {
  mi_run_t run = _mi_slices_alloc(n, align, (mi_request_t)kind, arena); // they have the same numbers
  if (is_bounded && run.region == NULL) {
    CHECK_FOR(map_anywhere(n + align - 1) == SIZE_MAX, "%zu slices of kind %d were refused", n, (int)kind);
    return SIZE_MAX;
  }
  CHECK(run.region == region);
  CHECK_FOR(run.slice + n <= max_slices, "slice %zu", run.slice);
  if (run.region != region || run.slice + n > max_slices) _exit(1); // no map for that
  map_grow();
  check_run(run, n, align, kind);
  map_set(run.slice, n, true, kind);
  return run.slice;
}

static void give(size_t slice, size_t n, bool is_clean) {
  _mi_slices_free(region, slice, n, is_clean);
  map_set(slice, n, false, MI_CHUNK_NONE);
  for (size_t i = slice; i < slice + n; i++) map_dirty[i] = !is_clean;
  if (is_clean) memset(map_stale + slice, 0, n);
}

static void take_random(rng_t* r) {
  live_t run = {0, 1, MI_CHUNK_SMALL, rng_next(r)};
  size_t align = 1;
  switch (rng_below(r, 5)) {
    case 0:
      if (region == &_mi_region_all[MI_REGION_HUGE]) run.kind = MI_CHUNK_HUGE;
      break;
    case 1:
      run.kind = MI_CHUNK_MEDIUM;
      run.n = 2 + rng_below(r, 7);
      if (rng_below(r, 4) == 0) align = 8;
      break;
    case 2:
      run.kind = MI_CHUNK_META;
      run.n = 1 + rng_below(r, 4);
      break;
    default:
      run.kind = MI_CHUNK_MIXED;
      run.n = 1 + rng_below(r, rng_below(r, 8) == 0 ? 100 : 20);
      align = (size_t)1 << rng_below(r, 7);
      if (rng_below(r, 2) == 0) align = 1;
      break;
  }
  if (n_live == max_live || n_live_slices + run.n > max_live_slices) return;
  run.slice = take(run.n, align, run.kind);
  if (run.slice == SIZE_MAX) return;
  fill(run.slice, run.n, run.key);
  n_live_slices += run.n;
  live[n_live++] = run;
}

// Some systems cannot clear what stays committed.
static void clean(void* start, size_t size) {
  int err = _mi_prim_purge(start, size);
  if (MI_PRIM_CHARGES) memset(start, 0, size);
  else CHECK_EQ(err, 0);
}

static void give_random(rng_t* r) {
  if (n_live == 0) return;
  live_t* run = &live[rng_below(r, n_live)];
  check_filled(run->slice, run->n, run->key);
  bool is_clean = (!region->is_pinned && rng_below(r, 8) == 0);
  if (is_clean) clean(_mi_region_slice_start(region, run->slice), run->n * MI_SLICE_SIZE);
  n_live_slices -= run->n;
  give(run->slice, run->n, is_clean);
  *run = live[--n_live];
}

static bool may_extend(size_t slice, size_t n) {
  if (slice + n > region->n_usable * MI_CHUNK_SLICES || map_any(map_used, slice, n)) return false;
  for (size_t i = slice; i < slice + n; i++) {
    mi_chunk_kind_t kind = map_kind_of(i / MI_CHUNK_SLICES);
    if (kind != MI_CHUNK_NONE && kind != MI_CHUNK_MIXED) return false;
  }
  return true;
}

static void extend_random(rng_t* r) {
  if (n_live == 0) return;
  live_t* run = &live[rng_below(r, n_live)];
  size_t  n = 1 + rng_below(r, rng_below(r, 4) == 0 ? 64 : 4);
  size_t  end = run->slice + run->n;
  bool    says_zero = false;
  if (run->kind != MI_CHUNK_MIXED || end + n > max_slices) return;
  bool want = may_extend(end, n);
  CHECK_EQ(_mi_slices_extend(region, end, n, &says_zero), want);
  if (!want) return;
  map_grow();
  CHECK_EQ(says_zero, map_is_zero(end, n));
  if (says_zero) check_zero(end, n);
  map_set(end, n, true, MI_CHUNK_MIXED);
  check_filled(run->slice, run->n, run->key);
  fill(end, n, run->key);
  run->n += n;
  n_live_slices += n;
}

static void skip_random(rng_t* r) {
  if (n_live == 0) return;
  const live_t* run = &live[rng_below(r, n_live)];
  size_t        n_dirty = 0, n_zero = 0, have_zero = 0;
  while (n_dirty < run->n && !map_is_zero(run->slice + n_dirty, 1)) n_dirty++;
  while (n_dirty + n_zero < run->n && map_is_zero(run->slice + n_dirty + n_zero, 1)) n_zero++;
  CHECK_EQ(_mi_slices_skip_dirty(region, run->slice, run->n, &have_zero), n_dirty);
  CHECK_EQ(have_zero, n_zero);
}

// What of a chunk was given back; a chunk that is wholly free goes back as a whole.
static size_t map_purged(size_t chunk) {
  size_t first = chunk * MI_CHUNK_SLICES, cleaned = 0;
  for (size_t i = first; i < first + MI_CHUNK_SLICES; i++) {
    bool is_dirty = ((region->chunks[chunk].dirty_bits >> (i - first)) & 1) != 0;
    if (is_dirty == map_dirty[i]) continue;
    CHECK(!is_dirty && !map_used[i]);
    if (!purged_is_stale && region->uncommitted == NULL) check_zero(i, 1);
    map_dirty[i] = is_dirty;
    map_stale[i] = purged_is_stale;
    cleaned++;
  }
  if (cleaned > 0 && map_kind_of(chunk) == MI_CHUNK_NONE) memset(map_stale + first, purged_is_stale, MI_CHUNK_SLICES);
  return cleaned;
}

// Which of the slices go back is the arena's choice; only those that are free, and as many as it says.
static void purge(size_t n) {
  size_t before = map_purgeable() + map_elsewhere;
  size_t done = _mi_purge_slices(n);
  size_t cleaned = 0;
  CHECK_FOR(done >= (n < before ? n : before), "%zu of %zu, wanted %zu", done, before, n);
  for (size_t c = 0; c < map_n_used; c++) cleaned += map_purged(c);
  size_t elsewhere = _mi_chunk_purgeable() - map_purgeable();
  CHECK_EQ(cleaned + map_elsewhere - elsewhere, done);
  map_elsewhere = elsewhere;
}

// ---- at random ------------------------------------------------------------------------------------------------------

static void check_random(rng_t* r, size_t n_ops) {
  for (size_t i = 0; i < n_ops; i++) {
    size_t op = rng_below(r, 100);
    bool   grow = (i / 500 % 2 == 0);
    if (op < 4) skip_random(r);
    else if (op < 14) extend_random(r);
    else if (op < 16) purge(rng_below(r, 2) == 0 ? SIZE_MAX : rng_below(r, 200));
    else if (op < (grow ? 70u : 40u)) take_random(r);
    else give_random(r);
    if (i % 16 == 0) check_all();
  }
  while (n_live > 0) give_random(r);
  check_all();
}
