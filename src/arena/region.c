// Reserving regions, opening their chunks, finding the region of an address.  Layer: arena.
#include "region.h"

#include <string.h>

#include "../base/assert.h"
#include "../base/track.h"
#include "../support/option.h"
#include "../support/stat.h"

// How much address space we ask for.  It costs the kernel nothing, and one region for everything makes the search for a
// descriptor a subtraction and a shift.
#define REGION_SIZE_MAX ((size_t)1 << 40)
#define REGION_SIZE_MIN (32 * MI_CHUNK_SIZE)

// A multiple of it begins at a word of bits, and at an OS page in the table of chunks.
#define REGION_SPLIT_MIN ((size_t)1 << 36)

// Below this much opened memory no huge pages: a small process must not pay 2 MiB for its first block.
#define REGION_HUGE_FROM (32 * MI_MiB)

// In OS pages of their own if they have to be hidden (base/track.h).
mi_region_t _mi_regions[MI_REGION_COUNT] mi_aligned(MI_TRACK_VALGRIND ? 4096 : 64);
mi_lock_t   _mi_arena_lock;

// What a search reads of the regions above 0: it takes no lock, so these are atomic, and `region_version` is odd while
// one of them changes: a search that saw two values of it starts again.
static struct {
  mi_atomic(uintptr_t) base;
  mi_atomic(size_t)    n_slices;
} region_bounds[MI_REGION_COUNT];
static mi_atomic(uint32_t) region_version;
static mi_atomic(size_t)   region_count; // entries that were ever used

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

static size_t region_meta_size(size_t n_chunks, size_t n_descriptors) {
  size_t page = _mi_prim_os_page_size();
  return mi_align_up(n_descriptors * MI_DESCRIPTOR_SIZE, page) + mi_align_up(n_chunks * sizeof(mi_chunk_t), page) +
         mi_align_up(mi_div_up(n_chunks, 64) * sizeof(uint64_t), page) +
         mi_align_up(n_descriptors * MI_OWNER_SIZE, page);
}

// Fills in a region in which nothing is open yet.  `size` is a multiple of the chunk size.
static bool region_reserve(mi_region_t* region, size_t size, size_t align, bool is_single) {
  size_t page = _mi_prim_os_page_size();
  size_t n_chunks = size / MI_CHUNK_SIZE;
  size_t n_descriptors = is_single ? 1 : n_chunks * MI_CHUNK_SLICES;
  size_t meta = is_single ? page : region_meta_size(n_chunks, n_descriptors);
  void*  start;
  if (size > SIZE_MAX - meta || _mi_prim_reserve(size + meta, align, &start) != 0) return false;

  char* table = (char*)start + size;
  char* chunks = table + mi_align_up(n_descriptors * MI_DESCRIPTOR_SIZE, page);
  char* bits = chunks + mi_align_up(n_chunks * sizeof(mi_chunk_t), page);
  char* owners = bits + mi_align_up(mi_div_up(n_chunks, 64) * sizeof(uint64_t), page);
  if (is_single) owners = table + MI_DESCRIPTOR_SIZE;
  int err = is_single ? _mi_prim_commit(table, page) : _mi_prim_make_readable(table, (size_t)(chunks - table));
  if (err == 0 && !is_single) err = _mi_prim_commit(bits, (size_t)(owners - bits));
  if (err != 0) {
    _mi_prim_release(start, size + meta);
    return false;
  }
  region->n_chunks = n_chunks;
  region->n_open = region->n_used = region->free_hint = 0;
  region->chunks = (mi_chunk_t*)chunks;
  region->free_chunks = (uint64_t*)bits;
  region->owners = owners;
  region->n_owned = is_single ? n_chunks : 0;
  region->reserved_size = size + meta;
  region->is_single = is_single;
  region->table = table;
  region->n_slices = size >> MI_SLICE_SHIFT;
  region->base = (uintptr_t)start;
  _mi_stat_increase(&_mi_stats.reserved, (int64_t)size);
  _mi_stat_count(&_mi_stats.mmap_calls, 1);
  _mi_stat_count(&_mi_stats.arena_count, 1);
  return true;
}

// With a limit on address space, what we reserve is missing elsewhere (thread stacks, files): take it in small parts.
static size_t region_size_wanted(void) {
  size_t limit = _mi_prim_address_space_limit();
  if (limit == SIZE_MAX) return REGION_SIZE_MAX;
  return mi_align_down(mi_clamp(limit / 16, REGION_SIZE_MIN, REGION_SIZE_MAX), MI_CHUNK_SIZE);
}

// Makes region 1 (R4).  Where address space is short, region 0 stays whole.
static void region_split(void) {
  mi_region_t* low = &_mi_regions[0];
  mi_region_t* high = &_mi_regions[MI_REGION_DENSE];
  size_t       n = mi_align_down(low->n_chunks / 2, REGION_SPLIT_MIN / MI_CHUNK_SIZE);
  if (n == 0) return;
  *high = *low;
  high->n_chunks = low->n_chunks - n;
  high->base += n * MI_CHUNK_SIZE;
  high->n_slices -= n * MI_CHUNK_SLICES;
  high->table += n * MI_CHUNK_SLICES * MI_DESCRIPTOR_SIZE;
  high->chunks += n;
  high->free_chunks += n / 64;
  high->owners += n * MI_CHUNK_SLICES * MI_OWNER_SIZE;
  high->reserved_size = 0;
  low->n_chunks = n;
}

