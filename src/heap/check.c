// Holding pages, theaps and heaps against their invariants.  Layer: heap.
//
// All locks are held meanwhile, so that nothing moves; what is found is kept and reported when they are released again.
// A pointer is followed only after it was seen to be one of those that can be there: a check survives what it looks for.
// The lists of theaps and of heaps as such are trusted: they lie where no block does.
#include "check.h"

#include <errno.h>
#include <string.h>

#include "../arena/purge.h"
#include "../support/format.h"
#include "../support/message.h"
#include "fork.h"
#include "pool.h"
#include "thread.h"
#include "walk.h"

typedef struct check_s {
  const mi_heap_t* heap; // NULL: all
  mi_faults_t      faults;
  // Pages by what they say, and those in lists: as many.
  size_t           n_owned, n_queued;
  size_t           n_shared, n_pooled;
  size_t           n_in_heaps, n_listed; // not of the main heap
  mi_view_t        view;
} check_t;

static bool check_that(check_t* c, bool is_so, const char* otherwise, const void* at, const mi_page_t* page) {
  if (!is_so) _mi_faults_add(&c->faults, otherwise, at, page);
  return is_so;
}

static bool check_wants(const check_t* c, const mi_heap_t* heap) {
  return c->heap == NULL || c->heap == heap;
}

// ---- what pointers may be -------------------------------------------------------------------------------------------

