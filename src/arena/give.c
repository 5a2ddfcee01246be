// Giving free slices back to the system.  Layer: arena.
#include "give.h"

#include "../support/option.h"
#include "commit.h"
#include "hole.h"
#include "place.h"
#include "slices.h"

// Gives the contents of slices back that were taken for it, without the arena lock.  What the system does with memory of
// the program's is the program's choice of mapping; nor do we ask again there when it refuses.
static mi_contents_t give_contents(mi_region_t* region, size_t slice, size_t n) {
  char*  start = _mi_region_slice_start(region, slice);
  size_t size = n * MI_SLICE_SIZE;
  if (region->commit == NULL && _mi_region_discard(start, size)) return MI_CONTENTS_STALE;
  if (region->uncommitted != NULL) {
    bool ok = _mi_commit_undo(region, slice, n);
    if (region->commit != NULL) return MI_CONTENTS_STALE;
    return ok ? MI_CONTENTS_ZERO : MI_CONTENTS_AS_BEFORE; // the next purge asks for what is still committed
  }
  if (region->origin != MI_REGION_GIVEN)
    return _mi_region_purge(start, size) == 0 ? MI_CONTENTS_ZERO : MI_CONTENTS_AS_BEFORE;
  if (MI_PRIM_PURGE_MAPS_ANEW) _mi_prim_discard(start, size);
  else _mi_prim_purge(start, size);
  return MI_CONTENTS_STALE;
}

// False if the system refuses.
static bool give_run(mi_region_t* region, size_t slice, size_t n) {
  mi_contents_t contents = give_contents(region, slice, n);
  _mi_slices_put(region, slice, n, contents);
  return _mi_chunk_went_back(contents);
}

#define GIVE_BATCH 8 // chunks per system call: so much is missing from the arena meanwhile, and may be opened anew

static bool give_wants(const mi_region_t* region, size_t i) {
  return _mi_chunk_is_free(region, i) && region->chunks[i].dirty_bits != 0;
}

// Takes wholly free, dirty chunks: one, and those next to it, so that one call to the system is made
// for up to GIVE_BATCH of them, with `most` dirty slices or a few more.  *first is the lowest; returns how many there are.
static size_t give_take_free(mi_region_t* region, size_t most, size_t* first, size_t* n_dirty) {
  size_t i = _mi_chunk_most_backed(region, MI_CHUNK_NONE);
  if (i == SIZE_MAX) return 0;
  size_t end = i + 1;
  *n_dirty = mi_popcount32(region->chunks[i].dirty_bits);
  while (end - i < GIVE_BATCH && *n_dirty < most && give_wants(region, end))
    *n_dirty += mi_popcount32(region->chunks[end++].dirty_bits);
  while (end - i < GIVE_BATCH && *n_dirty < most && i > 0 && give_wants(region, i - 1))
    *n_dirty += mi_popcount32(region->chunks[--i].dirty_bits);
  for (size_t c = i; c < end; c++) _mi_chunk_take(region, c, UINT32_MAX, MI_CHUNK_MIXED);
  *first = i;
  return end - i;
}

// What is given, and how.
typedef struct give_way_s {
  mi_recall_t* recall; // NULL: in trade
  bool         partial, splits_huge;
} give_way_t;

// What the system does not take is as dirty as before when it is put back, and may be found again.  After so many refusals in a row a
// region is left alone: a system that refuses memory which is locked, or the call, does so with all of it, and each request that finds
// no memory asks again.
#define GIVE_REFUSALS 4

typedef struct give_done_s {
  size_t n_given;   // slices
  int    n_refused; // runs that the system did not take, since it last took one that was dirty
} give_done_t;

static void give_counted(mi_region_t* region, size_t slice, size_t n, size_t n_dirty, give_done_t* done) {
  if (!give_run(region, slice, n)) done->n_refused++;
  else if (n_dirty > 0) *done = (give_done_t){done->n_given + n_dirty, 0};
}

// May slices of it go?  No function of the program is called for a trade, which any malloc may make; and nothing is left of a region
// that is lost.  Caller holds the arena lock: until slices are taken, an entry may become that of another region.
static bool give_may(const give_way_t* way, const mi_region_t* region) {
  bool is_huge = region->is_huge && _mi_option_get_fast(mi_option_allow_thp) != 0;
  if (way->partial && is_huge && !way->splits_huge) return false;
  return !region->is_pinned && region->origin != MI_REGION_LOST && (way->recall != NULL || region->commit == NULL);
}

