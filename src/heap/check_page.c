// Checking pages.  Layer: heap.  check.h says how.
#include "check_page.h"

#include "../page/padding.h"
#include "fork.h"
#include "guard.h"

// ---- what pointers may be -------------------------------------------------------------------------------------------

static const mi_region_t* check_region_of(const void* p) {
  for (size_t i = 0; i < _mi_region_count(); i++) {
    const mi_region_t* region = &_mi_region_all[i];
    bool               is_here = (uintptr_t)p - region->base < region->n_used * MI_CHUNK_SIZE;
    if (region->base != 0 && is_here) return region;
  }
  return NULL;
}

// Of what lies in our own slices.  The result may be another structure of ours: it can be read, but does not look right.
static bool check_is_meta(const void* p, size_t size) {
  const mi_region_t* region = check_region_of(p);
  if (region == NULL) return false;
  size_t            slice = _mi_region_slice_index(region, p);
  size_t            offset = (size_t)((const char*)p - _mi_region_slice_start(region, slice));
  const mi_chunk_t* chunk = &region->chunks[slice / MI_CHUNK_SLICES];
  if (chunk->kind != MI_CHUNK_META) return false;
  bool is_free = ((chunk->free_bits >> (slice % MI_CHUNK_SLICES)) & 1) != 0;
  return !is_free && offset % size == 0 && offset + size <= MI_SLICE_SIZE;
}

bool _mi_check_page_is_theap(const mi_theap_t* theap) {
  return theap != NULL && (_mi_registry_is_last(theap) || check_is_meta(theap, sizeof(*theap)));
}

bool _mi_check_page_is_heap(const mi_heap_t* heap) {
  return heap == &_mi_heap_main || (heap != NULL && check_is_meta(heap, sizeof(*heap)) && _mi_heap_is_live(heap));
}

// The region whose table this is a descriptor of, NULL if it is of none.  That of mapped blocks has no table.
static const mi_region_t* check_region_of_descriptor(const mi_page_t* page) {
  for (size_t i = 0; i < _mi_region_count(); i++) {
    const mi_region_t* region = &_mi_region_all[i];
    size_t             offset = (size_t)((const char*)page - region->table);
    size_t             n = region->n_used * MI_CHUNK_SLICES;
    if (region->base != 0 && offset < n * MI_DESCRIPTOR_SIZE && offset % MI_DESCRIPTOR_SIZE == 0) return region;
  }
  return _mi_mapped_is_descriptor(page) ? &_mi_region_all[MI_REGION_MAPPED] : NULL;
}

static bool check_is_descriptor(const mi_page_t* page) {
  return check_region_of_descriptor(page) != NULL;
}

// Does it say rightly where it is, so that what belongs to it can be found; and its heap link, if it is to have one?
static bool check_is_in(const mi_page_t* page, const mi_region_t* region) {
  if (page->region != _mi_region_index(region)) return false;
  return !_mi_page_has(page, MI_PAGE_IN_HEAP) || _mi_page_is_mapped(page) ||
         _mi_page_slice(page) < region->n_heap_links * MI_CHUNK_SLICES;
}

bool _mi_check_page_is_page(const mi_page_t* page) {
  const mi_region_t* region = check_region_of_descriptor(page);
  if (region == NULL || !check_is_in(page, region)) return false;
  return _mi_page_kind(page) == MI_PAGE_BLOCKS || _mi_page_kind(page) == MI_PAGE_LARGE;
}

// ---- pages ----------------------------------------------------------------------------------------------------------

