// Proves: slices are handed out once, aligned, zero when it is said, and keep what is written to them; runs come from the
// fullest chunk that has them, and chunks become wholly free again; what is free and backed is counted exactly; purging
// gives it back and nothing else.  All against a map of our own of each slice.
#include "../check.h"
#include "../modes/support.h"
#include "mimalloc.h"
#include "arena/chunk.h"

enum { max_chunks = 256, max_slices = max_chunks * MI_CHUNK_SLICES, max_live = 400, max_live_slices = 2000 };

static mi_region_t* const region = &_mi_regions[0];

// ---- the map --------------------------------------------------------------------------------------------------------

static bool    map_used[max_slices];
static bool    map_dirty[max_slices];
static uint8_t map_kind[max_chunks]; // of the chunks that have a slice in use

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
  for (size_t i = 0; i < max_slices; i++) n += !map_used[i] && map_dirty[i];
  return n;
}

static bool map_any(const bool* map, size_t slice, size_t n) {
  for (size_t i = slice; i < slice + n; i++) {
    if (map[i]) return true;
  }
  return false;
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
    if (kind == MI_CHUNK_SMALL || kind == MI_CHUNK_DENSE) room += is_free;
    else if (run > room) room = run;
  }
  return room;
}

// The least that a chunk in use has and that is enough; 0: none has.
static size_t map_fullest(mi_chunk_kind_t kind, size_t needed, mi_chunk_list_t list) {
  size_t best = 0;
  for (size_t c = 0; c < max_chunks; c++) {
    size_t room = (map_kind_of(c) == kind ? map_room(c, list) : 0);
    if (room >= needed && (best == 0 || room < best)) best = room;
  }
  return best;
}

static size_t map_first_free(size_t n_chunks) {
  size_t found = 0;
  for (size_t c = 0; c < max_chunks; c++) {
    found = (map_kind_of(c) == MI_CHUNK_NONE ? found + 1 : 0);
    if (found == n_chunks) return c + 1 - n_chunks;
  }
  return SIZE_MAX;
}

static void map_set(size_t slice, size_t n, bool used, mi_chunk_kind_t kind) {
  for (size_t i = slice; i < slice + n; i++) {
    if (used && map_kind_of(i / MI_CHUNK_SLICES) == MI_CHUNK_NONE) map_kind[i / MI_CHUNK_SLICES] = (uint8_t)kind;
    map_used[i] = used;
  }
}

// What was in use before us stays so.
static void map_begin(void) {
  for (size_t i = 0; i < region->n_used * MI_CHUNK_SLICES; i++) {
    const mi_chunk_t* chunk = &region->chunks[i / MI_CHUNK_SLICES];
    map_kind[i / MI_CHUNK_SLICES] = chunk->kind;
    map_used[i] = ((chunk->free_bits >> (i % MI_CHUNK_SLICES)) & 1) == 0;
    map_dirty[i] = ((chunk->dirty_bits >> (i % MI_CHUNK_SLICES)) & 1) != 0;
  }
}

// ---- the invariants -------------------------------------------------------------------------------------------------

static bool is_in_bucket(size_t chunk, mi_chunk_list_t list) {
  const mi_chunk_t* state = &region->chunks[chunk];
  uint32_t          at = region->buckets[list][state->kind][state->bucket[list]];
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
  CHECK_EQ(chunk->bucket[MI_CHUNK_BY_FREE], is_free ? 0 : map_room(c, MI_CHUNK_BY_FREE));
  CHECK_EQ(chunk->bucket[MI_CHUNK_BY_BACKED], map_room(c, MI_CHUNK_BY_BACKED));
  for (mi_chunk_list_t list = MI_CHUNK_BY_FREE; list < MI_CHUNK_LISTS; list++) {
    CHECK(chunk->bucket[list] == 0 || is_in_bucket(c, list));
  }
}

static void check_all(void) {
  CHECK(region->n_used <= max_chunks);
  for (size_t c = 0; c < region->n_used && c < max_chunks; c++) check_chunk(c);
  for (size_t c = region->n_used; c < max_chunks; c++) CHECK_EQ(map_free_bits(c), UINT32_MAX);
  CHECK_EQ(_mi_slices_purgeable(), map_purgeable()); // A4
}

// ---- contents -------------------------------------------------------------------------------------------------------