bool _mi_region_init(void) {
  size_t size = region_size_wanted();
  for (; size >= REGION_SIZE_MIN; size /= 2) {
    if (region_reserve(&_mi_regions[0], size, MI_CHUNK_SIZE, false)) {
      region_split();
      // Where huge pages are given unasked, the first touch of each 2 MiB would cost them all.
      _mi_prim_advise_huge((void*)_mi_regions[0].base, mi_min(REGION_HUGE_FROM, size), false);
      return true;
    }
  }
  return false;
}

mi_region_t* _mi_region_add(size_t size, size_t align, bool is_single) {
  size_t n = mi_load_relaxed(&region_count);
  size_t i = MI_REGION_DENSE + 1;
  while (i < n && _mi_regions[i].base != 0) i++;
  if (i >= MI_REGION_COUNT) return NULL;
  mi_region_t made;
  memset(&made, 0, sizeof(made));
  size = mi_align_up(size, MI_CHUNK_SIZE);
  if (!is_single) {
    size_t wanted = region_size_wanted();
    while (wanted > size && !region_reserve(&made, wanted, MI_CHUNK_SIZE, false)) wanted /= 2;
  }
  if (made.base == 0 && !region_reserve(&made, size, mi_max(align, MI_CHUNK_SIZE), is_single)) return NULL;
  _mi_regions[i] = made;
  region_publish(i, made.base, made.n_slices);
  if (i >= n) mi_store_release(&region_count, i + 1);
  return &_mi_regions[i];
}

void _mi_region_remove(mi_region_t* region) {
  void*  start = (void*)region->base;
  size_t size = region->reserved_size;
  if (MI_TRACK) region_track_remove(region);
  _mi_stat_decrease(&_mi_stats.reserved, (int64_t)(region->n_slices << MI_SLICE_SHIFT));
  _mi_stat_decrease(&_mi_stats.committed, (int64_t)(region->n_open * MI_CHUNK_SIZE));
  region_publish(_mi_region_index(region), 0, 0);
  memset(region, 0, sizeof(*region));
  _mi_prim_release(start, size);
}

mi_region_t* _mi_region_search(const void* p) {
  for (;;) {
    uint32_t     version = mi_load_acquire(&region_version);
    mi_region_t* found = NULL;
    size_t       n = mi_load_acquire(&region_count);
    for (size_t i = MI_REGION_DENSE + 1; i < n && found == NULL; i++) {
      uintptr_t offset = (uintptr_t)p - mi_load_acquire(&region_bounds[i].base);
      if (offset >> MI_SLICE_SHIFT < mi_load_acquire(&region_bounds[i].n_slices)) found = &_mi_regions[i];
    }
    if ((version & 1) == 0 && mi_load_relaxed(&region_version) == version) return found;
    mi_cpu_pause();
  }
}

// Commits [from, to) of an array that lies at `start`, widened to OS pages (again for those it has in part).
static bool region_commit(char* start, size_t from, size_t to) {
  size_t page = _mi_prim_os_page_size();
  size_t first = mi_align_down(from, page);
  _mi_stat_count(&_mi_stats.commit_calls, 1);
  return _mi_prim_commit(start + first, mi_align_up(to, page) - first) == 0;
}

static bool region_open_to(mi_region_t* region, size_t n) {
  size_t open = region->n_open;
  if (region->is_single) {
    if (!region_commit((char*)region->base, 0, n * MI_CHUNK_SIZE)) return false;
  }
  else {
    const size_t per_chunk = MI_CHUNK_SLICES * MI_DESCRIPTOR_SIZE;
    if (!region_commit(region->table, open * per_chunk, n * per_chunk)) return false;
    if (!region_commit((char*)region->chunks, open * sizeof(mi_chunk_t), n * sizeof(mi_chunk_t))) return false;
    if (!region_commit((char*)region->base, open * MI_CHUNK_SIZE, n * MI_CHUNK_SIZE)) return false;
  }
  size_t added = (n - open) * MI_CHUNK_SIZE;
  // Dense chunks only, unless the program asks for more: with a huge page behind each first touch, pages of large blocks,
  // which fill slowly, took 186 MiB for 64 MiB (docs/decisions/003).
  long   allow = _mi_option_get_fast(mi_option_allow_thp);
  bool   is_dense = (region == &_mi_regions[MI_REGION_DENSE]);
  if (is_dense || (allow != 1 && open * MI_CHUNK_SIZE >= REGION_HUGE_FROM)) {
    _mi_prim_advise_huge((char*)region->base + open * MI_CHUNK_SIZE, added, is_dense || allow >= 2);
  }
  _mi_stat_increase(&_mi_stats.committed, (int64_t)added);
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
  if (n > region->n_chunks) return false;
  // An eighth ahead: few calls, and under strict overcommit little is charged that is not used.
  size_t ahead = mi_min(region->n_chunks, n + mi_clamp(n / 8, 1, 512));
  // Only ahead of many small requests: a large one says nothing about the next.
  if (n - region->n_open > ahead - n) ahead = n;
  return region_open_to(region, ahead) || (ahead > n && region_open_to(region, n));
}
