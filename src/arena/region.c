// Reserving regions, opening their chunks, finding the region of an address.  Layer: arena.
#include "region.h"

#include <string.h>

#include "../base/assert.h"
#include "../base/probe.h"
#include "../base/track.h"
#include "../support/option.h"
#include "../support/stat.h"
#include "part.h"

// How much address space we ask for.  It costs the kernel nothing, and one region for everything makes the search for a
// descriptor a subtraction and a shift.
#define REGION_SIZE_MAX ((size_t)1 << 40)
#define REGION_SIZE_MIN (32 * MI_CHUNK_SIZE)

// A multiple of it begins at a word of bits, and at an OS page in the table of chunks.
#define REGION_SPLIT_MIN ((size_t)1 << 36)

// Below this much opened memory no huge pages: a small process must not pay 2 MiB for its first block.
#define REGION_HUGE_FROM (32 * MI_MiB)

// With option arena_reserve below its usual value the program says that address space is dear: so much at a time, and
// twice as much after each so many regions.
#define REGION_RESERVE_USUAL (sizeof(void*) > 4 ? MI_GiB : 128 * MI_MiB)
#define REGION_DOUBLE_AFTER  8

// The first two, which every program uses, lie in one OS page.
mi_mostly_unused mi_aligned(4096) mi_region_t _mi_regions[MI_REGION_COUNT];

mi_lock_t         _mi_arena_lock;
mi_atomic(size_t) _mi_region_end;
size_t            _mi_region_n_shared;
size_t            _mi_region_n_bound;

// What a search reads of the regions above 0: it takes no lock, so these are atomic, and `region_version` is odd while
// one of them changes: a search that saw two values of it starts again.
typedef struct region_bounds_s {
  mi_atomic(uintptr_t) base;
  mi_atomic(size_t)    n_slices;
} region_bounds_t;

static mi_mostly_unused region_bounds_t region_bounds[MI_REGION_COUNT];
static mi_atomic(uint32_t)              region_version;

// Where the last search for an address in such a chunk ended: with 200 arenas a free in one takes 6 ns instead of 260.
#define REGION_HINTS 1024
static mi_mostly_unused mi_atomic(uint8_t) region_hints[REGION_HINTS];

static void region_publish(size_t i, uintptr_t base, size_t n_slices) {
  mi_fetch_add_acq_rel(&region_version, 1);
  mi_store_release(&region_bounds[i].base, base);
  mi_store_release(&region_bounds[i].n_slices, n_slices);
  mi_fetch_add_acq_rel(&region_version, 1);
}

// ---- tools ----------------------------------------------------------------------------------------------------------

// Chunks [open, n) are going to be opened: nothing there is the program's, nor are the pointers in our tables.
static void region_track_open(mi_region_t* region, size_t open, size_t n) {
  size_t table_size = region->is_single ? MI_DESCRIPTOR_SIZE : n * MI_CHUNK_SLICES * MI_DESCRIPTOR_SIZE;
  if (open == 0) mi_track_reserved((void*)region->base, region->n_slices << MI_SLICE_SHIFT);
  mi_track_closed((char*)region->base + open * MI_CHUNK_SIZE, (n - open) * MI_CHUNK_SIZE);
  _mi_prim_hide(region->table, mi_align_up(table_size, _mi_prim_os_page_size()));
  _mi_prim_hide(_mi_regions, sizeof(_mi_regions));
  _mi_prim_hide(region_bounds, sizeof(region_bounds));
  _mi_prim_hide(&_mi_stats, sizeof(_mi_stats)); // numbers that look like addresses
}

static void region_track_remove(mi_region_t* region) {
  if (region->n_open == 0) return;
  mi_track_writable((void*)region->base, region->n_open * MI_CHUNK_SIZE);
  mi_track_released((void*)region->base, region->n_slices << MI_SLICE_SHIFT);
}

// ---- what describes a region ----------------------------------------------------------------------------------------

// Offsets of the parts from the table on, in whole OS pages.
typedef struct region_layout_s {
  size_t chunks, bits, owners, end;
} region_layout_t;

