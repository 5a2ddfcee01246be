// The span and its parts.  Layer: arena.
#include "part.h"

#include <errno.h>
#include <string.h>

#include "../support/option.h"

// A part has whole words of the bits of the span (S4).
#define PART_CHUNKS 64

// More than any process has memory.  Of a smaller range of addresses half is planned, so that half of it is left to choose
// from.
#define PART_SPAN_MAX ((uint64_t)1 << 40)

// In each range so many addresses are tried.
#define PART_TRIES 2

// What option arena_reserve can ask for.
#define PART_BAND_MAX (sizeof(void*) > 4 ? 64 * MI_GiB : MI_GiB / 4)

// Where so many bands could not even begin, somebody else uses those addresses.
#define PART_BLOCKED_MAX 3

// A multiple of this is covered at once: 64 KiB of the table, which is whole OS pages on every system.
#define PART_COVER_CHUNKS 32

typedef struct part_span_s {
  size_t n_chunks;    // 0: there is no span
  size_t size;        // with what describes it, which begins at free_chunks of region 0
  size_t chunks_size; // bytes of the array of chunks that are mapped
  size_t table_size;  // the same of the table
} part_span_t;

static part_span_t part_span;

// ---- planning -------------------------------------------------------------------------------------------------------

static size_t part_page_up(size_t size) {
  return mi_align_up(size, _mi_prim_os_page_size());
}

// Fills in where everything lies; what describes the span begins at `start`.
static void part_lay_out(mi_region_t* whole, uintptr_t start, size_t n) {
  uintptr_t chunks = start + part_page_up(n / 8);
  uintptr_t table = chunks + part_page_up(n * sizeof(mi_chunk_t));
  uintptr_t heap_links = table + part_page_up(n * MI_CHUNK_SLICES * MI_DESCRIPTOR_SIZE);
  whole->free_chunks = (uint64_t*)start;
  whole->chunks = (mi_chunk_t*)chunks;
  whole->table = (char*)table;
  whole->heap_links = (char*)heap_links;
  mi_store_growing(&whole->base, mi_align_up(heap_links + n * MI_CHUNK_SLICES * MI_HEAP_LINK_SIZE, MI_CHUNK_SIZE));
  mi_store_growing(&whole->n_slices, 0);
  part_span.n_chunks = n;
  part_span.size = whole->base + n * MI_CHUNK_SIZE - start;
}

// All of the bits, and the first chunks.
static bool part_map_first(mi_region_t* whole) {
  size_t page = _mi_prim_os_page_size();
  size_t size = (size_t)((char*)whole->chunks - (char*)whole->free_chunks) + page;
  part_span.chunks_size = page;
  part_span.table_size = 0;
  return _mi_prim_map_at(whole->free_chunks, size, false) == 0;
}

static bool part_plan_span(void) {
  mi_region_t* whole = &_mi_region_all[0];
  uintptr_t    from;
  size_t       room;
  for (size_t i = 0; _mi_prim_find_empty(i / PART_TRIES, &from, &room); i++) {
    size_t n = (size_t)mi_min(PART_SPAN_MAX, room / 2) / MI_CHUNK_SIZE;
    part_lay_out(whole, from, n);
    size_t n_starts = (room - part_span.size) / MI_CHUNK_SIZE;
    part_lay_out(whole, from + (size_t)(_mi_prim_random() % n_starts) * MI_CHUNK_SIZE, n);
    if (part_map_first(whole)) return true;
  }
  memset(&part_span, 0, sizeof(part_span));
  memset(whole, 0, sizeof(*whole));
  return false;
}

bool _mi_part_overlaps(const void* start, size_t size) {
  if (part_span.n_chunks == 0) return false;
  uintptr_t from = (uintptr_t)_mi_region_all[0].free_chunks;
  return (uintptr_t)start - from < part_span.size || from - (uintptr_t)start < size;
}

// ---- places ---------------------------------------------------------------------------------------------------------

// All but what every free reads (R1).
static void part_fill_chunks(mi_region_t* region, size_t i, size_t n) {
  const mi_region_t* whole = &_mi_region_all[0];
  region->n_chunks = region->n_usable = n;
  region->chunks = whole->chunks + i;
  region->free_chunks = whole->free_chunks + i / 64;
  region->heap_links = whole->heap_links + i * MI_CHUNK_SLICES * MI_HEAP_LINK_SIZE;
  region->numa_node = -1;
  _mi_region_set_groups(region);
}