// Are all slices of the page in use, in chunks for such pages?
static void check_slices(mi_check_t* c, const mi_region_t* region, size_t slice, const mi_page_t* page) {
  if (_mi_page_is_mapped(page)) return;
  bool is_large = (_mi_page_kind(page) == MI_PAGE_LARGE);
  if (!_mi_check_page_that(c, page->n_slices > 0 && page->n_slices <= region->n_used * MI_CHUNK_SLICES - slice,
                           "a page that ends outside its region", page, page))
    return;
  for (size_t i = slice; i < slice + page->n_slices; i++) {
    const mi_chunk_t* chunk = &region->chunks[i / MI_CHUNK_SLICES];
    bool              is_taken = ((chunk->free_bits >> (i % MI_CHUNK_SLICES)) & 1) == 0;
    if (!_mi_check_page_that(c, is_taken, "A1: a slice of a page is free", page, page)) return;
    bool is_kind = (page->n_slices > 1 ? chunk->kind == MI_CHUNK_MEDIUM
                                       : chunk->kind == MI_CHUNK_SMALL || chunk->kind == MI_CHUNK_HUGE);
    if (!_mi_check_page_that(c, is_kind || is_large, "a page in a chunk of another kind", page, page)) return;
  }
}

static void check_interior(mi_check_t* c, const mi_page_t* page) {
  for (uint32_t i = 1; i < page->n_slices; i++) {
    const mi_page_t* slice = page + i;
    bool             is_same = _mi_page_kind(slice) == MI_PAGE_INTERIOR && slice->to_first == i &&
                   slice->bin_offset == page->bin_offset && _mi_page_block_size(slice) == _mi_page_block_size(page) &&
                   mi_load_relaxed(&((mi_page_t*)slice)->home) == mi_load_relaxed(&((mi_page_t*)page)->home);
    _mi_check_page_that(c, is_same, "P3: a later slice that differs from the first", slice, page);
  }
}

// Does the page lie in a list whose ends these are, as far as its neighbours know?
static bool check_is_between(const mi_page_t* page, const mi_page_t* first, const mi_page_t* last) {
  if (page->prev == NULL ? first != page : !check_is_descriptor(page->prev) || page->prev->next != page) return false;
  if (page->next != NULL) return check_is_descriptor(page->next) && page->next->prev == page;
  return last == NULL || last == page;
}

static void check_owned(mi_check_t* c, const mi_page_t* page, const mi_theap_t* home) {
  const mi_class_state_t* state = &home->classes[page->cls];
  const mi_page_list_t*   list = (_mi_page_has(page, MI_PAGE_IS_FULL) ? &state->full : &state->queue);
  c->n_owned++;
  _mi_check_page_that(c, _mi_theap_is_live(home), "a page that is OWNED by nobody", page, page);
  _mi_check_page_that(c, check_is_between(page, list->first, list->last), "H4: a page that is not in its owner's list",
                      page, page);
}

static void check_parked(mi_check_t* c, const mi_page_t* page, size_t count) {
  bool is_full = page->free == NULL && page->extended == page->capacity && _mi_page_used(page) == page->capacity;
  _mi_check_page_that(c, is_full, "a PARKED page that is not full", page, page);
  _mi_check_page_that(c, count < _mi_size_class_info[page->cls].claim_at, "a PARKED page that should have been claimed",
                      page, page);
  _mi_check_page_that(c, page->next == NULL && page->prev == NULL && !_mi_page_has(page, MI_PAGE_IS_FULL),
                      "a PARKED page in a list", page, page);
}

static void check_shared(mi_check_t* c, const mi_page_t* page, const mi_heap_t* heap, size_t count) {
  mi_pool_t* pool = &((mi_heap_t*)heap)->pools[page->cls];
  c->n_shared++;
  _mi_check_page_that(c, count > 0 && count < page->capacity, "a SHARED page that is full or empty", page, page);
  _mi_check_page_that(c, check_is_between(page, mi_load_relaxed(&pool->first), NULL),
                      "PO1: a SHARED page that is not in the pool", page, page);
}