// False if there are none that are dirty.
static bool give_free_chunks(const give_way_t* way, mi_region_t* region, size_t most, give_done_t* done) {
  size_t i = 0, n_dirty = 0;
  _mi_lock_acquire(&_mi_region_lock);
  size_t n = (give_may(way, region) ? give_take_free(region, most, &i, &n_dirty) : 0);
  _mi_lock_release(&_mi_region_lock);
  if (n == 0) return false;
  _mi_hole_close(region, i, n);
  give_counted(region, i * MI_CHUNK_SLICES, n * MI_CHUNK_SLICES, n_dirty, done);
  return true;
}

// What is left after refusals is put back as it is.
static void give_bits(mi_region_t* region, size_t i, uint32_t bits, uint32_t dirty, give_done_t* done) {
  while (bits != 0) {
    size_t   at = mi_ctz32(bits), n = mi_low_ones64(bits >> at);
    uint32_t run = mi_mask32(n) << at;
    size_t   slice = i * MI_CHUNK_SLICES + at;
    if (done->n_refused < GIVE_REFUSALS) give_counted(region, slice, n, mi_popcount32(run & dirty), done);
    else _mi_slices_put(region, slice, n, MI_CONTENTS_AS_BEFORE);
    bits &= ~run;
  }
}

// What goes of a chunk whose slices `dirty` are free and backed.  A huge page backs what was never handed out, too.
static uint32_t give_bits_of(const mi_region_t* region, size_t i, uint32_t dirty) {
  return region->is_huge && dirty != 0 ? region->chunks[i].free_bits : dirty;
}

// A partly used chunk: one of those that have most to give.  SIZE_MAX: none has any.
static size_t give_find_partial(const mi_region_t* region) {
  size_t i = SIZE_MAX, best = 0;
  for (mi_chunk_kind_t kind = MI_CHUNK_SMALL; kind < MI_CHUNK_KINDS; kind = (mi_chunk_kind_t)(kind + 1)) {
    uint64_t buckets = region->nonempty[MI_CHUNK_BY_BACKED][kind];
    if (buckets == 0 || mi_msb64(buckets) <= best) continue;
    best = mi_msb64(buckets);
    i = _mi_chunk_most_backed(region, kind);
  }
  return i;
}

// The same for a partly used chunk.
static bool give_partial_chunk(const give_way_t* way, mi_region_t* region, give_done_t* done) {
  uint32_t bits = 0, dirty = 0;
  _mi_lock_acquire(&_mi_region_lock);
  size_t i = (give_may(way, region) ? give_find_partial(region) : SIZE_MAX);
  if (i != SIZE_MAX) {
    dirty = region->chunks[i].free_bits & region->chunks[i].dirty_bits;
    bits = give_bits_of(region, i, dirty);
    _mi_chunk_take(region, i, bits, MI_CHUNK_MIXED);
  }
  _mi_lock_release(&_mi_region_lock);
  if (bits != 0) _mi_hole_open(region, i);
  give_bits(region, i, bits, dirty, done);
  return bits != 0;
}

// Returns how many slices were given back: as many as suffice, or all that are more than `stay` in all regions.
static size_t give_region(const give_way_t* way, mi_region_t* region, size_t most, size_t stay, bool* is_refused) {
  mi_recall_t* recall = way->recall;
  give_done_t  done = {0, 0};
  for (bool any = true; any && done.n_given < most && done.n_refused < GIVE_REFUSALS;) {
    // Held from taking to putting back, so that a fork never finds slices in between, and nobody counts them as gone.
    _mi_lock_acquire(&_mi_region_purge_lock);
    size_t before = done.n_given, now = _mi_chunk_purgeable();
    size_t n = mi_min(most - before, now - mi_min(now, stay));
    any = n > 0 && (way->partial ? give_partial_chunk(way, region, &done) : give_free_chunks(way, region, n, &done));
    size_t n_given = done.n_given - before;
    if (n_given > 0 && recall != NULL) _mi_recall_note(recall, _mi_prim_clock_ms(), n_given, _mi_place_fresh());
    _mi_lock_release(&_mi_region_purge_lock);
    if (n_given == 0 && any) *is_refused = true;
  }
  return done.n_given;
}

size_t _mi_give_slices(mi_recall_t* recall, size_t n, size_t stay, bool splits_huge, bool* is_refused) {
  give_way_t way = {recall, false, splits_huge};
  size_t     done = 0;
  n = mi_min(n, _mi_chunk_purgeable());
  for (int partial = 0; partial <= 1; partial++) {
    way.partial = (partial != 0);
    for (size_t i = 0; i < _mi_region_count() && done < n; i++) {
      mi_region_t* region = &_mi_region_all[i];
      bool is_spared = (i <= MI_REGION_HUGE && !give_may(&way, region)); // those two stay what they are: no locks
      if (!is_spared) done += give_region(&way, region, n - done, stay, is_refused);
    }
  }
  return done;
}
