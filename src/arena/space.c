// Making and removing regions, and opening their chunks.  Layer: arena.
#include "space.h"

#include <errno.h>
#include <string.h>

#include "../base/probe.h"
#include "../base/track.h"
#include "../support/assert.h"
#include "../support/message.h"
#include "../support/option.h"
#include "../support/stat.h"
#include "reserve.h"
#include "subregion.h"

// Half of a reservation for everything is a multiple of it: it begins at a word of bits, and at an OS page in the table of chunks.
#define SPACE_SPLIT_MIN (sizeof(void*) > 4 ? MI_GiB << 6 : MI_GiB)

// Below this much opened memory no huge pages: a small process must not pay 2 MiB for its first block.
#define SPACE_HUGE_FROM (32 * MI_MiB)

size_t          _mi_space_n_shared;
size_t          _mi_space_n_bound;
size_t          _mi_space_refused = SIZE_MAX;
mi_atomic(bool) _mi_space_is_short;

// ---- tools ----------------------------------------------------------------------------------------------------------

// Chunks [open, n) are going to be opened: nothing there is the program's, nor are the pointers in our tables.
static void space_track_open(mi_region_t* region, size_t open, size_t n) {
  size_t table_size = n * MI_CHUNK_SLICES * MI_DESCRIPTOR_SIZE;
  if (open == 0) mi_track_reserved((void*)region->base, region->n_chunks * MI_CHUNK_SIZE);
  mi_track_closed((char*)region->base + open * MI_CHUNK_SIZE, (n - open) * MI_CHUNK_SIZE);
  _mi_prim_hide(region->table, mi_align_up(table_size, _mi_prim_os_page_size()));
  _mi_region_hide();
  _mi_prim_hide(&_mi_stat_live, sizeof(_mi_stat_live)); // numbers that look like addresses
}

static void space_track_remove(mi_region_t* region) {
  if (region->n_open == 0) return;
  mi_track_writable((void*)region->base, region->n_open * MI_CHUNK_SIZE);
  mi_track_released((void*)region->base, region->n_chunks * MI_CHUNK_SIZE);
}

// ---- the first --------------------------------------------------------------------------------------------------------

// Region 0 is one reservation, and region 1 its upper half if it is large.
static bool space_reserve_first(void) {
  mi_region_t* low = &_mi_region_all[0];
  if (!_mi_reserve_most(low, _mi_reserve_first_size(), MI_CHUNK_SIZE)) return false;
  size_t n = mi_align_down(low->n_chunks / 2, SPACE_SPLIT_MIN / MI_CHUNK_SIZE);
  if (n > 0 && low->n_slices > 0) { // 0: the table cannot be read before it is opened, from low to high
    _mi_subregion_fill(&_mi_region_all[MI_REGION_HUGE], n, low->n_chunks - n);
    _mi_region_all[MI_REGION_HUGE].is_huge = true;
    low->n_chunks = low->n_usable = n;
  }
  // Where huge pages are given unasked, the first touch of each 2 MiB would cost them all.
  _mi_prim_advise_huge((void*)low->base, mi_min(SPACE_HUGE_FROM, low->n_chunks * MI_CHUNK_SIZE), false);
  return true;
}

static mi_atomic(bool) space_is_refused; // and said: each allocation comes here again

static bool space_refuse_pages(size_t os_page_size) {
  if (!mi_exchange_acq_rel(&space_is_refused, true)) {
    _mi_message_print(0, "error: OS pages of %zu bytes; only those of up to 64 KiB are supported\n", os_page_size);
  }
  return false;
}

static bool space_refuse_start(void) {
  if (!mi_exchange_acq_rel(&space_is_refused, true)) {
    _mi_message_print(0, "error: too little address space or memory for a first block\n");
  }
  return false;
}

void _mi_space_report_none(size_t n) {
  if (!MI_PRIM_VIRTUAL || n > MI_CHUNK_SLICES || _mi_option_get_fast(mi_option_disallow_os_alloc) != 0) return;
  _mi_lock_acquire(&_mi_region_lock);
  bool has_chunks = (_mi_region_all[0].n_used > 1 || _mi_region_all[MI_REGION_HUGE].n_used > 0 ||
                     _mi_region_count() > MI_REGION_HUGE + 1);
  _mi_lock_release(&_mi_region_lock);
  // The first chunk begins with the allocator's own data.
  if (!has_chunks && mi_load_relaxed(&_mi_stat_live.pages.total) == 0) space_refuse_start();
}

bool _mi_space_init(void) {
  if (!_mi_space_fits_pages(_mi_prim_os_page_size())) return space_refuse_pages(_mi_prim_os_page_size());
  if (MI_PRIM_VIRTUAL && !_mi_subregion_plan() && !space_reserve_first()) return space_refuse_start();
  mi_store_release(&_mi_region_end, MI_REGION_HUGE + 1);
  _mi_stat_count(&_mi_stat_live.arena_count, 1);
  return true;
}