static region_layout_t region_layout(size_t n_chunks, bool is_single, bool has_commit) {
  size_t          page = _mi_prim_os_page_size();
  region_layout_t at = {page, page, MI_DESCRIPTOR_SIZE, page};
  if (is_single) return at;
  at.chunks = mi_align_up(n_chunks * MI_CHUNK_SLICES * MI_DESCRIPTOR_SIZE, page);
  at.bits = at.chunks + mi_align_up(n_chunks * sizeof(mi_chunk_t), page);
  // Words that say what is not committed lie behind the bits.
  size_t bits = mi_div_up(n_chunks, 64) * sizeof(uint64_t) + (has_commit ? n_chunks * sizeof(uint32_t) : 0);
  at.owners = at.bits + mi_align_up(bits, page);
  at.end = at.owners + mi_align_up(n_chunks * MI_CHUNK_SLICES * MI_OWNER_SIZE, page);
  return at;
}

// Fills in a region in which nothing is open yet, and makes of its reserved metadata usable what must be at once.
static bool region_describe(mi_region_t* region, void* base, size_t n_chunks, char* table, const region_layout_t* at) {
  bool is_single = (at->end == _mi_prim_os_page_size());
  int  err = is_single ? _mi_prim_commit(table, at->end) : _mi_prim_make_readable(table, at->chunks);
  if (err == 0 && !is_single) err = _mi_prim_commit(table + at->bits, at->owners - at->bits);
  if (err != 0) return false;
  region->n_chunks = region->n_usable = n_chunks;
  region->chunks = (mi_chunk_t*)(void*)(table + at->chunks);
  region->free_chunks = (uint64_t*)(void*)(table + at->bits);
  region->owners = table + at->owners;
  region->n_owned = is_single ? n_chunks : 0;
  region->is_single = is_single;
  region->numa_node = -1;
  region->table = table;
  region->n_slices = n_chunks * MI_CHUNK_SLICES;
  region->base = (uintptr_t)base;
  return true;
}

// A region of memory that we reserve, with its metadata behind it.
static bool region_reserve(mi_region_t* region, size_t size, size_t align, bool is_single) {
  region_layout_t at = region_layout(size / MI_CHUNK_SIZE, is_single, false);
  void*           start;
  if (size > SIZE_MAX - at.end || _mi_prim_reserve(size + at.end, align, &start) != 0) return false;
  if (!region_describe(region, start, size / MI_CHUNK_SIZE, (char*)start + size, &at)) {
    _mi_prim_release(start, size + at.end);
    return false;
  }
  region->reserved_size = size + at.end;
  _mi_stat_increase(&_mi_stats.reserved, (int64_t)size);
  MI_PROBE2(region_new, start, size);
  _mi_stat_count(&_mi_stats.mmap_calls, 1);
  return true;
}

// With a limit on address space, what we reserve is missing elsewhere (thread stacks, files): take it in small parts.
static size_t region_size_wanted(void) {
  size_t limit = _mi_prim_address_space_limit();
  long   reserve = _mi_option_get_fast(mi_option_arena_reserve);
  size_t size = REGION_SIZE_MAX;
  if (reserve < (long)(REGION_RESERVE_USUAL / MI_KiB)) {
    size = mi_max(reserve <= 0 ? 0 : (size_t)reserve * MI_KiB, REGION_SIZE_MIN);
    for (size_t i = _mi_region_count(); i > REGION_DOUBLE_AFTER && size < REGION_SIZE_MAX; i -= REGION_DOUBLE_AFTER)
      size *= 2;
  }
  if (limit != SIZE_MAX) size = mi_min(size, limit / 16);
  return mi_align_down(mi_clamp(size, REGION_SIZE_MIN, REGION_SIZE_MAX), MI_CHUNK_SIZE);
}

// Makes region 1 (R4).  Where address space is short, region 0 stays whole.
static void region_split(void) {
  mi_region_t* low = &_mi_regions[0];
  size_t       n = mi_align_down(low->n_chunks / 2, REGION_SPLIT_MIN / MI_CHUNK_SIZE);
  if (n == 0) return;
  _mi_part_fill(&_mi_regions[MI_REGION_DENSE], n, low->n_chunks - n);
  low->n_chunks = low->n_usable = n;
}