static const mi_region_t* check_region_of(const void* p) {
  for (size_t i = 0; i < MI_REGION_COUNT; i++) {
    const mi_region_t* region = &_mi_regions[i];
    bool               is_here = (uintptr_t)p - region->base < region->n_used * MI_CHUNK_SIZE;
    if (region->base != 0 && !region->is_single && is_here) return region;
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

static bool check_is_theap(const mi_theap_t* theap) {
  return theap != NULL && (theap == _mi_thread_last_theap() || check_is_meta(theap, sizeof(*theap)));
}

static bool check_is_heap(const mi_heap_t* heap) {
  return heap == &_mi_heap_main || (heap != NULL && check_is_meta(heap, sizeof(*heap)) && _mi_heap_is_live(heap));
}

// The region whose table this is a descriptor of, NULL if it is of none.
static const mi_region_t* check_region_of_descriptor(const mi_page_t* page) {
  for (size_t i = 0; i < MI_REGION_COUNT; i++) {
    const mi_region_t* region = &_mi_regions[i];
    size_t             offset = (size_t)((const char*)page - region->table);
    size_t             n = (region->is_single ? 1 : region->n_used * MI_CHUNK_SLICES);
    if (region->base != 0 && offset < n * MI_DESCRIPTOR_SIZE && offset % MI_DESCRIPTOR_SIZE == 0) return region;
  }
  return NULL;
}

static bool check_is_descriptor(const mi_page_t* page) {
  return check_region_of_descriptor(page) != NULL;
}

// Does it say rightly where it is, so that what belongs to it can be found; and its owner entry, if it is to have one?
static bool check_is_in(const mi_page_t* page, const mi_region_t* region) {
  if (page->region != _mi_region_index(region)) return false;
  return !_mi_page_has(page, MI_PAGE_IN_HEAP) || region->is_single ||
         _mi_page_slice(page) < region->n_owned * MI_CHUNK_SLICES;
}

static bool check_is_page(const mi_page_t* page) {
  const mi_region_t* region = check_region_of_descriptor(page);
  if (region == NULL || !check_is_in(page, region)) return false;
  return _mi_page_kind(page) == MI_PAGE_BLOCKS || _mi_page_kind(page) == MI_PAGE_LARGE;
}

// ---- pages ----------------------------------------------------------------------------------------------------------

// Are all slices of the page in use, in chunks for such pages?
static void check_slices(check_t* c, const mi_region_t* region, size_t slice, const mi_page_t* page) {
  if (region->is_single) return;
  bool is_large = (_mi_page_kind(page) == MI_PAGE_LARGE);
  if (!check_that(c, page->n_slices > 0 && page->n_slices <= region->n_used * MI_CHUNK_SLICES - slice,
                  "a page that ends outside its region", page, page))
    return;
  for (size_t i = slice; i < slice + page->n_slices; i++) {
    const mi_chunk_t* chunk = &region->chunks[i / MI_CHUNK_SLICES];
    bool              is_taken = ((chunk->free_bits >> (i % MI_CHUNK_SLICES)) & 1) == 0;
    if (!check_that(c, is_taken, "A1: a slice of a page is free", page, page)) return;
    bool is_kind = (page->n_slices > 1 ? chunk->kind == MI_CHUNK_MEDIUM
                                       : chunk->kind == MI_CHUNK_SMALL || chunk->kind == MI_CHUNK_DENSE);
    if (!check_that(c, is_kind || is_large, "a page in a chunk of another kind", page, page)) return;
  }
}

static void check_interior(check_t* c, const mi_page_t* page) {
  for (uint32_t i = 1; i < page->n_slices; i++) {
    const mi_page_t* slice = page + i;
    bool             is_same = _mi_page_kind(slice) == MI_PAGE_INTERIOR && slice->back == i &&
                   slice->bin_offset == page->bin_offset && _mi_page_block_size(slice) == _mi_page_block_size(page) &&
                   mi_load_relaxed(&((mi_page_t*)slice)->home) == mi_load_relaxed(&((mi_page_t*)page)->home);
    check_that(c, is_same, "P3: a later slice that differs from the first", slice, page);
  }
}

// Does the page lie in a list whose ends these are, as far as its neighbours know?
static bool check_is_between(const mi_page_t* page, const mi_page_t* first, const mi_page_t* last) {
  if (page->prev == NULL ? first != page : !check_is_descriptor(page->prev) || page->prev->next != page) return false;
  if (page->next != NULL) return check_is_descriptor(page->next) && page->next->prev == page;
  return last == NULL || last == page;
}

static void check_owned(check_t* c, const mi_page_t* page, const mi_theap_t* home) {
  const mi_class_state_t* state = &home->classes[page->cls];
  const mi_page_list_t*   list = (_mi_page_has(page, MI_PAGE_IS_FULL) ? &state->full : &state->queue);
  c->n_owned++;
  check_that(c, home->is_live, "a page that is OWNED by nobody", page, page);
  check_that(c, check_is_between(page, list->first, list->last), "H4: a page that is not in its owner's list", page,
             page);
}

static void check_parked(check_t* c, const mi_page_t* page, size_t count) {
  bool is_full = page->free == NULL && page->extended == page->capacity && _mi_page_used(page) == page->capacity;
  check_that(c, is_full, "a PARKED page that is not full", page, page);
  check_that(c, count < _mi_class_info[page->cls].claim_at, "a PARKED page that should have been claimed", page, page);
  check_that(c, page->next == NULL && page->prev == NULL && !_mi_page_has(page, MI_PAGE_IS_FULL),
             "a PARKED page in a list", page, page);
}

static void check_shared(check_t* c, const mi_page_t* page, const mi_heap_t* heap, size_t count) {
  mi_pool_t* pool = &((mi_heap_t*)heap)->pools[page->cls];
  c->n_shared++;
  check_that(c, count > 0 && count < page->capacity, "a SHARED page that is full or empty", page, page);
  check_that(c, check_is_between(page, mi_load_relaxed(&pool->first), NULL),
             "S1: a SHARED page that is not in the pool", page, page);
}

// Who has it, and in which list?
static void check_state(check_t* c, const mi_page_t* page, const mi_heap_t* heap, const mi_theap_t* home) {
  uint64_t word = mi_load_relaxed(&((mi_page_t*)page)->word);
  size_t   count = _mi_page_word_chain(word).count;
  switch (_mi_page_word_state(word)) {
    case MI_PAGE_OWNED: check_owned(c, page, home); break;
    case MI_PAGE_PARKED: check_parked(c, page, count); break;
    case MI_PAGE_SHARED: check_shared(c, page, heap, count); break;
    default: check_that(c, false, "a page that stays CLAIMED", page, page); break;
  }
}

// P2: what was not made yet was not touched.
static void check_unmade(check_t* c, const mi_page_t* page) {
  if (!_mi_page_has(page, MI_PAGE_IS_ZERO)) return;
  size_t at = _mi_page_first_made(page) + page->extended;
  for (size_t n = page->extended; n < page->capacity; n++, at++) {
    if (at >= page->capacity) at -= page->capacity;
    const uint64_t* words = (const uint64_t*)(const void*)_mi_page_block(page, at);
    for (size_t i = 0; i < _mi_page_block_size(page) / sizeof(*words); i++) {
      if (!check_that(c, words[i] == 0, "P2: memory that was written before it was made a block", &words[i], page))
        return;
    }
  }
}

static void check_page_of_blocks(check_t* c, mi_page_t* page, const mi_heap_t* heap) {
  size_t n_faults = c->faults.n;
  _mi_view_make(&c->view, page, &c->faults);
  if (c->view.n_blocks == 0) return; // nothing fits
  check_that(c, page->back == 0 && page->bin_offset == page->cls << MI_BIN_SHIFT, "a descriptor of another class", page,
             page);
  check_interior(c, page);
  const mi_theap_t* home = mi_load_relaxed(&page->home);
  if (!check_that(c, check_is_theap(home), "H5: a home that is no theap", page, page)) return;
  check_that(c, home->heap == heap, "Q3: a home of another heap", page, page);
  check_state(c, page, heap, home);
  if (c->faults.n == n_faults) check_unmade(c, page);
}

static void check_large(check_t* c, const mi_page_t* page) {
  size_t offset = (size_t)(_mi_page_large_block(page) - _mi_page_start(page));
  bool   is_possible = page->cls == MI_CLASS_NONE && page->back == 0 && _mi_page_block_size(page) == 0 &&
                     mi_load_relaxed(&((mi_page_t*)page)->home) == NULL &&
                     offset < (size_t)page->n_slices << MI_SLICE_SHIFT;
  check_that(c, is_possible, "a descriptor that fits no large block", page, page);
}

// Is it in its heap's list, as far as its neighbours know?
static void check_is_listed(check_t* c, const mi_page_t* page, const mi_heap_t* heap) {
  const mi_page_owner_t* owner = _mi_page_owner(page);
  bool                   is_next = (owner->prev == NULL ? heap->pages == page
                                                        : check_is_page(owner->prev) && _mi_page_owner(owner->prev)->next == page);
  bool is_prev = owner->next == NULL || (check_is_page(owner->next) && _mi_page_owner(owner->next)->prev == page);
  check_that(c, is_next && is_prev, "Q1: a page that is not in its heap's list", page, page);
  c->n_in_heaps++;
}

static void check_page(check_t* c, mi_region_t* region, size_t slice) {
  mi_page_t* page = (mi_page_t*)_mi_region_descriptor(region, slice);
  bool       is_large = (_mi_page_kind(page) == MI_PAGE_LARGE);
  if (is_large ? _mi_page_word_state(mi_load_relaxed(&page->word)) == MI_PAGE_CLAIMED // freed
               : mi_load_relaxed(&page->home) == NULL && c->heap != NULL)             // just being made
    return;
  if (!check_that(c, check_is_in(page, region), "a descriptor of another place", page, page)) return;
  const mi_heap_t* heap = _mi_page_heap(page);
  if (!check_wants(c, heap)) return;
  if (!check_that(c, check_is_heap(heap), "Q1: a page of a heap that is not in use", page, page)) return;
  if (heap != &_mi_heap_main) check_is_listed(c, page, heap);
  check_slices(c, region, slice, page);
  if (is_large) check_large(c, page);
  else check_page_of_blocks(c, page, heap);
}

// A slice that says it is the later part of a page.
static void check_part(check_t* c, const mi_region_t* region, size_t slice) {
  const mi_page_t* part = (const mi_page_t*)_mi_region_descriptor(region, slice);
  const mi_page_t* page = part - (part->back <= slice ? part->back : 0);
  bool             has_page = (_mi_page_kind(page) == MI_PAGE_BLOCKS || _mi_page_kind(page) == MI_PAGE_LARGE);
  check_that(c, has_page && part->back < page->n_slices, "a slice of no page", part, NULL);
}

static void check_region(check_t* c, mi_region_t* region) {
  size_t end = (region->is_single ? 1 : region->n_used * MI_CHUNK_SLICES);
  for (size_t slice = 0; slice < end; slice++) {
    const mi_page_t* page = (const mi_page_t*)_mi_region_descriptor(region, slice);
    switch (_mi_page_kind(page)) {
      case MI_PAGE_NONE: break;
      case MI_PAGE_BLOCKS:
      case MI_PAGE_LARGE: check_page(c, region, slice); break;
      case MI_PAGE_INTERIOR:
        if (c->heap == NULL) check_part(c, region, slice);
        break;
      default: check_that(c, false, "a descriptor of no kind", page, NULL); break;
    }
  }
}

// ---- theaps ---------------------------------------------------------------------------------------------------------

static void check_bin(check_t* c, const mi_theap_t* theap, size_t cls) {
  const mi_bin_t* bin = &theap->bins[cls];
  int64_t         n = 0;
  for (const mi_block_t* block = bin->head; block != NULL; block = _mi_block_peek(block)) {
    const mi_page_t* page = _mi_walk_page_of(block, cls);
    if (!check_that(c, page != NULL && check_is_page(page), "H1: a link in a bin to where no block is", block, NULL))
      return;
    size_t offset = (size_t)((const char*)block - _mi_page_start(page));
    if (!check_that(c, offset % _mi_page_block_size(page) == 0, "H1: a link in a bin into a block", block, page))
      return;
    if (!check_that(c, _mi_page_heap(page) == theap->heap, "Q3: a block of another heap in a bin", block, page)) return;
    if (!check_that(c, ++n <= (int64_t)MI_PAGE_BLOCKS_MAX, "H3: a bin without an end", bin, NULL)) return;
  }
  bool is_counted = bin->left >= 0 && bin->room >= 0 && bin->room <= _mi_class_info[cls].room &&
                    n + bin->left >= bin->room && n + bin->left <= (int64_t)MI_PAGE_BLOCKS_MAX;
  check_that(c, is_counted, "H3: a bin that counts wrong", bin, NULL);
}

static void check_queue(check_t* c, const mi_theap_t* theap, const mi_page_list_t* list, size_t cls, bool is_full) {
  const mi_page_t* prev = NULL;
  size_t           n = 0;
  for (const mi_page_t* page = list->first; page != NULL; prev = page, page = page->next, n++) {
    if (!check_that(c, check_is_page(page), "a link in a list to where no page is", page, NULL)) return;
    if (!check_that(c, page->prev == prev, "a list that goes back another way", page, page)) return;
    bool is_ours = _mi_page_kind(page) == MI_PAGE_BLOCKS && page->cls == cls && _mi_theap_owns(theap, (mi_page_t*)page);
    if (!check_that(c, is_ours, "H4: a list with a page that is not OWNED by its theap", page, page)) return;
    check_that(c, _mi_page_has(page, MI_PAGE_IS_FULL) == is_full, "H4: a page in the wrong list", page, page);
  }
  check_that(c, list->last == prev, "a list with another end", list, prev);
  check_that(c, list->count == n, "a list of another length", list, NULL);
  c->n_queued += n;
}

static void check_outbox(check_t* c, const mi_theap_t* theap) {
  for (size_t i = 0; i < MI_OUTBOX_SIZE; i++) {
    const mi_batch_t* batch = &theap->outbox[i];
    if (batch->page == NULL) continue;
    bool is_page = check_is_page(batch->page) && _mi_page_kind(batch->page) == MI_PAGE_BLOCKS;
    if (!check_that(c, is_page, "an outbox with blocks of no page", batch->page, NULL)) continue;
    check_that(c, !_mi_page_has(batch->page, MI_PAGE_IN_HEAP), "Q4: an outbox with blocks of a heap", batch->page,
               batch->page);
    bool is_counted = batch->count > 0 && batch->count <= batch->limit && batch->first != NULL && batch->last != NULL;
    check_that(c, is_counted, "an outbox that counts wrong", batch, batch->page);
  }
}

static void check_nothing_left(check_t* c, const mi_theap_t* theap) {
  bool is_empty = true;
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    const mi_class_state_t* state = &theap->classes[cls];
    if (theap->bins[cls].head != NULL || state->queue.first != NULL || state->full.first != NULL) is_empty = false;
  }
  for (size_t i = 0; i < MI_OUTBOX_SIZE; i++) is_empty = is_empty && theap->outbox[i].page == NULL;
  check_that(c, is_empty, "a theap that no thread has is not empty", theap, NULL);
}

// H6: is it among those of its thread?
static void check_thread(check_t* c, const mi_theap_t* theap) {
  const mi_theap_t* thread = mi_load_relaxed(&((mi_theap_t*)theap)->thread);
  if (!theap->is_live || theap->is_late) {
    check_that(c, thread == NULL, "H6: a theap of a thread that is gone", theap, NULL);
    return;
  }
  if (!check_that(c, check_is_theap(thread), "H6: a theap of no thread", theap, NULL)) return;
  const mi_theap_t* t = thread;
  while (t != NULL && t != theap)
    t = (t->thread_next == NULL || check_is_theap(t->thread_next)) ? t->thread_next : NULL;
  check_that(c, t == theap, "H6: a theap that its thread does not know", theap, NULL);
}

// What its thread remembers of the heap.
static void check_cache(check_t* c, const mi_theap_t* backing, const mi_heap_t* heap) {
  const mi_theap_cached_t* cached = _mi_theap_cached((mi_theap_t*)backing, (mi_heap_t*)heap);
  if (cached->id != mi_load_relaxed(&((mi_heap_t*)heap)->id)) return;
  bool is_right = check_is_theap(cached->theap) && cached->theap->heap == heap &&
                  mi_load_relaxed(&cached->theap->thread) == backing;
  check_that(c, is_right, "Q5: a thread that remembers another theap", backing, NULL);
}

static void check_theap(check_t* c, const mi_theap_t* theap) {
  check_thread(c, theap);
  if (!theap->is_live) {
    check_nothing_left(c, theap);
    return;
  }
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    const mi_class_state_t* state = &theap->classes[cls];
    check_bin(c, theap, cls);
    check_queue(c, theap, &state->queue, cls, false);
    check_queue(c, theap, &state->full, cls, true);
  }
  check_outbox(c, theap);
}

