// Freed blocks wait before they can be used again.  Layer: heap.
#include "quarantine.h"

mi_cold void _mi_quarantine_seed(mi_theap_t* thread) {
  thread->quarantine.random = _mi_block_random(thread) | 1;
}

void _mi_quarantine_free(mi_page_t* slice, void* p) {
  mi_theap_t* thread = _mi_theap_backing();
  bool        is_small = (_mi_page_block_size(slice) <= MI_QUARANTINE_BLOCK_MAX);
  if (mi_unlikely(thread == NULL || !is_small || _mi_page_has(slice - slice->to_first, MI_PAGE_IN_HEAP))) {
    _mi_free_any(thread, slice - slice->to_first, p);
    return;
  }
  _mi_quarantine_swap(thread, p);
}

void _mi_quarantine_flush(mi_theap_t* theap) {
  for (size_t i = 0; i < MI_QUARANTINE_SIZE; i++) {
    _mi_presence_enter(theap);
    mi_block_t* block = theap->quarantine.blocks[i];
    theap->quarantine.blocks[i] = NULL;
    _mi_presence_leave(theap);
    if (block != NULL) quarantine_let_go(theap, block);
  }
}

void _mi_quarantine_take_back(mi_theap_t* theap) {
  for (size_t i = 0; i < MI_QUARANTINE_SIZE; i++) {
    mi_block_t* block = theap->quarantine.blocks[i];
    theap->quarantine.blocks[i] = NULL;
    if (block == NULL) continue;
    mi_page_t* slice = _mi_page_at(block);
    quarantine_check(slice, block);
    _mi_outbox_push(slice - slice->to_first, block);
  }
}
