// Is a pointer that the program gives us one of its blocks?  Layer: page.  Of checked builds only; block.h and padding.h
// say what is found, and how surely.
#pragma once

#include "padding.h"

// Does the block that p would be lie within its page, so that its end can be read?  Behind hardened pages nothing can;
// elsewhere what lies there is read and found to be no padding.
static mi_always_inline bool _mi_block_is_within(const mi_page_t* page, const void* p) {
  if (!MI_HARDENED) return true;
  size_t size = _mi_page_block_size(page);
  return (uintptr_t)p - (uintptr_t)_mi_page_start(page) <= (size_t)(page->capacity - 1) * size;
}

// Is p a block in use?  By the first descriptor of its page; reports what is wrong, naming `what` the program wanted to
// do.  False if it is not: then the call is to be ignored.  (A block with overwritten padding is one.  Its padding is
// written anew, for the largest size if the program's was lost.)
bool _mi_block_verify(mi_page_t* page, const void* p, const char* what);

// Reports that the program gives another size for a block than it had asked for.
mi_cold void _mi_block_wrong_size(const void* p, size_t size, size_t asked);

// Fills a block that is no longer in use, up to its last word, and checks that of one that is about to be used again
// (MI_FILL).
void _mi_block_fill_freed(void* p, size_t block_size);
bool _mi_block_check_freed(const void* p, size_t block_size);
// The same for one that is in no list: its first word is filled as well.
bool _mi_block_check_unlinked(const void* p, size_t block_size);
