// Address space that is reserved for a region, and what describes the region.  Layer: arena.
#include "reserve.h"

#include <errno.h>

#include "../base/probe.h"
#include "../support/option.h"
#include "../support/stat.h"
#include "subregion.h"

// Where there is no span, region 0 is one reservation for everything, if that can be had.  With pointers of 32 bits it is a
// thirtieth of the address space: the program needs the rest, and gets it region by region.
#define RESERVE_MAX (sizeof(void*) > 4 ? MI_GiB << 10 : 128 * MI_MiB)

// As many regions of this size as there may be are all addresses of 32 bits.
#define RESERVE_LOW (16 * MI_MiB)

mi_reserve_layout_t _mi_reserve_layout(size_t n_chunks, bool has_commit) {
  size_t              page = (MI_PRIM_VIRTUAL ? _mi_prim_os_page_size() : MI_DESCRIPTOR_SIZE);
  mi_reserve_layout_t at;
  at.chunks = mi_align_up(n_chunks * MI_CHUNK_SLICES * MI_DESCRIPTOR_SIZE, page);
  at.bits = at.chunks + mi_align_up(n_chunks * sizeof(mi_chunk_t), page);
  at.uncommitted = at.bits + mi_align_up(mi_div_up(n_chunks, 64) * sizeof(uint64_t), page);
  at.heap_links = at.uncommitted + mi_align_up(has_commit ? n_chunks * sizeof(uint32_t) : 0, page);
  at.end = at.heap_links + mi_align_up(n_chunks * MI_CHUNK_SLICES * MI_HEAP_LINK_SIZE, page);
  return at;
}

bool _mi_reserve_describe(mi_region_t* region, void* base, size_t n_chunks, char* table,
                          const mi_reserve_layout_t* at) {
  int  err = _mi_prim_make_readable(table, at->chunks);
  bool is_readable = (err != ENOTSUP);
  if (!is_readable) err = 0;
  if (err == 0) err = _mi_prim_commit(table + at->bits, at->uncommitted - at->bits);
  if (err != 0) return false;
  region->n_chunks = region->n_usable = n_chunks;
  region->chunks = (mi_chunk_t*)(void*)(table + at->chunks);
  region->free_chunks = (uint64_t*)(void*)(table + at->bits);
  region->uncommitted = (at->heap_links > at->uncommitted ? (uint32_t*)(void*)(table + at->uncommitted) : NULL);
  region->heap_links = table + at->heap_links;
  region->numa_node = -1;
  region->table = table;
  _mi_region_set_groups(region);
  mi_store_growing(&region->base, (uintptr_t)base);
  mi_store_growing(&region->n_slices, is_readable ? n_chunks * MI_CHUNK_SLICES : 0);
  return true;
}

bool _mi_reserve(mi_region_t* region, size_t size, size_t align) {
  mi_reserve_layout_t at = _mi_reserve_layout(size / MI_CHUNK_SIZE, MI_PRIM_CHARGES);
  void*               start;
  if (size > SIZE_MAX - at.end || _mi_prim_reserve(size + at.end, align, &start) != 0) return false;
  if (_mi_subregion_overlaps(start, size + at.end) ||
      !_mi_reserve_describe(region, start, size / MI_CHUNK_SIZE, (char*)start + size, &at)) {
    _mi_prim_release(start, size + at.end);
    return false;
  }
  region->reserved_size = size + at.end;
  _mi_stat_increase(&_mi_stat_live.reserved, (int64_t)size);
  MI_PROBE2(region_new, start, size);
  return true;
}

size_t _mi_reserve_size(void) {
  if (sizeof(void*) > 4) return _mi_subregion_band_size(false);
  long   reserve = _mi_option_get_fast(mi_option_arena_reserve);
  size_t size = mi_min(reserve <= 0 ? 0 : (size_t)reserve, RESERVE_MAX / MI_KiB) * MI_KiB;
  size_t first = _mi_region_all[0].n_chunks * MI_CHUNK_SIZE; // less where the process has a limit
  if (first > 0) size = mi_clamp(size, RESERVE_LOW, mi_max(first, RESERVE_LOW));
  return mi_max(mi_align_down(size, MI_CHUNK_SIZE), MI_CHUNK_SIZE);
}

size_t _mi_reserve_first_size(void) {
  size_t limit = _mi_prim_address_space_limit(); // what we reserve is missing elsewhere: thread stacks, files
  size_t most = (sizeof(void*) > 4 ? RESERVE_MAX : _mi_reserve_size());
  return mi_clamp(mi_align_down(limit / 16, MI_CHUNK_SIZE), MI_CHUNK_SIZE, most);
}

bool _mi_reserve_most(mi_region_t* region, size_t size, size_t least) {
  while (size > least && !_mi_reserve(region, size, MI_CHUNK_SIZE)) size = mi_align_down(size / 2, MI_CHUNK_SIZE);
  return region->base != 0 || _mi_reserve(region, least, MI_CHUNK_SIZE);
}