static void check_theaps(check_t* c) {
  for (const mi_theap_t* theap = _mi_thread_first_theap(); theap != NULL; theap = theap->next) {
    if (theap->heap == NULL) {
      if (c->heap == NULL) check_nothing_left(c, theap);
    }
    else if (check_wants(c, theap->heap)) {
      if (check_that(c, check_is_heap(theap->heap), "Q3: a theap of a heap that is not in use", theap, NULL))
        check_theap(c, theap);
    }
  }
}

// ---- heaps ----------------------------------------------------------------------------------------------------------

static void check_pool(check_t* c, const mi_heap_t* heap, size_t cls) {
  const mi_page_t* prev = NULL;
  const mi_page_t* page = mi_load_relaxed(&((mi_heap_t*)heap)->pools[cls].first);
  for (; page != NULL; prev = page, page = page->next) {
    if (!check_that(c, check_is_page(page), "a link in a pool to where no page is", page, NULL)) return;
    if (!check_that(c, page->prev == prev, "a pool that goes back another way", page, page)) return;
    uint64_t word = mi_load_relaxed(&((mi_page_t*)page)->word);
    bool     is_shared = (_mi_page_word_state(word) == MI_PAGE_SHARED);
    if (is_shared) c->n_pooled++;
    bool is_ours =
        _mi_page_kind(page) == MI_PAGE_BLOCKS && page->cls == cls && is_shared && _mi_page_heap(page) == heap;
    if (!check_that(c, is_ours, "S1: a pool with a page that is not for it", page, page)) return;
  }
}

