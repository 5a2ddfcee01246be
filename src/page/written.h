// Are the blocks of a class written all over?  Then its next pages ask for huge pages.  Layer: page.
//
// A page of several slices that fills takes up to 128 page faults, and none in a huge page.  But blocks of more than two OS pages may be
// buffers of which little is used, and a huge page has memory for all of them.  So the class's own blocks are looked at while the program
// has them.
//
// WN1  A look is at the page before the last of those that the theap made of memory which read as zero, or the last if there is one only:
//      its contents were written by the program, and most of its blocks, or all, were handed out a while ago.  (Each theap looks for
//      itself: other threads may use blocks of the class in another way.)
// WN2  The class is written all over if, of 8 places, each an OS page of one block, at most one holds nothing but zeros in its first word
//      and three others.  A word that cannot be read counts as zero, and so do all on a system that cannot be asked
//      (_mi_prim_is_written).  Nothing is looked at where memory does not ask for huge pages.
// WN3  After four looks in a row that found less, the theap looks only for each sixteenth page: a look takes 3 us.
// WN4  The page may have been given back meanwhile, and its memory may be another page's, or not be there.  Then the answer is a guess;
//      nothing is written, and the system can read there without a fault.
// WN5  In hardened builds the answer is no: guard pages behind pages of several slices (page.h) would split the huge ones.
#pragma once

#include "page.h"

typedef struct mi_written_class_s {
  uint32_t last, before; // where the pages begin, in slices from address 0 on; 0: there is none
  uint32_t n_thin;       // so many looks in a row found less
} mi_written_class_t;

// What a theap knows; its thread only.
typedef struct mi_written_s {
  mi_written_class_t classes[MI_CLASS_COUNT - MI_CLASS_SEVERAL];
} mi_written_t;

// A page was made for a class; is_zero: of memory that read as zero.
static inline void _mi_written_note(mi_written_t* written, const mi_page_t* page, bool is_zero) {
  uintptr_t slice = (uintptr_t)_mi_page_start(page) >> MI_SLICE_SHIFT;
  if (page->cls < MI_CLASS_SEVERAL || !is_zero || slice > UINT32_MAX) return;
  mi_written_class_t* of = &written->classes[page->cls - MI_CLASS_SEVERAL];
  of->before = of->last;
  of->last = (uint32_t)slice;
}

// A page of several slices is about to be made: is it going to be filled?
bool _mi_written_is(mi_written_t* written, size_t cls);
