// What is in use, by class: from a walk over all descriptors, so that counting costs nothing until somebody asks.
// Layer: heap.
#include "heap_stats.h"

#include "theap.h"

// Blocks in use of a page that others may be changing: a number that was right at some time during the walk.  Blocks in
// bins and outboxes count as used.
static size_t stats_page_used(mi_page_t* page) {
  uint64_t        word = mi_load_acquire(&page->word);
  size_t          count = _mi_page_word_chain(word).count;
  mi_page_state_t state = _mi_page_word_state(word);
  if (state == MI_PAGE_SHARED) return (size_t)page->capacity - mi_min(count, page->capacity);
  if (state == MI_PAGE_PARKED) return (size_t)page->capacity - mi_min(count, page->capacity);
  return (size_t)page->used - mi_min(count, page->used);
}

static void stats_add_page(mi_class_stat_t* table, size_t max, mi_page_t* page) {
  if (_mi_page_kind(page) != MI_PAGE_BLOCKS || page->cls >= max) return;
  mi_class_stat_t* row = &table[page->cls];
  row->n_pages++;
  row->n_blocks_used += stats_page_used(page);
  row->n_blocks_capacity += page->capacity;
}

size_t _mi_heap_class_stats(mi_class_stat_t* table, size_t max) {
  size_t n = mi_min(max, MI_CLASS_COUNT);
  for (size_t cls = 0; cls < n; cls++) {
    table[cls].block_size = _mi_class_block_size(cls);
    table[cls].n_pages = table[cls].n_blocks_used = table[cls].n_blocks_capacity = 0;
  }
  // The arena lock keeps pages from coming and going; their owners go on.
  _mi_lock_acquire(&_mi_arena_lock);
  for (size_t i = 0; i < MI_REGION_COUNT; i++) {
    const mi_region_t* region = &_mi_regions[i];
    if (region->base == 0 || region->is_single) continue;
    for (size_t slice = 0; slice < region->n_used * MI_CHUNK_SLICES; slice++) {
      stats_add_page(table, n, (mi_page_t*)_mi_region_descriptor(region, slice));
    }
  }
  _mi_lock_release(&_mi_arena_lock);
  return n;
}
