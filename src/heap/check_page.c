// Checking pages.  Layer: heap.  check.h says how.
#include "check_page.h"

#include "../page/padding.h"
#include "fork.h"
#include "guard.h"

#define CHECK_PAGE(is_so, otherwise) MI_CHECK(c, is_so, otherwise, page, page)

// ---- what pointers may be -------------------------------------------------------------------------------------------

// Of what lies in our own slices.  The result may be another structure of ours: it can be read, but does not look right.
static bool check_is_meta(const void* p, size_t size) {
  for (size_t i = 0; i < _mi_region_count(); i++) { // not the one whose table covers it: that may be of another region
    const mi_region_t* region = &_mi_region_all[i];
    size_t             slice = _mi_region_slice_index(region, p);
    if (region->base == 0 || slice >= region->n_used * MI_CHUNK_SLICES) continue;
    size_t            offset = (size_t)((const char*)p - _mi_region_slice_start(region, slice));
    const mi_chunk_t* chunk = &region->chunks[slice / MI_CHUNK_SLICES];
    bool              is_free = ((chunk->free_bits >> (slice % MI_CHUNK_SLICES)) & 1) != 0;
    bool              is_kind = (chunk->kind == MI_CHUNK_META || region->is_mixed_up || !MI_PRIM_VIRTUAL);
    return is_kind && !is_free && offset % size == 0 && offset + size <= MI_SLICE_SIZE;
  }
  return false;
}

bool _mi_check_page_is_theap(const mi_theap_t* theap) {
  return theap != NULL && (_mi_registry_is_last(theap) || check_is_meta(theap, sizeof(*theap)));
}

bool _mi_check_page_is_heap(const mi_heap_t* heap) {
  return heap == &_mi_heap_main || (heap != NULL && check_is_meta(heap, sizeof(*heap)) && _mi_heap_is_live(heap));
}

static bool check_has_kind(const mi_page_t* page) {
  return _mi_page_kind(page) == MI_PAGE_BLOCKS || _mi_page_kind(page) == MI_PAGE_LARGE || _mi_gaps_is(page);
}

// Does it say rightly where it is, so that what belongs to it can be found; and its heap link, if it is to have one?
static bool check_is_in(const mi_page_t* page, const mi_region_t* region) {
  if (page->region != _mi_region_index(region)) return false;
  return !_mi_page_has(page, MI_PAGE_IN_HEAP) || _mi_page_is_mapped(page) ||
         _mi_page_slice(page) < region->n_heap_links * MI_CHUNK_SLICES;
}

bool _mi_check_page_is_page(const mi_page_t* page) {
  for (size_t i = 0; i < _mi_region_count(); i++) {
    const mi_region_t* region = &_mi_region_all[i];
    size_t             offset = (size_t)((const char*)page - region->table);
    size_t             size = (region->base == 0 ? 0 : region->n_used * MI_CHUNK_SLICES * MI_DESCRIPTOR_SIZE);
    if (offset < size) return offset % MI_DESCRIPTOR_SIZE == 0 && check_is_in(page, region) && check_has_kind(page);
  }
  const mi_region_t* none = &_mi_region_all[MI_REGION_MAPPED];
  return _mi_mapped_slot_is_descriptor(page) && check_is_in(page, none) && check_has_kind(page);
}

// ---- pages ----------------------------------------------------------------------------------------------------------

static bool check_is_same(const mi_page_t* page, const mi_page_t* part) {
  return _mi_page_kind(part) == MI_PAGE_INTERIOR && part->to_first == (size_t)(part - page) &&
         mi_load_relaxed(&part->bin_offset) == mi_load_relaxed(&page->bin_offset) &&
         _mi_page_block_size(part) == _mi_page_block_size(page) &&
         mi_load_relaxed(&((mi_page_t*)part)->home) == mi_load_relaxed(&((mi_page_t*)page)->home);
}

