// The span and its subregions.  Layer: arena.
#include "subregion.h"

#include <errno.h>
#include <string.h>

#include "../support/option.h"

// A subregion has whole words of the bits of the span (SR4).
#define SUBREGION_CHUNKS 64

// More than any process has memory.  Of a smaller range of addresses half is planned, so that half of it is left to choose
// from.
#define SUBREGION_SPAN_MAX (sizeof(void*) > 4 ? MI_GiB << 10 : MI_GiB)

// In each range so many addresses are tried.
#define SUBREGION_TRIES 2

// What option arena_reserve can ask for.
#define SUBREGION_BAND_MAX (sizeof(void*) > 4 ? 64 * MI_GiB : MI_BAND_SIZE_MIN) // with 32 bits there is no span

// Where so many bands could not even begin, somebody else uses those addresses.
#define SUBREGION_BLOCKED_MAX 3

// A multiple of this is covered at once: 64 KiB of the table, which is whole OS pages on every system.
#define SUBREGION_COVER_CHUNKS 32

typedef struct subregion_span_s {
  size_t n_chunks;    // 0: there is no span
  size_t size;        // with what describes it, which begins at free_chunks of region 0
  size_t chunks_size; // bytes of the array of chunks that are mapped
  size_t table_size;  // the same of the table
} subregion_span_t;

static subregion_span_t subregion_span;

// ---- planning -------------------------------------------------------------------------------------------------------

static size_t subregion_page_up(size_t size) {
  return mi_align_up(size, _mi_prim_os_page_size());
}

// Fills in where everything lies; what describes the span begins at `start`.
static void subregion_lay_out(mi_region_t* whole, uintptr_t start, size_t n) {
  uintptr_t chunks = start + subregion_page_up(n / 8);
  uintptr_t table = chunks + subregion_page_up(n * sizeof(mi_chunk_t));
  uintptr_t heap_links = table + subregion_page_up(n * MI_CHUNK_SLICES * MI_DESCRIPTOR_SIZE);
  whole->free_chunks = (uint64_t*)start;
  whole->chunks = (mi_chunk_t*)chunks;
  whole->table = (char*)table;
  whole->heap_links = (char*)heap_links;
  mi_store_growing(&whole->base, mi_align_up(heap_links + n * MI_CHUNK_SLICES * MI_HEAP_LINK_SIZE, MI_CHUNK_SIZE));
  mi_store_growing(&whole->n_slices, 0);
  subregion_span.n_chunks = n;
  subregion_span.size = whole->base + n * MI_CHUNK_SIZE - start;
}

// All of the bits, and the first chunks.
static bool subregion_map_first(mi_region_t* whole) {
  size_t page = _mi_prim_os_page_size();
  size_t size = (size_t)((char*)whole->chunks - (char*)whole->free_chunks) + page;
  subregion_span.chunks_size = page;
  subregion_span.table_size = 0;
  return _mi_prim_map_at(whole->free_chunks, size, false) == 0;
}

static bool subregion_plan_span(void) {
  mi_region_t* whole = &_mi_region_all[0];
  uintptr_t    from = 0;
  size_t       room = 0;
  for (size_t i = 0; _mi_prim_find_empty(i / SUBREGION_TRIES, &from, &room); i++) {
    size_t n = (size_t)mi_min(SUBREGION_SPAN_MAX, room / 2) / MI_CHUNK_SIZE;
    subregion_lay_out(whole, from, n);
    size_t n_starts = (room - subregion_span.size) / MI_CHUNK_SIZE;
    subregion_lay_out(whole, from + (size_t)(_mi_prim_random() % n_starts) * MI_CHUNK_SIZE, n);
    if (subregion_map_first(whole)) return true;
  }
  memset(&subregion_span, 0, sizeof(subregion_span));
  memset(whole, 0, sizeof(*whole));
  return false;
}

bool _mi_subregion_overlaps(const void* start, size_t size) {
  if (subregion_span.n_chunks == 0) return false;
  uintptr_t from = (uintptr_t)_mi_region_all[0].free_chunks;
  return (uintptr_t)start - from < subregion_span.size || from - (uintptr_t)start < size;
}

// ---- places ---------------------------------------------------------------------------------------------------------