void _mi_part_fill(mi_region_t* region, size_t i, size_t n) {
  const mi_region_t* whole = &_mi_region_all[0];
  region->base = whole->base + i * MI_CHUNK_SIZE;
  region->n_slices = n * MI_CHUNK_SLICES;
  region->table = whole->table + i * MI_CHUNK_SLICES * MI_DESCRIPTOR_SIZE;
  part_fill_chunks(region, i, n);
}

// The first chunk of a part, counted from the base of the span.
static size_t part_first(const mi_region_t* part) {
  return (part->base - _mi_region_all[0].base) / MI_CHUNK_SIZE;
}

// Where the highest part ends that has any of the words of bits of the chunks [begin, end); 0 if none has.
static size_t part_in_the_way(size_t begin, size_t end) {
  size_t highest = 0;
  for (size_t i = 0; i < _mi_region_count(); i++) {
    const mi_region_t* part = &_mi_region_all[i];
    size_t             first = part_first(part);
    if (part->base < _mi_region_all[0].base || first >= part_span.n_chunks) continue;
    size_t last = mi_align_up(first + part->n_chunks, PART_CHUNKS);
    if (mi_align_down(first, PART_CHUNKS) < end && last > begin) highest = mi_max(highest, last);
  }
  return highest;
}

size_t _mi_part_find(size_t n, size_t align) {
  uintptr_t base = _mi_region_all[0].base;
  size_t    first = 0;
  while (n <= part_span.n_chunks) {
    first = (mi_align_up(base + first * MI_CHUNK_SIZE, align) - base) / MI_CHUNK_SIZE;
    size_t end = mi_align_up(first + n, PART_CHUNKS);
    if (end > part_span.n_chunks) break;
    size_t other = part_in_the_way(mi_align_down(first, PART_CHUNKS), end);
    if (other == 0) return first;
    first = other;
  }
  return SIZE_MAX;
}

// ---- bands ----------------------------------------------------------------------------------------------------------

// As large as all of its kind are that we have, so that they stay few however large the heap gets, and as option arena_reserve
// says at first.
size_t _mi_part_band_size(bool is_huge) {
  long   reserve = _mi_option_get_fast(mi_option_arena_reserve);
  size_t size = mi_clamp(reserve <= 0 ? 0 : (size_t)reserve * MI_KiB, MI_BAND_SIZE_MIN, PART_BAND_MAX);
  size_t have = 0;
  for (const mi_region_t* region = &_mi_region_all[is_huge]; region != NULL; region = region->next)
    have += region->n_usable;
  return mi_align_down(mi_max(size, have * MI_CHUNK_SIZE), MI_BAND_SIZE_MIN);
}

bool _mi_part_plan(void) {
  if (!part_plan_span()) return false;
  size_t n = mi_min(_mi_part_band_size(false) / MI_CHUNK_SIZE, part_span.n_chunks / 4);
  part_fill_chunks(&_mi_region_all[0], 0, n); // its n_slices is 0: as far as the span is covered (S2)
  _mi_region_all[0].is_planned = true;
  _mi_part_fill(&_mi_region_all[MI_REGION_HUGE], n, n);
  _mi_region_all[MI_REGION_HUGE].is_planned = _mi_region_all[MI_REGION_HUGE].is_huge = true;
  return true;
}

static bool part_is_blocked(void) {
  size_t n = 0;
  for (size_t i = 0; i < _mi_region_count(); i++)
    n += (_mi_region_all[i].is_planned && _mi_region_all[i].n_usable == 0);
  return n >= PART_BLOCKED_MAX;
}

bool _mi_part_make_band(mi_region_t* made, size_t size, bool is_huge) {
  if (part_is_blocked()) return false;
  size_t least = mi_align_up(size, MI_BAND_SIZE_MIN);
  size_t wanted = mi_max(least, _mi_part_band_size(is_huge));
  size_t i;
  while ((i = _mi_part_find(wanted / MI_CHUNK_SIZE, MI_CHUNK_SIZE)) == SIZE_MAX) {
    if (wanted == least) return false;
    wanted = mi_max(least, mi_align_down(wanted / 2, MI_BAND_SIZE_MIN));
  }
  memset(made, 0, sizeof(*made));
  _mi_part_fill(made, i, wanted / MI_CHUNK_SIZE);
  made->is_planned = true;
  made->is_huge = is_huge;
  return true;
}