// Are all slices of the page in use, in chunks for such pages, and of a page of blocks alike?
static void check_slices(mi_check_t* c, const mi_region_t* region, size_t slice, const mi_page_t* page) {
  bool is_large = (_mi_page_kind(page) == MI_PAGE_LARGE);
  bool is_inside = page->n_slices > 0 && page->n_slices <= region->n_used * MI_CHUNK_SLICES - slice;
  if (_mi_page_is_mapped(page) || !CHECK_PAGE(is_inside, "a page that ends outside its region")) return;
  for (size_t i = 0; i < page->n_slices; i++) {
    size_t            bit = (slice + i) % MI_CHUNK_SLICES;
    const mi_chunk_t* chunk = &region->chunks[(slice + i) / MI_CHUNK_SLICES];
    bool              is_kind = (page->n_slices > 1 ? chunk->kind == MI_CHUNK_MEDIUM
                                                    : chunk->kind == MI_CHUNK_SMALL || chunk->kind == MI_CHUNK_HUGE);
    if (!MI_PRIM_VIRTUAL && chunk->kind == MI_CHUNK_MIXED) is_kind = true;
    if (!CHECK_PAGE(((chunk->free_bits >> bit) & 1) == 0, "A1: a slice of a page is free")) return;
    if (!CHECK_PAGE(is_large || is_kind || region->is_mixed_up, "a page in a chunk of another kind")) return;
    bool is_same = (is_large || i == 0 || check_is_same(page, page + i));
    MI_CHECK(c, is_same, "P3: a later slice that differs from the first", page + i, page);
  }
}

// Does it look as its state demands?
static void check_state(mi_check_t* c, const mi_page_t* page) {
  uint64_t word = mi_load_relaxed(&((mi_page_t*)page)->word);
  size_t   count = _mi_page_word_chain(word).count;
  bool     is_full = page->free == NULL && page->extended == page->capacity && _mi_page_used(page) == page->capacity;
  bool     is_listed = page->next != NULL || page->prev != NULL || _mi_page_has(page, MI_PAGE_IS_FULL);
  switch (_mi_page_word_state(word)) {
    case MI_PAGE_OWNED: c->n_said[MI_CHECK_QUEUE]++; break;
    case MI_PAGE_PARKED:
      CHECK_PAGE(is_full, "a PARKED page that is not full");
      CHECK_PAGE(count < _mi_size_class_info[page->cls].claim_at, "a PARKED page that should have been claimed");
      CHECK_PAGE(!is_listed, "a PARKED page in a list");
      break;
    case MI_PAGE_SHARED:
      c->n_said[MI_CHECK_POOL]++;
      CHECK_PAGE(count > 0 && count < page->capacity, "a SHARED page that is full or empty");
      break;
    default: CHECK_PAGE(false, "a page that stays CLAIMED"); break;
  }
}

// P2: what was not made yet was not touched.
static void check_unmade(mi_check_t* c, const mi_page_t* page) {
  if (!_mi_page_has(page, MI_PAGE_IS_ZERO) || MI_TRACK) return; // a tool would report that it is read
  size_t at = _mi_page_first_made(page) + page->extended;
  for (size_t n = page->extended; n < page->capacity; n++, at++) {
    if (at >= page->capacity) at -= page->capacity;
    const uint64_t* words = (const uint64_t*)(const void*)_mi_page_block(page, at);
    for (size_t i = 0; i < _mi_page_block_size(page) / sizeof(*words); i++) {
      if (!MI_CHECK(c, words[i] == 0, "P2: memory that was written before it was made a block", &words[i], page))
        return;
    }
  }
}

const char _mi_check_page_overflow[] = "buffer overflow: a block that was written to beyond its end";
const char _mi_check_page_margin[] = "buffer overflow or underflow: somebody has written next to the block";

static void check_end(mi_check_t* c, bool is_whole, const char* otherwise, const char* block, const mi_page_t* page) {
  if (!MI_CHECK(c, is_whole, otherwise, block, page)) c->n_overflows++;
}

