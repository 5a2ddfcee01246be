// Walking over pages.  Layer: heap.
#include "walk.h"

// Is it a page that is wanted?  One that is just being made has no home yet, and a large one is CLAIMED, until its heap is
// known; so the order of these loads matters.
static bool walk_wants(const mi_walk_t* walk, mi_page_t* page) {
  uint8_t kind = mi_load_acquire(&page->kind);
  if (kind == MI_PAGE_BLOCKS || kind == MI_PAGE_GAPS) {
    if (mi_load_acquire(&page->home) == NULL) return false;
  }
  else if (kind != MI_PAGE_LARGE || _mi_page_word_state(mi_load_acquire(&page->word)) == MI_PAGE_CLAIMED) {
    return false;
  }
  if (walk->heap == NULL && walk->subproc == NULL) return true;
  const mi_heap_t* heap = _mi_heap_of(page);
  return heap != NULL && _mi_walk_wants(walk, heap); // NULL: it is being given back
}

static bool walk_skips(const mi_region_t* region, size_t slice) {
  return slice % MI_CHUNK_SLICES == 0 && region->chunks[slice / MI_CHUNK_SLICES].free_bits == UINT32_MAX;
}

static mi_page_t* walk_next_mapped(mi_walk_t* walk) {
  void* page = (walk->region == MI_REGION_MAPPED ? (void*)walk->slice : NULL);
  walk->region = MI_REGION_MAPPED;
  while ((page = _mi_mapped_slot_next(page)) != NULL) {
    walk->slice = (size_t)page;
    if (walk_wants(walk, (mi_page_t*)page)) return (mi_page_t*)page;
  }
  walk->region = MI_REGION_MAPPED + 1;
  return NULL;
}

mi_page_t* _mi_walk_some(mi_walk_t* walk, size_t* n_steps) {
  for (; walk->region < _mi_region_count(); walk->region++, walk->slice = 0) {
    const mi_region_t* region = &_mi_region_all[walk->region];
    size_t             end = (region->base == 0 ? 0 : region->n_used * MI_CHUNK_SLICES);
    while (walk->slice < end) {
      if (*n_steps == 0) return NULL;
      --*n_steps;
      if (walk_skips(region, walk->slice)) {
        walk->slice += MI_CHUNK_SLICES;
        continue;
      }
      mi_page_t* page = (mi_page_t*)_mi_region_descriptor(region, walk->slice++);
      if (walk_wants(walk, page)) return page;
    }
  }
  return walk->region <= MI_REGION_MAPPED ? walk_next_mapped(walk) : NULL;
}

mi_page_t* _mi_walk_next(mi_walk_t* walk) {
  size_t n_steps = SIZE_MAX;
  return _mi_walk_some(walk, &n_steps);
}