// The first word of a slice, and one in it that is always the same: few OS pages are touched.
static uint64_t* word_of(size_t slice, size_t which) {
  size_t at = (which == 0 ? 0 : (size_t)(mix64(slice) % (MI_SLICE_SIZE / 8)) * 8);
  return (uint64_t*)(void*)(_mi_region_slice_start(region, slice) + at);
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

// The first slice of a chunk, or the next one that is aligned so.
static size_t align_slice(size_t chunk, size_t align) {
  size_t first = region->base / MI_SLICE_SIZE;
  return (first + chunk * MI_CHUNK_SLICES + align - 1) / align * align - first;
}

// What the arena gave is what it had to give.
static void check_run(mi_run_t run, size_t n, size_t align, mi_chunk_kind_t kind) {
  size_t extra = align - 1;
  bool   in_chunk = (n + extra <= MI_CHUNK_SLICES);
  size_t backed = (in_chunk && kind != MI_CHUNK_MIXED ? map_fullest(kind, n + extra, MI_CHUNK_BY_BACKED) : 0);
  size_t fullest = (in_chunk ? map_fullest(kind, n + extra, MI_CHUNK_BY_FREE) : 0);
  size_t chunk = run.slice / MI_CHUNK_SLICES;
  CHECK_EQ(run.n_slices, n);
  CHECK(is_aligned(_mi_region_slice_start(region, run.slice), align * MI_SLICE_SIZE));
  CHECK_FOR(!map_any(map_used, run.slice, n), "slice %zu is in use", run.slice);
  CHECK_EQ(run.is_zero, !map_any(map_dirty, run.slice, n)); // A3
  if (fullest > 0) CHECK_EQ(map_kind_of(chunk), kind);
  if (backed > 0) CHECK_EQ(map_room(chunk, MI_CHUNK_BY_BACKED), backed); // what is backed comes first
  else if (fullest > 0) CHECK_EQ(map_room(chunk, MI_CHUNK_BY_FREE), fullest);
  else CHECK_EQ(run.slice, align_slice(map_first_free((n + extra + MI_CHUNK_SLICES - 1) / MI_CHUNK_SLICES), align));
  if (run.is_zero) check_zero(run.slice, n);
}

static size_t take(size_t n, size_t align, mi_chunk_kind_t kind) {
  mi_run_t run = _mi_slices_alloc(n, align, kind, MI_ARENA_ANY);
  CHECK(run.region == region);
  CHECK_FOR(run.slice + n <= max_slices, "slice %zu", run.slice);
  if (run.region != region || run.slice + n > max_slices) _exit(1); // no map for that
  check_run(run, n, align, kind);
  map_set(run.slice, n, true, kind);
  return run.slice;
}

static void give(size_t slice, size_t n, bool is_clean) {
  _mi_slices_free(region, slice, n, is_clean);
  map_set(slice, n, false, MI_CHUNK_NONE);
  for (size_t i = slice; i < slice + n; i++) map_dirty[i] = !is_clean;
}

static void take_random(rng_t* r) {
  live_t run = {0, 1, MI_CHUNK_SMALL, rng_next(r)};
  size_t align = 1;
  switch (rng_below(r, 5)) {
    case 0: break;
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
  fill(run.slice, run.n, run.key);
  n_live_slices += run.n;
  live[n_live++] = run;
}

static void give_random(rng_t* r) {
  if (n_live == 0) return;
  live_t* run = &live[rng_below(r, n_live)];
  check_filled(run->slice, run->n, run->key);
  bool is_clean = (rng_below(r, 8) == 0);
  if (is_clean) CHECK_EQ(_mi_prim_purge(_mi_region_slice_start(region, run->slice), run->n * MI_SLICE_SIZE), 0);
  n_live_slices -= run->n;
  give(run->slice, run->n, is_clean);
  *run = live[--n_live];
}

static bool may_extend(size_t slice, size_t n) {
  if (map_any(map_used, slice, n)) return false;
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
  CHECK_EQ(says_zero, !map_any(map_dirty, end, n));
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
  while (n_dirty < run->n && map_dirty[run->slice + n_dirty]) n_dirty++;
  while (n_dirty + n_zero < run->n && !map_dirty[run->slice + n_dirty + n_zero]) n_zero++;
  CHECK_EQ(_mi_slices_skip_dirty(region, run->slice, run->n, &have_zero), n_dirty);
  CHECK_EQ(have_zero, n_zero);
}

// Which of the slices go back is the arena's choice; only those that are free, and as many as it says.
static void purge(size_t n) {
  size_t before = map_purgeable();
  size_t done = _mi_slices_purge(n);
  size_t cleaned = 0;
  CHECK_FOR(done >= (n < before ? n : before), "%zu of %zu, wanted %zu", done, before, n);
  for (size_t i = 0; i < region->n_used * MI_CHUNK_SLICES && i < max_slices; i++) {
    bool is_dirty = ((region->chunks[i / MI_CHUNK_SLICES].dirty_bits >> (i % MI_CHUNK_SLICES)) & 1) != 0;
    if (is_dirty == map_dirty[i]) continue;
    CHECK(!is_dirty && !map_used[i]);
    check_zero(i, 1);
    map_dirty[i] = is_dirty;
    cleaned++;
  }
  CHECK_EQ(cleaned, done);
}

// ---- checks ---------------------------------------------------------------------------------------------------------

static void check_random(rng_t* r) {
  for (size_t i = 0; i < 6000 * test_scale(); i++) {
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

// Three chunks that are full but for one slice, four, two: they are filled up in the order of that, fullest first.
static void check_fullest_first(void) {
  static const size_t holes[] = {1, 4, 2};
  static const size_t order[] = {0, 2, 1};
  size_t              slices[4 * MI_CHUNK_SLICES], n = 0;
  size_t              chunks[COUNT_OF(holes)] = {0};
  while (map_fullest(MI_CHUNK_SMALL, 1, MI_CHUNK_BY_FREE) != 0)
    slices[n++] = take(1, 1, MI_CHUNK_SMALL); // what main began with
  size_t first = n;
  for (size_t i = 0; i < COUNT_OF(holes) * MI_CHUNK_SLICES; i++) slices[n++] = take(1, 1, MI_CHUNK_SMALL);
  for (size_t i = 0; i < COUNT_OF(holes); i++) {
    chunks[i] = slices[first + i * MI_CHUNK_SLICES] / MI_CHUNK_SLICES;
    for (size_t k = 0; k < holes[i]; k++) give(slices[first + i * MI_CHUNK_SLICES + 3 * k], 1, false);
  }
  for (size_t i = 0; i < COUNT_OF(order); i++) {
    for (size_t k = 0; k < holes[order[i]]; k++) {
      CHECK_EQ(take(1, 1, MI_CHUNK_SMALL) / MI_CHUNK_SLICES, chunks[order[i]]);
    }
  }
  check_all();
  // Wholly free again, each is there for any kind.
  for (size_t i = 0; i < n; i++) give(slices[i], 1, false);
  check_all();
  size_t slice = take(COUNT_OF(holes) * MI_CHUNK_SLICES, 1, MI_CHUNK_MIXED);
  CHECK(slice / MI_CHUNK_SLICES <= chunks[0]);
  give(slice, COUNT_OF(holes) * MI_CHUNK_SLICES, false);
  purge(SIZE_MAX);
}

static void check_low(void) {
  size_t slice = take(20, 1, MI_CHUNK_MIXED);
  give(slice, 20, false);
  size_t now = map_purgeable();
  _mi_slices_purgeable_low(true);
  CHECK_EQ(_mi_slices_purgeable_low(false), now);
  slice = take(15, 1, MI_CHUNK_MIXED);
  size_t low = map_purgeable();
  give(slice, 15, false);
  CHECK_EQ(_mi_slices_purgeable_low(true), low);
  CHECK_EQ(_mi_slices_purgeable_low(false), map_purgeable());
}

// Whole chunks and holes in chunks that are in use: the memory is the system's again, all else is as it was.
static void check_purge(void) {
  enum { n_run = 24 * MI_CHUNK_SLICES, n_holes = 64 };
  size_t holes[n_holes];
  size_t run = take(n_run, 1, MI_CHUNK_MIXED);
  for (size_t i = 0; i < n_holes; i++) {
    holes[i] = take(1, 1, MI_CHUNK_SMALL);
    memset(_mi_region_slice_start(region, holes[i]), 1, MI_SLICE_SIZE);
    fill(holes[i], 1, i);
  }
  memset(_mi_region_slice_start(region, run), 1, n_run * MI_SLICE_SIZE);
  give(run, n_run, false);
  for (size_t i = 1; i < n_holes; i += 2) give(holes[i], 1, false);
  size_t before = rss_now();
  purge(SIZE_MAX);
  size_t after = rss_now();
  CHECK_EQ(_mi_slices_purgeable(), 0);
  CHECK(rss_within("resident after purging 50 MiB", after, minus(before, 48 * MiB)));
  for (size_t i = 0; i < n_holes; i += 2) check_filled(holes[i], 1, i);
  for (size_t i = 0; i < n_holes; i += 2) give(holes[i], 1, false);
  run = take(n_run, 1, MI_CHUNK_MIXED);
  CHECK(!map_any(map_dirty, run + 2 * MI_CHUNK_SLICES, n_run - 2 * MI_CHUNK_SLICES));
  CHECK(is_zero(_mi_region_slice_start(region, run + 4 * MI_CHUNK_SLICES), 0,
                (n_run - 4 * MI_CHUNK_SLICES) * MI_SLICE_SIZE));
  give(run, n_run, true);
  purge(SIZE_MAX);
  check_all();
}

int main(int argc, char** argv) {
  watchdog(120);
  rng_t r = rng_make(test_seed(argc, argv));
  mi_option_set(mi_option_purge_delay, -1); // nobody but we
  CHECK(mi_malloc(1) != NULL);
  map_begin();
  check_all();
  check_fullest_first();
  check_low();
  check_random(&r);
  check_purge();
  return check_result();
}