// What the program has must end as it was made.  Only where lists are whole: a free block that was not found in one would be
// taken for one in use.  Where a tool watches, it is the tool that reports the write.
static void check_ends(mi_check_t* c, const mi_page_t* page) {
  if (!MI_CHECKED || MI_TRACK || c->has_unsettled || mi_load_relaxed(&_mi_fork_has_lost)) return;
  for (size_t i = 0; i < c->view.n_blocks; i++) {
    const char* block = c->view.start + i * c->view.block_size;
    bool        is_whole = !_mi_view_is_live(&c->view, i) || _mi_padding_is_whole(block, c->view.block_size);
    check_end(c, is_whole, _mi_check_page_overflow, block, page);
  }
}

// Nor does what a lost thread was just making have an end, or say how long it is to be.
static void check_end_of_large(mi_check_t* c, const mi_page_t* page) {
  const char* block = _mi_page_large_block(page);
  bool        has_lost = mi_load_relaxed(&_mi_fork_has_lost);
  if (_mi_page_has(page, MI_PAGE_GUARDED)) {
    const mi_guard_t* guard = page->guard;
    bool              is_guard = check_is_meta(guard, sizeof(*guard)) && guard->page == page && guard->block == block;
    if (!CHECK_PAGE(is_guard, "a guarded block without a record")) return;
    check_end(c, has_lost || _mi_guard_is_whole(guard), _mi_check_page_margin, block, page);
  }
  else if (MI_CHECKED && !MI_TRACK) {
    bool is_possible = has_lost || page->asked + MI_PADDING_SIZE <= _mi_page_large_size(page);
    if (!CHECK_PAGE(is_possible, "a large block that is larger than its page")) return;
    check_end(c, has_lost || _mi_padding_read_large(page) != SIZE_MAX, _mi_check_page_overflow, block, page);
  }
}

// Faults that were found in lists or descriptors, so that ends are not to be looked for.
static bool check_found_damage(const mi_check_t* c) {
  return c->faults.n > c->n_overflows;
}

static void check_gaps(mi_check_t* c, mi_page_t* page) {
  mi_page_state_t state = _mi_page_word_state(mi_load_relaxed(&page->word));
  bool            is_bin = (mi_load_relaxed(&page->bin_offset) == MI_NO_SLOTS_OFFSET && page->to_first == 0);
  CHECK_PAGE(is_bin && _mi_gaps_is_valid(page), "GP1: a gap page that fits not its map");
  CHECK_PAGE(_mi_check_page_is_theap(mi_load_relaxed(&page->home)), "H5: a home that is no theap");
  CHECK_PAGE(state == MI_PAGE_OWNED || state == MI_PAGE_SHARED, "GP4: a gap page in another state");
  if (state == MI_PAGE_SHARED) c->n_said[MI_CHECK_POOL]++;
  if (!check_found_damage(c)) _mi_view_make(&c->view, page, c->waiting, &c->faults);
}

static void check_page_of_blocks(mi_check_t* c, mi_page_t* page, const mi_heap_t* heap) {
  size_t n_faults = c->faults.n;
  _mi_view_make(&c->view, page, c->waiting, &c->faults);
  if (c->view.n_blocks == 0) return; // nothing fits
  size_t            bin_offset = (size_t)page->cls << MI_BIN_SHIFT;
  bool              is_in_bin = (mi_load_relaxed(&page->bin_offset) == bin_offset ||
                    mi_load_relaxed(&page->bin_offset) == bin_offset + MI_RETURNS_OFFSET ||
                    mi_load_relaxed(&page->bin_offset) == _mi_theap_drain_offset(page->cls));
  bool              is_of_class = (page->to_first == 0 && is_in_bin);
  const mi_theap_t* home = mi_load_relaxed(&page->home);
  CHECK_PAGE(is_of_class, "a descriptor of another class");
  if (!CHECK_PAGE(_mi_check_page_is_theap(home), "H5: a home that is no theap")) return;
  CHECK_PAGE(home->heap == heap, "Q3: a home of another heap");
  check_state(c, page);
  if (c->faults.n == n_faults) check_unmade(c, page);
  if (!check_found_damage(c)) check_ends(c, page);
}