bool _mi_region_init(void) {
  size_t size = region_size_wanted();
  for (; size >= REGION_SIZE_MIN; size /= 2) {
    if (region_reserve(&_mi_regions[0], size, MI_CHUNK_SIZE, false)) {
      region_split();
      mi_store_release(&_mi_region_end, MI_REGION_DENSE + 1);
      // Where huge pages are given unasked, the first touch of each 2 MiB would cost them all.
      _mi_prim_advise_huge((void*)_mi_regions[0].base, mi_min(REGION_HUGE_FROM, size), false);
      _mi_stat_count(&_mi_stats.arena_count, 1);
      return true;
    }
  }
  return false;
}

// ---- adding ---------------------------------------------------------------------------------------------------------

// An entry that is not in use, NULL if all are.
static mi_region_t* region_find_entry(void) {
  size_t i = MI_REGION_DENSE + 1;
  size_t n = _mi_region_count();
  while (i < n && _mi_regions[i].base != 0) i++;
  return i < MI_REGION_COUNT ? &_mi_regions[i] : NULL;
}

static mi_region_t* region_install(mi_region_t* region, const mi_region_t* made) {
  size_t i = _mi_region_index(region);
  *region = *made;
  // Parts are found in region 0.
  if (made->origin != MI_REGION_PART) region_publish(i, made->base, made->n_slices);
  if (i >= _mi_region_count()) mi_store_release(&_mi_region_end, i + 1);
  _mi_stat_count(&_mi_stats.arena_count, 1);
  return region;
}

static mi_region_t* region_install_arena(mi_region_t* region, mi_region_t* made, mi_region_origin_t origin) {
  made->origin = (uint8_t)origin;
  made->n_usable = 0;
  made->is_exclusive = true;
  return region_install(region, made);
}

mi_region_t* _mi_region_add(size_t size, size_t align, bool is_single) {
  mi_region_t* region = region_find_entry();
  mi_region_t  made;
  if (region == NULL || _mi_option_get_fast(mi_option_disallow_os_alloc) != 0) return NULL;
  memset(&made, 0, sizeof(made));
  size = mi_align_up(size, MI_CHUNK_SIZE);
  if (!is_single) {
    size_t wanted = region_size_wanted();
    while (wanted > size && !region_reserve(&made, wanted, MI_CHUNK_SIZE, false)) wanted /= 2;
  }
  if (made.base == 0 && !region_reserve(&made, size, mi_max(align, MI_CHUNK_SIZE), is_single)) return NULL;
  return region_install(region, &made);
}

mi_region_t* _mi_region_add_reserved(size_t size, size_t align) {
  mi_region_t* region = region_find_entry();
  mi_region_t  made;
  if (region == NULL) return NULL;
  memset(&made, 0, sizeof(made));
  size_t i = _mi_part_find(size / MI_CHUNK_SIZE, align);
  if (i == SIZE_MAX) {
    if (!region_reserve(&made, size, align, false)) return NULL;
    return region_install_arena(region, &made, MI_REGION_RESERVED);
  }
  _mi_part_fill(&made, i, size / MI_CHUNK_SIZE);
  region_install_arena(region, &made, MI_REGION_PART);
  _mi_part_set_limit();
  return region;
}

mi_region_t* _mi_region_add_given(void* start, size_t size, bool has_commit) {
  mi_region_t*    region = region_find_entry();
  size_t          n_chunks = size / MI_CHUNK_SIZE;
  region_layout_t at = region_layout(n_chunks, false, has_commit);
  mi_region_t     made;
  void*           table;
  if (region == NULL || _mi_prim_reserve(at.end, _mi_prim_os_page_size(), &table) != 0) return NULL;
  memset(&made, 0, sizeof(made));
  if (!region_describe(&made, start, n_chunks, (char*)table, &at)) {
    _mi_prim_release(table, at.end);
    return NULL;
  }
  if (has_commit) made.uncommitted = (uint32_t*)(void*)(made.free_chunks + mi_div_up(n_chunks, 64));
  made.reserved_size = at.end;
  made.is_fixed = true;
  _mi_stat_increase(&_mi_stats.reserved, (int64_t)(n_chunks * MI_CHUNK_SIZE));
  return region_install_arena(region, &made, MI_REGION_GIVEN);
}