// ---- adding ---------------------------------------------------------------------------------------------------------

static bool space_give_back(mi_region_t* region);

// What the system did not take back is tried again.
static bool space_is_unused(mi_region_t* region) {
  bool is_kept = (region->origin == MI_REGION_LOST && !region->is_damaged);
  return region->base == 0 || (is_kept && space_give_back(region));
}

// An entry that is not in use, NULL if all are.
mi_region_t* _mi_space_find_entry(void) {
  size_t i = MI_REGION_HUGE + 1;
  size_t n = _mi_region_count();
  while (i < n && !space_is_unused(&_mi_region_all[i])) i++;
  return i < MI_REGION_MAPPED ? &_mi_region_all[i] : NULL;
}

// Where the list of our own regions of that kind has this one, or its end for NULL.
static mi_region_t** space_link(bool is_huge, const mi_region_t* region) {
  mi_region_t** link = &_mi_region_all[is_huge].next;
  while (*link != region) link = &(*link)->next;
  return link;
}

mi_region_t* _mi_space_install(mi_region_t* region, const mi_region_t* made) {
  size_t i = _mi_region_index(region);
  *region = *made;
  if (region->origin == MI_REGION_OWN) *space_link(region->is_huge, NULL) = region;
  if (!_mi_subregion_overlaps((void*)made->base, 1)) _mi_region_publish(region, made->base, made->n_slices);
  if (i >= _mi_region_count()) mi_store_release(&_mi_region_end, i + 1);
  _mi_stat_count(&_mi_stat_live.arena_count, 1);
  return region;
}

static mi_region_t* space_install_arena(mi_region_t* region, mi_region_t* made, mi_region_origin_t origin) {
  made->origin = (uint8_t)origin;
  made->n_usable = 0;
  made->is_exclusive = true;
  return _mi_space_install(region, made);
}

mi_region_t* _mi_space_add(size_t size, bool is_huge) {
  mi_region_t* region = _mi_space_find_entry();
  mi_region_t  made;
  if (region == NULL || _mi_option_get_fast(mi_option_disallow_os_alloc) != 0) return NULL;
  size = mi_align_up(size, MI_CHUNK_SIZE);
  if (_mi_subregion_make_band(&made, size, is_huge)) return _mi_space_install(region, &made);
  if (is_huge) return NULL;
  memset(&made, 0, sizeof(made));
  if (!_mi_reserve_most(&made, _mi_reserve_size(), size)) return NULL;
  return _mi_space_install(region, &made);
}

// An arena in the span.  It is reserved for the program at once.
static bool space_reserve_in_span(mi_region_t* region, size_t size, size_t align) {
  size_t i = _mi_subregion_find(size / MI_CHUNK_SIZE, align);
  if (i == SIZE_MAX) return false;
  _mi_subregion_fill(region, i, size / MI_CHUNK_SIZE);
  region->reserved_size = size;
  if (_mi_subregion_cover(region, region->n_chunks) != 0 || _mi_prim_reserve_at((void*)region->base, size) != 0)
    return false;
  _mi_stat_increase(&_mi_stat_live.reserved, (int64_t)size);
  return true;
}

mi_region_t* _mi_space_add_reserved(size_t size, size_t align) {
  mi_region_t* region = _mi_space_find_entry();
  mi_region_t  made;
  if (region == NULL) return NULL;
  memset(&made, 0, sizeof(made));
  if (!space_reserve_in_span(&made, size, align) && !_mi_reserve(&made, size, align)) return NULL;
  return space_install_arena(region, &made, MI_REGION_RESERVED);
}

mi_region_t* _mi_space_add_given(void* start, size_t size, bool has_commit) {
  mi_region_t*        region = _mi_space_find_entry();
  size_t              n_chunks = size / MI_CHUNK_SIZE;
  mi_reserve_layout_t at = _mi_reserve_layout(n_chunks, has_commit);
  mi_region_t         made;
  void*               table;
  if (region == NULL || _mi_prim_reserve(at.end, _mi_prim_os_page_size(), &table) != 0) return NULL;
  memset(&made, 0, sizeof(made));
  if (!_mi_reserve_describe(&made, start, n_chunks, (char*)table, &at)) {
    _mi_prim_release(table, at.end);
    return NULL;
  }
  made.reserved_size = at.end;
  made.is_fixed = true;
  _mi_stat_increase(&_mi_stat_live.reserved, (int64_t)(n_chunks * MI_CHUNK_SIZE));
  return space_install_arena(region, &made, MI_REGION_GIVEN);
}