// All but what every free reads (R1).
static void subregion_fill_chunks(mi_region_t* region, size_t i, size_t n) {
  const mi_region_t* whole = &_mi_region_all[0];
  region->n_chunks = region->n_usable = n;
  region->chunks = whole->chunks + i;
  region->free_chunks = whole->free_chunks + i / 64;
  region->heap_links = whole->heap_links + i * MI_CHUNK_SLICES * MI_HEAP_LINK_SIZE;
  region->numa_node = -1;
  _mi_region_set_groups(region);
}

void _mi_subregion_fill(mi_region_t* region, size_t i, size_t n) {
  const mi_region_t* whole = &_mi_region_all[0];
  region->base = whole->base + i * MI_CHUNK_SIZE;
  region->n_slices = n * MI_CHUNK_SLICES;
  region->table = whole->table + i * MI_CHUNK_SLICES * MI_DESCRIPTOR_SIZE;
  subregion_fill_chunks(region, i, n);
}

// The first chunk of a subregion, counted from the base of the span.
static size_t subregion_first(const mi_region_t* region) {
  return (region->base - _mi_region_all[0].base) / MI_CHUNK_SIZE;
}

// Where the highest subregion ends that has any of the words of bits of the chunks [begin, end); 0 if none has.
static size_t subregion_in_the_way(size_t begin, size_t end) {
  size_t highest = 0;
  for (size_t i = 0; i < _mi_region_count(); i++) {
    const mi_region_t* region = &_mi_region_all[i];
    size_t             first = subregion_first(region);
    if (region->base < _mi_region_all[0].base || first >= subregion_span.n_chunks) continue;
    size_t last = mi_align_up(first + region->n_chunks, SUBREGION_CHUNKS);
    if (mi_align_down(first, SUBREGION_CHUNKS) < end && last > begin) highest = mi_max(highest, last);
  }
  return highest;
}

size_t _mi_subregion_find(size_t n, size_t align) {
  uintptr_t base = _mi_region_all[0].base;
  size_t    first = 0;
  while (n <= subregion_span.n_chunks) {
    first = (mi_align_up(base + first * MI_CHUNK_SIZE, align) - base) / MI_CHUNK_SIZE;
    size_t end = mi_align_up(first + n, SUBREGION_CHUNKS);
    if (end > subregion_span.n_chunks) break;
    size_t other = subregion_in_the_way(mi_align_down(first, SUBREGION_CHUNKS), end);
    if (other == 0) return first;
    first = other;
  }
  return SIZE_MAX;
}

// ---- bands ----------------------------------------------------------------------------------------------------------

// As large as all of its kind are that we have, so that they stay few however large the heap gets, and as option arena_reserve
// says at first.
size_t _mi_subregion_band_size(bool is_huge) {
  long   reserve = _mi_option_get_fast(mi_option_arena_reserve);
  size_t size = mi_clamp(reserve <= 0 ? 0 : (size_t)reserve * MI_KiB, MI_BAND_SIZE_MIN, SUBREGION_BAND_MAX);
  size_t have = 0;
  for (const mi_region_t* region = &_mi_region_all[is_huge]; region != NULL; region = region->next)
    have += region->n_usable;
  return mi_align_down(mi_max(size, have * MI_CHUNK_SIZE), MI_BAND_SIZE_MIN);
}

bool _mi_subregion_plan(void) {
  if (!subregion_plan_span()) return false;
  size_t n = mi_min(_mi_subregion_band_size(false) / MI_CHUNK_SIZE, subregion_span.n_chunks / 4);
  subregion_fill_chunks(&_mi_region_all[0], 0, n); // its n_slices is 0: as far as the span is covered (SR2)
  _mi_region_all[0].is_planned = true;
  _mi_subregion_fill(&_mi_region_all[MI_REGION_HUGE], n, n);
  _mi_region_all[MI_REGION_HUGE].is_planned = _mi_region_all[MI_REGION_HUGE].is_huge = true;
  return true;
}

static bool subregion_is_blocked(void) {
  size_t n = 0;
  for (size_t i = 0; i < _mi_region_count(); i++)
    n += (_mi_region_all[i].is_planned && _mi_region_all[i].n_usable == 0);
  return n >= SUBREGION_BLOCKED_MAX;
}