static void region_count_arena(const mi_region_t* region, bool is_added) {
  if (region->is_exclusive || region->n_usable == 0 || !_mi_region_is_arena(region)) return;
  _mi_region_n_shared += is_added ? 1 : (size_t)-1;
  if (region->numa_node >= 0) _mi_region_n_bound += is_added ? 1 : (size_t)-1;
}

void _mi_region_start(mi_region_t* region, size_t n) {
  region->n_usable = n;
  if (region->is_committed) _mi_region_count_committed(region, (int64_t)(n * MI_CHUNK_SIZE));
  region_count_arena(region, true);
}

// ---- removing -------------------------------------------------------------------------------------------------------

static void region_forget(mi_region_t* region) {
  if (region->origin != MI_REGION_PART) region_publish(_mi_region_index(region), 0, 0);
  memset(region, 0, sizeof(*region));
}

// Its address space cannot be had back.
static void region_lose(mi_region_t* region) {
  region->origin = MI_REGION_LOST;
  region->n_usable = region->n_open = region->n_used = 0;
}

void _mi_region_remove(mi_region_t* region) {
  bool   is_part = (region->origin == MI_REGION_PART);
  void*  start = (void*)(region->origin == MI_REGION_GIVEN ? (uintptr_t)region->table : region->base);
  size_t size = region->reserved_size;
  MI_PROBE2(region_free, start, size);
  if (MI_TRACK) region_track_remove(region);
  region_count_arena(region, false);
  _mi_region_count_committed(region, -(int64_t)region->committed);
  if (!is_part) _mi_stat_decrease(&_mi_stats.reserved, (int64_t)(region->n_slices << MI_SLICE_SHIFT));
  if (region->is_damaged) {
    _mi_prim_decommit((void*)region->base, region->n_usable * MI_CHUNK_SIZE);
    region_lose(region);
  }
  else if (!is_part) {
    region_forget(region);
    _mi_prim_release(start, size);
  }
  else if (_mi_part_clear(region)) {
    region_forget(region);
    _mi_part_set_limit();
  }
  else {
    region_lose(region);
  }
}

// ---- finding --------------------------------------------------------------------------------------------------------

static bool region_has(size_t i, const void* p) {
  uintptr_t offset = (uintptr_t)p - mi_load_acquire(&region_bounds[i].base);
  return offset >> MI_SLICE_SHIFT < mi_load_acquire(&region_bounds[i].n_slices);
}

// The index of a region that has p, 0 if none has.
static size_t region_find(const void* p) {
  mi_atomic(uint8_t)* hint = &region_hints[(uintptr_t)p / MI_CHUNK_SIZE % REGION_HINTS];
  size_t              i = mi_load_relaxed(hint);
  if (mi_likely(region_has(i, p))) return i;
  size_t n = _mi_region_count();
  for (i = MI_REGION_DENSE + 1; i < n; i++) {
    if (!region_has(i, p)) continue;
    mi_store_relaxed(hint, (uint8_t)i);
    return i;
  }
  return 0;
}

mi_region_t* _mi_region_search(const void* p) {
  for (;;) {
    uint32_t version = mi_load_acquire(&region_version);
    size_t   i = region_find(p);
    if ((version & 1) == 0 && mi_load_relaxed(&region_version) == version) return i == 0 ? NULL : &_mi_regions[i];
    mi_cpu_pause();
  }
}

static bool region_ranges_meet(uintptr_t a, size_t a_size, const void* b, size_t b_size) {
  return a - (uintptr_t)b < b_size || (uintptr_t)b - a < a_size;
}

