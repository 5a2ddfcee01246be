// What is in use, by class: from a walk over all descriptors, so that counting costs nothing until somebody asks.
// Layer: heap.
#include "heap_stats.h"

#include "theap.h"

// Blocks in use of a page that others may be changing, so only its atomic fields are read: a number that was right at some
// time during the walk.  Blocks in bins and outboxes count as used.
static size_t stats_page_used(mi_page_t* page, size_t capacity) {
  uint64_t        word = mi_load_acquire(&page->word);
  mi_page_state_t state = _mi_page_word_state(word);
  size_t          count = _mi_page_word_chain(word).count; // of a page without an owner, all free blocks
  size_t          used = (state == MI_PAGE_SHARED || state == MI_PAGE_PARKED ? capacity : _mi_page_used(page));
  return used - mi_min(count, used);
}

static void stats_add_page(mi_class_stat_t* table, size_t max, mi_page_t* page) {
  size_t block_size = _mi_page_block_size(page);
  if (_mi_page_kind(page) != MI_PAGE_BLOCKS || block_size == 0) return;
  size_t cls = _mi_size_class_of(block_size);
  if (cls >= max) return;
  size_t capacity = _mi_class_info[cls].capacity;
  table[cls].n_pages++;
  table[cls].n_blocks_used += stats_page_used(page, capacity);
  table[cls].n_blocks_capacity += capacity;
}

size_t _mi_heap_class_stats(mi_class_stat_t* table, size_t max) {
  size_t n = mi_min(max, MI_CLASS_COUNT);
  for (size_t cls = 0; cls < n; cls++) {
    table[cls].block_size = _mi_class_block_size(cls);
    table[cls].n_pages = table[cls].n_blocks_used = table[cls].n_blocks_capacity = 0;
  }
  // The arena lock keeps pages from coming and going; their owners go on.
  _mi_lock_acquire(&_mi_arena_lock);
  for (size_t i = 0; i < _mi_region_count(); i++) {
    const mi_region_t* region = &_mi_regions[i];
    if (region->base == 0 || region->is_single) continue;
    for (size_t slice = 0; slice < region->n_used * MI_CHUNK_SLICES; slice++) {
      stats_add_page(table, n, (mi_page_t*)_mi_region_descriptor(region, slice));
    }
  }
  _mi_lock_release(&_mi_arena_lock);
  return n;
}