static void check_pages(check_t* c, const mi_heap_t* heap) {
  const mi_page_t* prev = NULL;
  size_t           n = 0;
  for (const mi_page_t* page = heap->pages; page != NULL; n++) {
    if (!check_that(c, check_is_page(page), "a link of a heap to where no page is", page, NULL)) return;
    bool is_ours = _mi_page_has(page, MI_PAGE_IN_HEAP) && _mi_page_heap(page) == heap;
    if (!check_that(c, is_ours, "Q1: a heap with a page that is not its own", page, page)) return;
    const mi_page_owner_t* owner = _mi_page_owner(page);
    if (!check_that(c, owner->prev == prev, "a heap's list that goes back another way", page, page)) return;
    prev = page;
    page = owner->next;
  }
  check_that(c, n == heap->n_pages, "a heap with another number of pages", heap, NULL);
  c->n_listed += n;
}

static void check_heap(check_t* c, const mi_heap_t* heap) {
  for (const mi_theap_t* theap = heap->theaps; theap != NULL; theap = theap->heap_next) {
    if (!check_that(c, theap->heap == heap, "Q3: a heap with a theap that is not its own", theap, NULL)) break;
    const mi_theap_t* thread = mi_load_relaxed(&((mi_theap_t*)theap)->thread);
    if (theap->is_live && check_is_theap(thread)) check_cache(c, thread, heap);
  }
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) check_pool(c, heap, cls);
  if (heap == &_mi_heap_main) return;
  check_pages(c, heap);
}

