// The quarantine: freed blocks wait before they can be used again.  Layer: heap; only in secure full builds.
//
// Each block that a thread frees takes a place that is chosen at random among 64, and the block that was there goes on to its bin or page.
// So memory to which a dangling pointer still leads is not handed out at once, nor at a foreseeable time.  Until then it is all zero,
// which is checked when it is handed out.
//
// Blocks over 8 KiB do not wait (512 KiB at most wait for a thread), and those of heaps that can be destroyed cannot
// (heap/heap.h, Q4).
#pragma once

#include "../page/verify.h"
#include "free.h"

#define MI_QUARANTINE_BLOCK_MAX (8 * MI_KiB)

// Frees a block of a class by the descriptor of any of its page's slices; it was retired.
void _mi_quarantine_free(mi_page_t* slice, void* p);

// The first place of a thread that has not chosen any.
mi_cold void _mi_quarantine_seed(mi_theap_t* thread);

// Finds writes to the place of the link, which the block gets now.  Other writes to a block that waited are found when it is used again.
static mi_always_inline void quarantine_check(const mi_page_t* slice, mi_block_t* block) {
  size_t size = _mi_page_block_size(slice);
  if (mi_unlikely(!_mi_verify_unlinked(block, size))) _mi_fill_freed(block, size);
}

// The block has waited long enough: it goes to its bin or page.
static mi_always_inline void quarantine_let_go(mi_theap_t* thread, mi_block_t* block) {
  mi_page_t* slice = _mi_page_at(block);
  quarantine_check(slice, block);
  size_t bin_offset = _mi_page_bin_offset(slice); // first: page.h, P6
  if (mi_likely(mi_load_relaxed(&slice->home) == thread)) _mi_free_local(thread, bin_offset, slice, block);
  else _mi_free_any(thread, slice - slice->to_first, block);
}

// The place that the next block takes.
static mi_always_inline mi_block_t** quarantine_place(mi_theap_t* thread) {
  return &thread->quarantine.blocks[thread->quarantine.random >> 32 & (MI_QUARANTINE_SIZE - 1)];
}

// The block waits, and the one that was in its place goes on.  Then another place is chosen, of a thread's own sequence of numbers
// (D. Knuth's MMIX).  What waits there is likely not in the cache any more: it will be when it is needed.
static mi_always_inline void _mi_quarantine_swap(mi_theap_t* thread, void* p) {
  _mi_trim_enter(thread);
  if (mi_unlikely(thread->quarantine.random == 0)) _mi_quarantine_seed(thread);
  mi_block_t** place = quarantine_place(thread);
  mi_block_t*  block = *place;
  *place = (mi_block_t*)p;
  thread->quarantine.random = thread->quarantine.random * 6364136223846793005u + 1442695040888963407u;
  mi_prefetch_w(*quarantine_place(thread));
  _mi_presence_leave(thread);
  if (mi_likely(block != NULL)) quarantine_let_go(thread, block);
}

// The same of a page whose home is this theap, of the calling thread.  Pages of blocks that wait have one slice.  A page of a heap
// that was deleted keeps its mark, and may have a backing theap as its home: a check looks for none of its blocks here.
static mi_always_inline void _mi_quarantine_free_local(mi_theap_t* theap, mi_page_t* slice, void* p) {
  bool is_small = (_mi_page_block_size(slice) <= MI_QUARANTINE_BLOCK_MAX);
  if (mi_likely(is_small) && mi_likely(!_mi_page_has(slice, MI_PAGE_IN_HEAP)))
    _mi_quarantine_swap(mi_load_relaxed(&theap->thread), p);
  else _mi_quarantine_free(slice, p);
}

// All of the theap's blocks go on; by its own thread.
void _mi_quarantine_flush(mi_theap_t* theap);

// All go to their pages; by whoever has revoked the theap, for its bins are its thread's.  Blocks of a thread that sleeps would
// else keep a page each, 4 MiB.
void _mi_quarantine_take_back(mi_theap_t* theap);
