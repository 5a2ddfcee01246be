// Freeing a block of a class: into a bin, and past it.  Layer: heap.
//
//   whose page?           where to                                    by
//   this theap's          its bin, while that has slots               _mi_free_local
//   ... the bin is full   the page's free list                        free_overflow
//   another's             a batch in the outbox, or the page's word   free_remote (free.c)
//
// All are declared to throw nothing: compiled as C++, the fast paths that end with a call of them would otherwise need a frame.
#pragma once

#include "drain.h"
#include "queue.h"
#include "trim.h"

// The rest of a free after enter, with leave at its end.
void         _mi_free_slow(mi_theap_t* theap, mi_page_t* page, mi_block_t* block) mi_attr_noexcept;
// The same, when the block was already pushed to the list of its page.
void         _mi_free_trim(mi_theap_t* theap, mi_page_t* page) mi_attr_noexcept;
// As _mi_free_slow, after a failed try to enter.
mi_cold void _mi_free_revoked(mi_theap_t* theap, mi_page_t* page, mi_block_t* block) mi_attr_noexcept;

// The fast path of a tear-down (drain.h): all calls are in tail position.  The page's count of used blocks also says when to trim: an empty
// page is one of these occasions, so that one test serves both.  Most pages have one slice: a predicted branch lets the following
// instructions begin before `to_first` is loaded (docs/decisions/006).
static mi_always_inline void free_overflow(mi_theap_t* theap, mi_page_t* page, mi_block_t* block) {
  if (mi_unlikely(page->to_first != 0)) page -= page->to_first;
  if (mi_unlikely(!_mi_presence_try_enter(theap))) {
    _mi_free_revoked(theap, page, block);
    return;
  }
  mi_block_t* first;
  if (mi_unlikely(!_mi_queue_owns(theap, page) || (first = page->free) == NULL)) { // NULL: it may be in the full list
    _mi_free_slow(theap, page, block);
    return;
  }
  size_t used = _mi_page_push_free(page, block, first);
  if (mi_likely(used % MI_FREES_PER_LOOK != 0)) _mi_presence_leave(theap);
  else _mi_free_trim(theap, page);
}

// Frees a block of a page whose home is this theap, of the calling thread.  `page` may be the descriptor of the block's own
// slice.  Its bin_offset was read before its home (page.h, P6): else another thread may have adopted the page in between and named
// its own drain, and the block would come into this theap's, which is another page's.
static mi_always_inline void _mi_free_local(mi_theap_t* theap, size_t bin_offset, mi_page_t* page, void* p) {
  mi_block_t* block = (mi_block_t*)p;
  if (mi_likely(_mi_theap_push(_mi_theap_bin(theap, bin_offset), block))) return;
  free_overflow(theap, page, block);
}

// Frees a block by the first descriptor of its page, whosever that is, on the thread with this backing theap (NULL: it has
// none).
void _mi_free_any(mi_theap_t* thread, mi_page_t* page, void* p) mi_attr_noexcept;