// ---- mapping --------------------------------------------------------------------------------------------------------

static int part_map(void* start, size_t size, bool grows) {
  if (size == 0) return 0;
  return _mi_prim_map_at(start, size, grows);
}

// Maps an array of which *size bytes are mapped up to `wanted`.
static int part_extend(void* array, size_t* size, size_t wanted) {
  wanted = part_page_up(wanted);
  if (wanted <= *size) return 0;
  int err = part_map((char*)array + *size, wanted - *size, *size > 0);
  if (err == 0) *size = wanted;
  return err;
}

// Covers the first n chunks of the span.
static int part_cover(size_t n) {
  mi_region_t* whole = &_mi_region_all[0];
  int          err = part_extend(whole->chunks, &part_span.chunks_size, n * sizeof(mi_chunk_t));
  if (err == 0) err = part_extend(whole->table, &part_span.table_size, n * MI_CHUNK_SLICES * MI_DESCRIPTOR_SIZE);
  if (err == 0) mi_store_growing(&whole->n_slices, n * MI_CHUNK_SLICES);
  return err;
}

int _mi_part_cover(const mi_region_t* part, size_t n) {
  size_t covered = _mi_region_all[0].n_slices / MI_CHUNK_SLICES;
  size_t end = mi_align_up(part_first(part) + n, PART_COVER_CHUNKS);
  if (end <= covered) return 0;
  size_t ahead = mi_align_up(covered + covered / 8, PART_COVER_CHUNKS);
  if (ahead > end && ahead <= part_span.n_chunks && part_cover(ahead) == 0) return 0;
  return part_cover(end);
}

int _mi_part_map(const mi_region_t* part, size_t n) {
  size_t open = part->n_open;
  return part_map((char*)part->base + open * MI_CHUNK_SIZE, (n - open) * MI_CHUNK_SIZE, open > 0);
}

// What is mapped of the heap links when those of n chunks can be used.
static size_t part_heap_links_end(const mi_region_t* part, size_t n) {
  uintptr_t page = _mi_prim_os_page_size();
  uintptr_t start = (uintptr_t)part->heap_links;
  if (n == 0) return mi_align_down(start, page);
  return mi_align_up(start + n * MI_CHUNK_SLICES * MI_HEAP_LINK_SIZE, page);
}

int _mi_part_map_heap_links(const mi_region_t* part, size_t n) {
  size_t from = part_heap_links_end(part, part->n_heap_links);
  return part_map((void*)from, part_heap_links_end(part, n) - from, part->n_heap_links > 0);
}

// ---- unmapping ------------------------------------------------------------------------------------------------------

static bool part_unmap(uintptr_t start, size_t size) {
  return size == 0 || _mi_prim_release((void*)start, size) == 0;
}

// Of the table what lies in whole OS pages, for that is what gets large.
static void part_clear_descriptors(const mi_region_t* part) {
  uintptr_t page = _mi_prim_os_page_size();
  uintptr_t from = mi_align_up((uintptr_t)part->table, page);
  uintptr_t to = mi_align_down((uintptr_t)part->table + part->n_open * MI_CHUNK_SLICES * MI_DESCRIPTOR_SIZE, page);
  if (from < to) _mi_prim_purge((void*)from, to - from);
  memset(part->chunks, 0, part->n_open * sizeof(mi_chunk_t));
  memset(part->free_chunks, 0, mi_div_up(part->n_open, 64) * sizeof(uint64_t));
}

bool _mi_part_clear(mi_region_t* part) {
  uintptr_t heap_links = part_heap_links_end(part, 0);
  if (!part_unmap(heap_links, part_heap_links_end(part, part->n_heap_links) - heap_links)) return false;
  part->n_heap_links = 0;
  if (!part_unmap(part->base, part->reserved_size)) return false;
  part_clear_descriptors(part);
  return true;
}
