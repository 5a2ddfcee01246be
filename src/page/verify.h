// Is a pointer that the program gives us one of its blocks?  Layer: page.  Of checked builds only; block.h and padding.h
// say what is found, and how surely.
#pragma once

#include "fill.h"
#include "guard_page.h"
#include "padding.h"

// Does the block that p would be lie within its page?
static inline bool _mi_block_is_within(const mi_page_t* page, const void* p) {
  size_t size = _mi_page_block_size(page);
  return (uintptr_t)p - (uintptr_t)_mi_page_start(page) <= (size_t)(page->capacity - 1) * size;
}

// Can its end be read?  By the descriptor of the slice of p.  Behind hardened pages there is a gap; elsewhere what lies there
// is read and found to be no padding.
static mi_always_inline bool _mi_block_is_readable(const mi_page_t* slice, const void* p) {
  if (!MI_HARDENED) return true;
  size_t end = (uintptr_t)p % MI_SLICE_SIZE + _mi_page_block_size(slice);
  return mi_likely(end <= MI_SLICE_SIZE - MI_GUARD_PAGE_SIZE_MAX) || _mi_block_is_within(slice - slice->to_first, p);
}

// Is p a block in use?  By the first descriptor of its page; reports what is wrong, naming `what` the program wanted to
// do.  False if it is not: then the call is to be ignored.  (A block with overwritten padding is one.  Its padding is
// written anew, for the largest size if the program's was lost.)
bool _mi_block_verify(mi_page_t* page, const void* p, const char* what);

// Reports that the program gives another size for a block than it had asked for.
mi_cold void _mi_block_wrong_size(const void* p, size_t size, size_t asked);

// ---- what freed blocks hold (MI_FILL) -------------------------------------------------------------------------------

#define MI_FREED_WORD (0x0101010101010101u * MI_FILL_FREED)

void _mi_block_fill_freed_any(void* p, size_t size);
bool _mi_block_check_freed_any(const void* p, size_t block_size);

// Fills a block that is no longer in use, up to its last word.
static mi_always_inline void _mi_block_fill_freed(void* p, size_t block_size) {
  size_t size = block_size - MI_PADDING_SIZE;
  bool   is_small = (size >= sizeof(mi_pair_t) && size <= MI_FILL_SMALL_MAX);
  if (mi_likely(is_small)) _mi_fill_small(p, size, MI_FREED_WORD);
  else _mi_block_fill_freed_any(p, size);
}

// Checks one that is about to be used again, behind its link.  What is wrong is reported.
static mi_always_inline bool _mi_block_check_freed(const void* p, size_t block_size) {
  size_t size = block_size - MI_PADDING_SIZE - sizeof(mi_block_t);
  bool   is_small = (size >= sizeof(mi_pair_t) && size <= MI_FILL_SMALL_MAX);
  if (mi_likely(is_small) && mi_likely(_mi_fill_small_is((const mi_block_t*)p + 1, size, MI_FREED_WORD))) return true;
  return _mi_block_check_freed_any(p, block_size);
}

// The first word of one that is in no list: it is filled as well, before it becomes a link.
bool _mi_block_check_unlinked(const void* p, size_t block_size);