bool _mi_region_overlaps(const void* start, size_t size) {
  for (size_t i = 0; i < _mi_region_count(); i++) {
    const mi_region_t* region = &_mi_regions[i];
    size_t             n = region->n_slices << MI_SLICE_SHIFT;
    bool               is_apart = (region->origin == MI_REGION_GIVEN); // its metadata
    if (region->base != 0 &&
        region_ranges_meet(region->base, is_apart ? n : mi_max(n, region->reserved_size), start, size))
      return true;
    if (is_apart && region_ranges_meet((uintptr_t)region->table, region->reserved_size, start, size)) return true;
  }
  return false;
}

// ---- opening --------------------------------------------------------------------------------------------------------

// Commits [from, to) of an array that lies at `start`, widened to OS pages (again for those it has in part).
static bool region_commit(char* start, size_t from, size_t to) {
  size_t    page = _mi_prim_os_page_size();
  uintptr_t first = mi_align_down((uintptr_t)start + from, page);
  _mi_stat_count(&_mi_stats.commit_calls, 1);
  return _mi_prim_commit((void*)first, mi_align_up((uintptr_t)start + to, page) - first) == 0;
}

void _mi_region_count_committed(mi_region_t* region, int64_t n) {
  region->committed += (size_t)n;
  if (n >= 0) _mi_stat_increase(&_mi_stats.committed, n);
  else _mi_stat_decrease(&_mi_stats.committed, -n);
}

// Dense chunks only, unless the program asks for more: with a huge page behind each first touch, pages of large blocks,
// which fill slowly, took 186 MiB for 64 MiB (docs/decisions/003).
static void region_advise(const mi_region_t* region, size_t open, size_t size) {
  long allow = _mi_option_get_fast(mi_option_allow_thp);
  bool is_dense = (region == &_mi_regions[MI_REGION_DENSE]);
  bool is_wanted =
      is_dense || region->wants_huge || allow >= 2 || _mi_option_get_fast(mi_option_allow_large_os_pages) != 0;
  if (region->is_fixed || (allow == 1 && !is_wanted)) return;
  if (!is_dense && !_mi_region_is_arena(region) && open * MI_CHUNK_SIZE < REGION_HUGE_FROM) return;
  _mi_prim_advise_huge((char*)region->base + open * MI_CHUNK_SIZE, size, is_wanted && allow != 0);
}

static bool region_open_to(mi_region_t* region, size_t n) {
  size_t open = region->n_open;
  size_t added = (n - open) * MI_CHUNK_SIZE;
  bool   is_committed = region->is_committed || region->commit != NULL;
  if (!region->is_single) {
    const size_t per_chunk = MI_CHUNK_SLICES * MI_DESCRIPTOR_SIZE;
    if (!region_commit(region->table, open * per_chunk, n * per_chunk)) return false;
    if (!region_commit((char*)region->chunks, open * sizeof(mi_chunk_t), n * sizeof(mi_chunk_t))) return false;
  }
  if (!is_committed && !region_commit((char*)region->base, open * MI_CHUNK_SIZE, n * MI_CHUNK_SIZE)) return false;
  if (!is_committed) {
    region_advise(region, open, added);
    _mi_region_count_committed(region, (int64_t)added);
  }
  if (MI_TRACK) region_track_open(region, open, n);
  region->n_open = n;
  return true;
}

bool _mi_region_open_owners(mi_region_t* region) {
  const size_t per_chunk = MI_CHUNK_SLICES * MI_OWNER_SIZE;
  _mi_lock_acquire(&_mi_arena_lock);
  size_t n = region->n_open;
  bool   ok = (n <= region->n_owned || region_commit(region->owners, region->n_owned * per_chunk, n * per_chunk));
  if (ok) region->n_owned = mi_max(region->n_owned, n);
  _mi_lock_release(&_mi_arena_lock);
  return ok;
}

bool _mi_region_open(mi_region_t* region, size_t n) {
  mi_assert_internal(n > region->n_open);
  if (n > region->n_usable) return false;
  // An eighth ahead: few calls, and under strict overcommit little is charged that is not used.
  size_t ahead = mi_min(region->n_usable, n + mi_clamp(n / 8, 1, 512));
  // Only ahead of many small requests: a large one says nothing about the next.
  if (n - region->n_open > ahead - n) ahead = n;
  return region_open_to(region, ahead) || (ahead > n && region_open_to(region, n));
}
