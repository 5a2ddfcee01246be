// Freed blocks wait before they can be used again.  Layer: heap.
#include "quarantine.h"

#include "../page/verify.h"
#include "free.h"

// The place that the next block takes.
static mi_block_t** quarantine_place(mi_theap_t* thread) {
  return &thread->quarantine[thread->quarantine_random >> 32 & (MI_QUARANTINE_SIZE - 1)];
}

// Chooses another, of a thread's own sequence of numbers (D. Knuth's MMIX).  What waits there is likely not in the cache any
// more: it will be when it is needed.
static void quarantine_choose(mi_theap_t* thread) {
  uint64_t x = thread->quarantine_random;
  if (mi_unlikely(x == 0)) x = _mi_block_random(thread) | 1;
  thread->quarantine_random = x * 6364136223846793005u + 1442695040888963407u;
  mi_prefetch_w(*quarantine_place(thread));
}

// What of a block was written to while it waited is found when it is used again, except in the link that it gets now.
static mi_always_inline void quarantine_check(const mi_page_t* slice, mi_block_t* block) {
  size_t size = _mi_page_block_size(slice);
  if (mi_unlikely(!_mi_verify_unlinked(block, size))) _mi_fill_freed(block, size);
}

// Its time has come.
static mi_always_inline void quarantine_let_go(mi_theap_t* thread, mi_block_t* block) {
  mi_page_t* slice = _mi_page_at(block);
  quarantine_check(slice, block);
  if (mi_likely(mi_load_relaxed(&slice->home) == thread)) _mi_free_local(thread, slice, block);
  else _mi_free_any(thread, slice - slice->to_first, block);
}

void _mi_quarantine_free(mi_page_t* slice, void* p) {
  mi_theap_t* thread = _mi_theap_backing();
  bool        is_small = (_mi_page_block_size(slice) <= MI_QUARANTINE_BLOCK_MAX);
  if (mi_unlikely(thread == NULL || !is_small || _mi_page_has(slice - slice->to_first, MI_PAGE_IN_HEAP))) {
    _mi_free_any(thread, slice - slice->to_first, p);
    return;
  }
  _mi_trim_enter(thread);
  mi_block_t** place = quarantine_place(thread);
  mi_block_t*  block = *place;
  *place = (mi_block_t*)p;
  quarantine_choose(thread);
  _mi_presence_leave(thread);
  if (mi_likely(block != NULL)) quarantine_let_go(thread, block);
}

void _mi_quarantine_flush(mi_theap_t* theap) {
  for (size_t i = 0; i < MI_QUARANTINE_SIZE; i++) {
    _mi_presence_enter(theap);
    mi_block_t* block = theap->quarantine[i];
    theap->quarantine[i] = NULL;
    _mi_presence_leave(theap);
    if (block != NULL) quarantine_let_go(theap, block);
  }
}

void _mi_quarantine_take_back(mi_theap_t* theap) {
  for (size_t i = 0; i < MI_QUARANTINE_SIZE; i++) {
    mi_block_t* block = theap->quarantine[i];
    theap->quarantine[i] = NULL;
    if (block == NULL) continue;
    mi_page_t* slice = _mi_page_at(block);
    quarantine_check(slice, block);
    _mi_outbox_push(slice - slice->to_first, block);
  }
}
