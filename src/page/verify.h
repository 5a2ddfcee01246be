// Is a pointer that the program gives us one of its blocks?  Layer: page.  Of checked builds only; block.h and padding.h
// say what is found, and how surely.
#pragma once

#include "fill.h"
#include "padding.h"

// Does the block that p would be lie within its page?
static inline bool _mi_verify_is_within(const mi_page_t* page, const void* p) {
  size_t size = _mi_page_block_size(page);
  return (uintptr_t)p - (uintptr_t)_mi_page_start(page) <= (size_t)(page->capacity - 1) * size;
}

// Can its end be read?  By the descriptor of the slice of p.  Behind the page there may be a gap, or the end of the memory that is
// mapped; within it what lies there is found to be no padding.  Secure builds that are not hardened do not ask, which would be 5 of
// the 104 instructions of malloc and free: their process ends there instead.
static mi_always_inline bool _mi_verify_is_readable(const mi_page_t* slice, const void* p) {
  if (!MI_HARDENED && MI_DEBUG == 0) return true;
  size_t end = (uintptr_t)p % MI_SLICE_SIZE + _mi_page_block_size(slice);
  size_t space = MI_SLICE_SIZE - (MI_HARDENED ? MI_GUARD_PAGE_SIZE_MAX : 0);
  return mi_likely(end <= space) || _mi_verify_is_within(slice - slice->to_first, p);
}

// Is p a block in use?  By the first descriptor of its page; reports what is wrong, naming `what` the program wanted to
// do.  False if it is not: then the call is to be ignored.  (A block with overwritten padding is one.  Its padding is
// written anew, for the largest size if the program's was lost.)
bool _mi_verify_block(mi_page_t* page, const void* p, const char* what);

// Reports that a block is free already.
mi_cold void _mi_verify_report_freed(const void* p, size_t size, const char* what);

// The block, which was made, goes with its heap, and is not in use as it should be: reports an overflow.  It may as well be free.
// Large blocks are whole or not.
mi_cold void _mi_verify_destroyed(mi_page_t* page, const void* p);

// ---- what lies before a block (hardened builds) ---------------------------------------------------------------------
//
// The end of the block before one that is freed is next to it, and is no longer what it should be if somebody wrote behind
// that block or before this one.  The other block may be anybody's: it is looked at (padding.h, D4), and left as it is.

// While a thread forks, and in a child that lacks threads of its parent: pages were copied at different moments, and blocks
// count as made that were not (heap/fork.c, F5).
extern mi_atomic(bool) _mi_verify_skips_others;

// Looks closer at the block before p, and reports it if it was overwritten.
mi_cold void _mi_verify_before_any(mi_page_t* slice, const void* p);

// The block p, by the descriptor of its slice, is about to be freed.  None is before it where a slice begins: of a page with
// more slices, those few are left out.
static mi_always_inline void _mi_verify_before(mi_page_t* slice, const void* p, size_t block_size) {
  if (!MI_PADDING_OF_OTHERS || (uintptr_t)p % MI_SLICE_SIZE == 0) return;
  const char* before = (const char*)p - block_size;
  uint64_t    last = _mi_padding_last_of_others(before, block_size);
  if (mi_unlikely(!_mi_padding_is_plausible(before, last, block_size))) _mi_verify_before_any(slice, p);
}

// Reports that the program gives another size for a block than it had asked for.
mi_cold void _mi_verify_wrong_size(const void* p, size_t size, size_t asked);

// ---- what freed blocks hold (MI_FILL) -------------------------------------------------------------------------------

bool _mi_verify_freed_any(void* p, size_t block_size);

// Checks a block that is about to be used again, behind its link, with its end.  What is wrong is reported.
static mi_always_inline bool _mi_verify_freed(void* p, size_t block_size) {
  size_t size = block_size - MI_PADDING_SIZE - sizeof(mi_block_t);
  if (mi_likely(_mi_fill_is_small(size)) &&
      mi_likely(_mi_fill_small_is((const mi_block_t*)p + 1, size, MI_FILL_FREED_WORD)) &&
      mi_likely(_mi_padding_is_free(p, block_size)))
    return true;
  return _mi_verify_freed_any(p, block_size);
}

// The first word of one that is in no list: it is filled as well, before it becomes a link.
bool _mi_verify_unlinked(const void* p, size_t block_size);