static void space_count_arena(const mi_region_t* region, bool is_added) {
  if (region->is_exclusive || region->n_usable == 0 || !_mi_region_is_arena(region)) return;
  _mi_space_n_shared += is_added ? 1 : (size_t)-1;
  if (region->numa_node >= 0) _mi_space_n_bound += is_added ? 1 : (size_t)-1;
}

void _mi_space_start(mi_region_t* region, size_t n) {
  region->n_usable = n;
  if (region->is_committed) _mi_region_count_committed(region, (int64_t)(n * MI_CHUNK_SIZE));
  space_count_arena(region, true);
}

// ---- removing -------------------------------------------------------------------------------------------------------

// Its address space cannot be had back.
static void space_lose(mi_region_t* region) {
  region->origin = MI_REGION_LOST;
  region->n_usable = region->n_used = 0;
  memset(region->nonempty, 0, sizeof(region->nonempty));
  region->nonempty_long = 0;
}

// Nobody finds it any more.  If the system does not take its address space back (it has too many mappings to split one), it
// takes the memory, and the rest stays ours until it can be had back.
static bool space_give_back(mi_region_t* region) {
  bool   is_in_span = _mi_subregion_overlaps((void*)region->base, 1);
  void*  start = (void*)(region->origin == MI_REGION_GIVEN ? (uintptr_t)region->table : region->base);
  size_t size = region->reserved_size;
  bool   ok = (is_in_span ? _mi_subregion_clear(region) : _mi_prim_release(start, size) == 0);
  if (ok) {
    memset(region, 0, sizeof(*region));
    return true;
  }
  _mi_prim_give_up(start, size);
  region->base = (uintptr_t)start;
  region->n_slices = size >> MI_SLICE_SHIFT; // of what is still ours
  space_lose(region);
  return false;
}

void _mi_space_remove(mi_region_t* region) {
  MI_PROBE2(region_free, (void*)region->base, region->reserved_size);
  if (MI_TRACK) space_track_remove(region);
  space_count_arena(region, false);
  _mi_region_count_committed(region, -(int64_t)region->committed);
  size_t size =
      (region->is_planned ? region->reserved_size : region->n_chunks * MI_CHUNK_SIZE); // what counts as reserved
  _mi_stat_decrease(&_mi_stat_live.reserved, (int64_t)size);
  _mi_region_publish(region, 0, 0);
  if (region->origin == MI_REGION_OWN) *space_link(region->is_huge, region) = region->next;
  if (region->is_damaged) {
    _mi_prim_decommit((void*)region->base, region->n_usable * MI_CHUNK_SIZE);
    space_lose(region);
  }
  else {
    space_give_back(region);
  }
}

// ---- opening --------------------------------------------------------------------------------------------------------

// What describes the first n chunks can be used.
static int space_cover(mi_region_t* region, size_t n) {
  const size_t per_chunk = MI_CHUNK_SLICES * MI_DESCRIPTOR_SIZE;
  size_t       open = region->n_open;
  if (_mi_subregion_overlaps((void*)region->base, 1)) return _mi_subregion_cover(region, n);
  int err = _mi_subregion_extend(region->table, open * per_chunk, n * per_chunk, false);
  if (err != 0) return err;
  err = _mi_subregion_extend(region->chunks, open * sizeof(mi_chunk_t), n * sizeof(mi_chunk_t), false);
  if (err == 0 && region->uncommitted != NULL)
    err = _mi_subregion_extend(region->uncommitted, open * sizeof(uint32_t), n * sizeof(uint32_t), false);
  if (err != 0 || region->n_slices >= n * MI_CHUNK_SLICES) return err;
  mi_store_growing(&region->n_slices, n * MI_CHUNK_SLICES); // the table can be read as far as it is committed
  if (region != &_mi_region_all[0]) _mi_region_publish(region, region->base, region->n_slices);
  return 0;
}

// Huge-page chunks only, unless the program asks for more: with a huge page behind each first touch, pages of large blocks,
// which fill slowly, took 186 MiB for 64 MiB (docs/decisions/003).  Where huge pages are given unasked, the first touch of
// each 2 MiB would cost them all: so a process gets none for its first blocks.
static void space_advise(const mi_region_t* region, size_t from, size_t size) {
  long allow = _mi_option_get_fast(mi_option_allow_thp);
  bool is_first = (region == &_mi_region_all[0] && from < SPACE_HUGE_FROM);
  bool is_wanted =
      region->is_huge || region->wants_huge || allow >= 2 || _mi_option_get_fast(mi_option_allow_large_os_pages) != 0;
  if (!_mi_region_fits_huge(_mi_prim_os_page_size())) is_wanted = false;
  if (region->is_fixed || (is_first && !region->is_planned)) return;
  if (!is_first && allow == 1 && !is_wanted) return;
  bool enable = (is_wanted && allow != 0 && !is_first);
  _mi_prim_advise_huge((char*)region->base + from, size, enable);
}