static void check_large(mi_check_t* c, const mi_page_t* page) {
  size_t offset = (size_t)(_mi_page_large_block(page) - _mi_page_large_start(page));
  bool   is_possible = page->cls == MI_CLASS_NONE && page->to_first == 0 && _mi_page_block_size(page) == 0 &&
                     mi_load_relaxed(&((mi_page_t*)page)->home) == NULL &&
                     offset < (size_t)page->n_slices << MI_SLICE_SHIFT;
  CHECK_PAGE(is_possible, "a descriptor that fits no large block");
  if (!check_found_damage(c)) check_end_of_large(c, page);
}

// Neither is it in use yet, nor does it wait to be (spare.h, EP1).
static bool check_is_spare(const mi_page_t* page) {
  uint64_t word = mi_load_relaxed(&((mi_page_t*)page)->word);
  return word == _mi_page_word_make(MI_PAGE_CLAIMED, 0, NULL) && _mi_page_used(page) == 0 &&
         mi_load_relaxed(&((mi_page_t*)page)->home) == NULL;
}

static void check_page(mi_check_t* c, const mi_region_t* region, size_t slice, mi_page_t* page) {
  bool is_large = (_mi_page_kind(page) == MI_PAGE_LARGE);
  if (is_large ? _mi_page_word_state(mi_load_relaxed(&page->word)) == MI_PAGE_CLAIMED               // freed
               : mi_load_relaxed(&page->home) == NULL && (c->heap != NULL || check_is_spare(page))) // just being made
    return;
  mi_fence_acquire(); // what was made before its word, or its home, said so
  if (!CHECK_PAGE(check_is_in(page, region), "a descriptor of another place")) return;
  const mi_heap_t* heap = _mi_heap_of(page);
  if (!_mi_check_page_wants(c, heap)) return;
  if (!CHECK_PAGE(_mi_check_page_is_heap(heap), "Q1: a page of a heap that is not in use")) return;
  if (heap != &_mi_heap_main) c->n_said[MI_CHECK_HEAP]++;
  check_slices(c, region, slice, page);
  if (is_large) check_large(c, page);
  else if (_mi_gaps_is(page)) check_gaps(c, page);
  else check_page_of_blocks(c, page, heap);
}

// `slice`: of the region, if it has any.
static void check_descriptor(mi_check_t* c, const mi_region_t* region, size_t slice, mi_page_t* page) {
  mi_page_kind_t kind = _mi_page_kind(page);
  if (kind == MI_PAGE_INTERIOR && c->heap == NULL) { // it says that it is the later part of a page
    const mi_page_t* first = page - (page->to_first <= slice ? page->to_first : 0);
    bool             is_part = check_has_kind(first) && page->to_first < first->n_slices;
    MI_CHECK(c, is_part, "a slice of no page", page, NULL);
  }
  else if (check_has_kind(page)) {
    check_page(c, region, slice, page);
  }
  else {
    MI_CHECK(c, kind == MI_PAGE_NONE || kind == MI_PAGE_INTERIOR, "a descriptor of no kind", page, NULL);
  }
}

void _mi_check_page_all(mi_check_t* c) {
  for (size_t i = 0; i < _mi_region_count(); i++) {
    const mi_region_t* region = &_mi_region_all[i];
    size_t             n = (region->base == 0 ? 0 : region->n_used * MI_CHUNK_SLICES);
    for (size_t k = 0; k < n; k++) check_descriptor(c, region, k, (mi_page_t*)_mi_region_descriptor(region, k));
  }
  const mi_region_t* none = &_mi_region_all[MI_REGION_MAPPED];
  for (void* page = NULL; (page = _mi_mapped_slot_next(page)) != NULL;) check_descriptor(c, none, 0, (mi_page_t*)page);
}