bool _mi_subregion_make_band(mi_region_t* made, size_t size, bool is_huge) {
  if (subregion_is_blocked()) return false;
  size_t least = mi_align_up(size, MI_BAND_SIZE_MIN);
  size_t wanted = mi_max(least, _mi_subregion_band_size(is_huge));
  size_t i;
  while ((i = _mi_subregion_find(wanted / MI_CHUNK_SIZE, MI_CHUNK_SIZE)) == SIZE_MAX) {
    if (wanted == least) return false;
    wanted = mi_max(least, mi_align_down(wanted / 2, MI_BAND_SIZE_MIN));
  }
  memset(made, 0, sizeof(*made));
  _mi_subregion_fill(made, i, wanted / MI_CHUNK_SIZE);
  made->is_planned = true;
  made->is_huge = is_huge;
  return true;
}

// ---- mapping --------------------------------------------------------------------------------------------------------

int _mi_subregion_extend(void* array, size_t from, size_t to, bool is_new) {
  size_t    page = _mi_prim_os_page_size();
  uintptr_t start = (uintptr_t)array, end = mi_align_up(start + to, page);
  start = (from == 0 ? mi_align_down(start, page) : mi_align_up(start + from, page));
  if (start == end) return 0;
  return is_new ? _mi_prim_map_at((void*)start, end - start, from > 0) : _mi_prim_commit((void*)start, end - start);
}

// Maps an array of which *size bytes are mapped up to `wanted`.
static int subregion_map(void* array, size_t* size, size_t wanted) {
  wanted = subregion_page_up(wanted);
  if (wanted <= *size) return 0;
  int err = _mi_subregion_extend(array, *size, wanted, true);
  if (err == 0) *size = wanted;
  return err;
}

// Covers the first n chunks of the span.
static int subregion_cover(size_t n) {
  mi_region_t* whole = &_mi_region_all[0];
  int          err = subregion_map(whole->chunks, &subregion_span.chunks_size, n * sizeof(mi_chunk_t));
  if (err == 0) err = subregion_map(whole->table, &subregion_span.table_size, n * MI_CHUNK_SLICES * MI_DESCRIPTOR_SIZE);
  if (err == 0) mi_store_growing(&whole->n_slices, n * MI_CHUNK_SLICES);
  return err;
}

int _mi_subregion_cover(const mi_region_t* region, size_t n) {
  size_t covered = _mi_region_all[0].n_slices / MI_CHUNK_SLICES;
  size_t end = mi_align_up(subregion_first(region) + n, SUBREGION_COVER_CHUNKS);
  if (end <= covered) return 0;
  size_t ahead = mi_align_up(covered + covered / 8, SUBREGION_COVER_CHUNKS);
  if (ahead > end && ahead <= subregion_span.n_chunks && subregion_cover(ahead) == 0) return 0;
  return subregion_cover(end);
}

// ---- unmapping ------------------------------------------------------------------------------------------------------

// Of the table what lies in whole OS pages, for that is what gets large.
static void subregion_clear_descriptors(const mi_region_t* region) {
  uintptr_t page = _mi_prim_os_page_size();
  uintptr_t from = mi_align_up((uintptr_t)region->table, page);
  uintptr_t to = mi_align_down((uintptr_t)region->table + region->n_open * MI_CHUNK_SLICES * MI_DESCRIPTOR_SIZE, page);
  if (from < to) _mi_prim_purge((void*)from, to - from);
  memset(region->chunks, 0, region->n_open * sizeof(mi_chunk_t));
  memset(region->free_chunks, 0, mi_div_up(region->n_open, 64) * sizeof(uint64_t));
}

bool _mi_subregion_clear(mi_region_t* region) {
  size_t    size = region->n_heap_links * MI_CHUNK_SLICES * MI_HEAP_LINK_SIZE, page = _mi_prim_os_page_size();
  uintptr_t from = mi_align_down((uintptr_t)region->heap_links, page);
  uintptr_t to = mi_align_up((uintptr_t)region->heap_links + size, page);
  if (size > 0 && _mi_prim_release((void*)from, to - from) != 0) return false;
  region->n_heap_links = 0;
  size = region->reserved_size;
  if (size > 0 && _mi_prim_release((void*)region->base, size) != 0) return false;
  subregion_clear_descriptors(region);
  return true;
}