// The memory of bytes [from, to).
static int space_open_memory(mi_region_t* region, size_t from, size_t to) {
  int err = _mi_subregion_extend((void*)region->base, from, to, region->is_planned);
  if (err != 0) return err;
  space_advise(region, from, to - from);
  _mi_region_count_committed(region, (int64_t)(to - from));
  if (region->is_planned) {
    region->reserved_size = to;
    _mi_stat_increase(&_mi_stat_live.reserved, (int64_t)(to - from));
  }
  return 0;
}

static int space_open_to(mi_region_t* region, size_t n) {
  bool is_committed = region->is_committed || region->commit != NULL;
  int  err = space_cover(region, n);
  if (err == 0 && !is_committed) err = space_open_memory(region, region->n_open * MI_CHUNK_SIZE, n * MI_CHUNK_SIZE);
  if (err != 0) return err;
  if (MI_TRACK) space_track_open(region, region->n_open, n);
  region->n_open = n;
  return 0;
}

bool _mi_space_open_heap_links(mi_region_t* region) {
  const size_t per_chunk = MI_CHUNK_SLICES * MI_HEAP_LINK_SIZE;
  int          err = 0;
  _mi_lock_acquire(&_mi_region_lock);
  size_t n = region->n_open;
  if (!MI_PRIM_VIRTUAL && region->heap_links == NULL) { // of a window: all of them at once
    err = _mi_prim_reserve(region->n_chunks * per_chunk, MI_HEAP_LINK_SIZE, (void**)&region->heap_links);
    if (err == 0) region->n_heap_links = region->n_chunks;
  }
  else if (n > region->n_heap_links) {
    size_t from = region->n_heap_links * per_chunk;
    err = _mi_subregion_extend(region->heap_links, from, n * per_chunk, _mi_subregion_overlaps((void*)region->base, 1));
    if (err == 0) region->n_heap_links = n;
  }
  _mi_lock_release(&_mi_region_lock);
  return err == 0;
}

bool _mi_space_open(mi_region_t* region, size_t n) {
  mi_assert_internal(n > region->n_open);
  if (n > region->n_usable || region->n_missing > 0) return false;
  // The first huge page needs a table, too, of 1 MiB: there is none where the system refused a chunk elsewhere.
  bool is_short = mi_load_relaxed(&_mi_space_is_short);
  if (region->is_huge && region->n_open == 0 && is_short) return false;
  // An eighth ahead: few calls, and little counts towards the limits of the process that is not used.
  size_t ahead = mi_min(region->n_usable, n + mi_min(n / 8, 512)), n_more = n - region->n_open;
  // Only ahead of many small requests: a large one says nothing about the next.
  if (is_short || n_more > ahead - n) ahead = n;
  int err = space_open_to(region, ahead);
  if (err != 0 && ahead > n) err = space_open_to(region, n);
  if (err == EEXIST) {
    region->n_usable = region->n_open; // SR3
    return false;
  }
  mi_store_relaxed(&_mi_space_is_short, err != 0);
  if (err == 0) _mi_space_refused = SIZE_MAX;
  else if (!region->is_huge) _mi_space_refused = mi_min(_mi_space_refused, n_more);
  return err == 0;
}

bool _mi_space_open_slices(mi_region_t* region, size_t n) {
  size_t n_missing = (region->n_missing == 0 ? MI_CHUNK_SLICES : region->n_missing);
  size_t n_open = region->n_open + (region->n_missing == 0);
  size_t from = n_open * MI_CHUNK_SIZE - n_missing * MI_SLICE_SIZE;
  if (n_open > region->n_usable) return false;
  int err = space_cover(region, n_open);
  if (err == 0) err = space_open_memory(region, from, from + n * MI_SLICE_SIZE);
  if (err == EEXIST) region->n_usable = region->n_open; // SR3
  if (err != 0) return false;
  if (MI_TRACK && n_open > region->n_open) space_track_open(region, region->n_open, n_open);
  region->n_open = n_open;
  region->n_missing = (uint8_t)(n_missing - n);
  return true;
}

bool _mi_space_close(mi_region_t* region, size_t n) {
  size_t size = (region->n_open - n) * MI_CHUNK_SIZE - region->n_missing * MI_SLICE_SIZE;
  char*  start = (char*)region->base + n * MI_CHUNK_SIZE;
  if (_mi_prim_release(start, size) != 0) return false;
  if (MI_TRACK) mi_track_writable(start, size);
  _mi_region_count_committed(region, -(int64_t)size);
  _mi_stat_decrease(&_mi_stat_live.reserved, (int64_t)size);
  region->reserved_size = n * MI_CHUNK_SIZE;
  region->n_open = n;
  region->n_missing = 0;
  return true;
}