static void check_heaps(check_t* c) {
  if (check_wants(c, &_mi_heap_main)) check_heap(c, &_mi_heap_main);
  for (const mi_heap_t* heap = NULL; (heap = _mi_heap_next(heap)) != NULL;) {
    if (check_wants(c, heap)) check_heap(c, heap);
  }
}

// ---- all of it ------------------------------------------------------------------------------------------------------

static void check_locked(check_t* c) {
  check_heaps(c);
  check_theaps(c);
  for (size_t i = 0; i < MI_REGION_COUNT; i++) {
    if (_mi_regions[i].base != 0) check_region(c, &_mi_regions[i]);
  }
  if (c->faults.n > 0) return; // lists were not walked to their ends
  check_that(c, c->n_owned == c->n_queued, "H4: pages that are OWNED but in no list", c->heap, NULL);
  check_that(c, c->n_in_heaps == c->n_listed, "Q1: pages of heaps that are in no list", c->heap, NULL);
  check_that(c, c->n_shared == c->n_pooled, "S1: pages that are SHARED but in no pool", c->heap, NULL);
}

static void check_report_fault(const mi_damage_t* fault) {
  char where[100] = "";
  if (fault->block_size > 0) {
    _mi_format(where, sizeof(where), ", page %p of blocks of %zu bytes", (const void*)fault->page, fault->block_size);
  }
  else if (fault->page != NULL) {
    _mi_format(where, sizeof(where), ", page %p of a large block", (const void*)fault->page);
  }
  _mi_error_report(EFAULT, "heap check: %s: %p%s\n", fault->what, fault->at, where);
}

static void check_report(const mi_faults_t* faults) {
  for (size_t i = 0; i < mi_min(faults->n, MI_FAULTS_KEPT); i++) check_report_fault(&faults->kept[i]);
  if (faults->n > MI_FAULTS_KEPT) {
    _mi_error_report(EFAULT, "heap check: %zu more faults\n", faults->n - MI_FAULTS_KEPT);
  }
}

bool _mi_check(mi_heap_t* heap) {
  check_t c;
  if (mi_load_relaxed(&_mi_fork_has_orphans)) _mi_fork_adopt_orphans();
  memset(&c, 0, offsetof(check_t, view));
  c.heap = heap;
  _mi_fork_lock_all();
  check_locked(&c);
  _mi_fork_unlock_all();
  check_report(&c.faults);
  return c.faults.n == 0;
}