// Who has it, and in which list?
static void check_state(mi_check_t* c, const mi_page_t* page, const mi_heap_t* heap, const mi_theap_t* home) {
  uint64_t word = mi_load_relaxed(&((mi_page_t*)page)->word);
  size_t   count = _mi_page_word_chain(word).count;
  switch (_mi_page_word_state(word)) {
    case MI_PAGE_OWNED: check_owned(c, page, home); break;
    case MI_PAGE_PARKED: check_parked(c, page, count); break;
    case MI_PAGE_SHARED: check_shared(c, page, heap, count); break;
    default: _mi_check_page_that(c, false, "a page that stays CLAIMED", page, page); break;
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
      if (!_mi_check_page_that(c, words[i] == 0, "P2: memory that was written before it was made a block", &words[i],
                               page))
        return;
    }
  }
}

const char _mi_check_page_overflow[] = "buffer overflow: a block that was written to beyond its end";
const char _mi_check_page_margin[] = "buffer overflow or underflow: somebody has written next to the block";

static bool check_found_damage(const mi_check_t* c) {
  return c->faults.n > c->n_overflows;
}

static void check_end(mi_check_t* c, bool is_whole, const char* otherwise, const char* block, const mi_page_t* page) {
  if (!_mi_check_page_that(c, is_whole, otherwise, block, page)) c->n_overflows++;
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

static bool check_is_guard(const mi_guard_t* guard, const mi_page_t* page) {
  return check_is_meta(guard, sizeof(*guard)) && guard->page == page && guard->block == _mi_page_large_block(page);
}

static void check_end_of_large(mi_check_t* c, const mi_page_t* page) {
  const char* block = _mi_page_large_block(page);
  bool        has_lost = mi_load_relaxed(&_mi_fork_has_lost);
  if (_mi_page_has(page, MI_PAGE_GUARDED)) {
    if (!_mi_check_page_that(c, check_is_guard(page->guard, page), "a guarded block without a record", page, page))
      return;
    check_end(c, has_lost || _mi_guard_is_whole(page->guard), _mi_check_page_margin, block, page);
  }
  else if (MI_CHECKED && !MI_TRACK) {
    bool is_possible = page->asked + MI_PADDING_SIZE <= _mi_page_large_size(page);
    if (!_mi_check_page_that(c, is_possible, "a large block that is larger than its page", page, page)) return;
    check_end(c, has_lost || _mi_padding_read_large(page) != SIZE_MAX, _mi_check_page_overflow, block, page);
  }
}

static void check_page_of_blocks(mi_check_t* c, mi_page_t* page, const mi_heap_t* heap) {
  size_t n_faults = c->faults.n;
  _mi_view_make(&c->view, page, &c->faults);
  if (c->view.n_blocks == 0) return; // nothing fits
  _mi_check_page_that(c, page->to_first == 0 && page->bin_offset == page->cls << MI_BIN_SHIFT,
                      "a descriptor of another class", page, page);
  check_interior(c, page);
  const mi_theap_t* home = mi_load_relaxed(&page->home);
  if (!_mi_check_page_that(c, _mi_check_page_is_theap(home), "H5: a home that is no theap", page, page)) return;
  _mi_check_page_that(c, home->heap == heap, "Q3: a home of another heap", page, page);
  check_state(c, page, heap, home);
  if (c->faults.n == n_faults) check_unmade(c, page);
  if (!check_found_damage(c)) check_ends(c, page);
}

static void check_large(mi_check_t* c, const mi_page_t* page) {
  size_t offset = (size_t)(_mi_page_large_block(page) - _mi_page_large_start(page));
  bool   is_possible = page->cls == MI_CLASS_NONE && page->to_first == 0 && _mi_page_block_size(page) == 0 &&
                     mi_load_relaxed(&((mi_page_t*)page)->home) == NULL &&
                     offset < (size_t)page->n_slices << MI_SLICE_SHIFT;
  _mi_check_page_that(c, is_possible, "a descriptor that fits no large block", page, page);
  if (!check_found_damage(c)) check_end_of_large(c, page);
}

// Is it in its heap's list, as far as its neighbours know?
static void check_is_listed(mi_check_t* c, const mi_page_t* page, const mi_heap_t* heap) {
  const mi_page_heap_link_t* link = _mi_page_heap_link(page);
  bool                       is_next =
      (link->prev == NULL ? heap->pages == page
                          : _mi_check_page_is_page(link->prev) && _mi_page_heap_link(link->prev)->next == page);
  bool is_prev =
      link->next == NULL || (_mi_check_page_is_page(link->next) && _mi_page_heap_link(link->next)->prev == page);
  _mi_check_page_that(c, is_next && is_prev, "Q1: a page that is not in its heap's list", page, page);
  c->n_in_heaps++;
}

// `slice`: of the region, if it has any.
static void check_page(mi_check_t* c, const mi_region_t* region, size_t slice, mi_page_t* page) {
  bool is_large = (_mi_page_kind(page) == MI_PAGE_LARGE);
  if (is_large ? _mi_page_word_state(mi_load_relaxed(&page->word)) == MI_PAGE_CLAIMED // freed
               : mi_load_relaxed(&page->home) == NULL && c->heap != NULL)             // just being made
    return;
  if (!_mi_check_page_that(c, check_is_in(page, region), "a descriptor of another place", page, page)) return;
  const mi_heap_t* heap = _mi_heap_of(page);
  if (!_mi_check_page_wants(c, heap)) return;
  if (!_mi_check_page_that(c, _mi_check_page_is_heap(heap), "Q1: a page of a heap that is not in use", page, page))
    return;
  if (heap != &_mi_heap_main) check_is_listed(c, page, heap);
  check_slices(c, region, slice, page);
  if (is_large) check_large(c, page);
  else check_page_of_blocks(c, page, heap);
}

// A slice that says it is the later part of a page.
static void check_part(mi_check_t* c, const mi_region_t* region, size_t slice) {
  const mi_page_t* part = (const mi_page_t*)_mi_region_descriptor(region, slice);
  const mi_page_t* page = part - (part->to_first <= slice ? part->to_first : 0);
  bool             has_page = (_mi_page_kind(page) == MI_PAGE_BLOCKS || _mi_page_kind(page) == MI_PAGE_LARGE);
  _mi_check_page_that(c, has_page && part->to_first < page->n_slices, "a slice of no page", part, NULL);
}

static void check_region(mi_check_t* c, mi_region_t* region) {
  size_t end = region->n_used * MI_CHUNK_SLICES;
  for (size_t slice = 0; slice < end; slice++) {
    mi_page_t* page = (mi_page_t*)_mi_region_descriptor(region, slice);
    switch (_mi_page_kind(page)) {
      case MI_PAGE_NONE: break;
      case MI_PAGE_BLOCKS:
      case MI_PAGE_LARGE: check_page(c, region, slice, page); break;
      case MI_PAGE_INTERIOR:
        if (c->heap == NULL) check_part(c, region, slice);
        break;
      default: _mi_check_page_that(c, false, "a descriptor of no kind", page, NULL); break;
    }
  }
}

static void check_mapped(mi_check_t* c) {
  const mi_region_t* none = &_mi_region_all[MI_REGION_MAPPED];
  for (void* page = NULL; (page = _mi_mapped_next(page)) != NULL;) {
    mi_page_kind_t kind = _mi_page_kind((mi_page_t*)page);
    if (kind == MI_PAGE_LARGE) check_page(c, none, 0, (mi_page_t*)page);
    else _mi_check_page_that(c, kind == MI_PAGE_NONE, "a descriptor of no kind", page, NULL);
  }
}

void _mi_check_page_all(mi_check_t* c) {
  for (size_t i = 0; i < _mi_region_count(); i++) {
    if (_mi_region_all[i].base != 0) check_region(c, &_mi_region_all[i]);
  }
  check_mapped(c);
}
