// Are the blocks of a class, or large blocks, written all over?  Then the next ones ask for huge pages.  Layer: page.
//
// A page of several slices that fills takes up to 128 page faults, and none in a huge page.  But blocks of more than two OS pages may be
// buffers of which little is used, and a huge page has memory for all of them.  So the class's own blocks are looked at while the program
// has them.
//
// WN1  A look is at the page before the last of those that the theap made of memory which read as zero, or the last if there is one only:
//      its contents were written by the program, and most of its blocks, or all, were handed out a while ago.  It is looked at once: while
//      pages are made of memory that was used before, there is nothing new to see.  (Each theap looks for itself: other threads may use
//      blocks of the class in another way.)
// WN2  The class is written all over if, of 8 places, each an OS page of one block, at most one holds nothing but zeros in its first word
//      and three others.  A word that cannot be read counts as zero, and so do all on a system that cannot be asked
//      (_mi_prim_is_written).  Nothing is looked at where memory does not ask for huge pages.
// WN3  After four looks in a row that found less, the theap looks only at each sixteenth such page: a look takes 3 us.
// WN4  The page may have been given back meanwhile, and its memory may be another page's, or not be there.  Then the answer is a guess;
//      nothing is written, and the system can read there without a fault.
// WN5  Large blocks of 512 KiB to 4 MiB are looked at in the same way, those of all sizes together, each in 8 places: the one before the
//      last that was made of memory which read as zero, once.  (Those above are looked at when they are freed, dense.h; these are kept, and
//      a program that only grows frees none.)  A block asks if as many bytes as it has were written all over since the last that
//      holds less, and twice the size of that one before: three blocks, if all are alike.  So a few small blocks say nothing about larger
//      ones, and where both kinds are mixed at random, one block in nine is sparse and asks, at most.
// WN6  In hardened builds the answer is no: guard pages behind pages of several slices (page.h) would split the huge ones.
#pragma once

#include "page.h"

typedef struct mi_written_look_s {
  uint16_t n_thin;    // so many looks in a row found less (WN3); from 0 on again after 65535
  bool     is_seen;   // `before` was looked at, or `last` if there is no other, ...
  bool     is_filled; // ... and is written all over
} mi_written_look_t;

typedef struct mi_written_class_s {
  uint32_t          last, before; // where the pages begin, in slices from address 0 on; 0: there is none
  mi_written_look_t look;
} mi_written_class_t;

#define MI_WRITTEN_BLOCK_MIN (512 * MI_KiB) // WN5: blocks of classes are looked at with their pages

typedef struct mi_written_blocks_s {
  uintptr_t         last, before;           // where the blocks begin; 0: there is none
  size_t            last_size, before_size; // in bytes
  int64_t           credit;                 // bytes that were written all over, less those that must be
  mi_written_look_t look;
} mi_written_blocks_t;

// What a theap knows; its thread only.
typedef struct mi_written_s {
  mi_written_class_t  classes[MI_CLASS_COUNT - MI_CLASS_SEVERAL];
  mi_written_blocks_t blocks;
} mi_written_t;

// A page was made for a class; is_zero: of memory that read as zero.
static inline void _mi_written_note(mi_written_t* written, const mi_page_t* page, bool is_zero) {
  uintptr_t slice = (uintptr_t)_mi_page_start(page) >> MI_SLICE_SHIFT;
  if (page->cls < MI_CLASS_SEVERAL || !is_zero || slice > UINT32_MAX) return;
  mi_written_class_t* of = &written->classes[page->cls - MI_CLASS_SEVERAL];
  of->before = of->last;
  of->last = (uint32_t)slice;
  of->look.is_seen = false;
}

// A page of several slices is about to be made: is it going to be filled?
bool _mi_written_is(mi_written_t* written, size_t cls);

// The same for large blocks (WN5).
static inline void _mi_written_note_block(mi_written_t* written, const void* start, size_t size) {
  mi_written_blocks_t* of = &written->blocks;
  of->before = of->last;
  of->before_size = of->last_size;
  of->last = (uintptr_t)start;
  of->last_size = size;
  of->look.is_seen = false;
}

bool _mi_written_block_is(mi_written_t* written, size_t size);
