// How much of its large blocks a program writes: which of them ask for huge pages, and who clears zeros.  Layer: arena.
//
// A block that is written all over has fewer page faults with huge pages; one of which little is used would take a huge page
// for each byte that is touched.  Nobody says at malloc which it is going to be.  So the program's own blocks are looked at when
// they are freed.
//
// DE1  A block is looked at in 16 places, or 8 if it is smaller than 32 MiB, at two OS pages near each other in each.  It is dense if
//      they are both empty, as behind the end of what was used of a buffer, in at most half of the places, and one of them is in at
//      most one place.  What cannot be read is empty; on a system that cannot be asked (_mi_prim_populate_read), all are.
// DE2  There is a credit, in bytes: a dense block adds its size when it is freed, a new block takes its size away and asks for huge
//      pages, as a mapping or in a huge-page region, only if there is as much, growth takes away what it can (that of a block that was
//      too small to be looked at its whole size), and a block that is not dense takes it all away.
// DE3  A dense block that did not ask was larger than the credit, so the credit stays below twice what was dense at one time.
// DE4  Where large blocks of zeros are reused, they are cleared, or their memory goes back, so that the system clears what is used of
//      them. That is five times as expensive for what is used, so it is done only while the last such block that was freed
//      was *thin*: at most two of 16 OS pages of it held anything, or could not be read.
// DE5  To look at a block takes up to 32 system calls.  After four in a row that were dense one of each four is looked at, by chance
//      which, and after four that were not one of each 16; the others count as the last one did.  So a program that changes is
//      found out after some blocks, and one whose blocks are dense by turns is looked at each time.
#pragma once

#include "../prim/prim.h"
#include "../support/option.h"
#include "region.h"

// Do dense blocks ask for huge pages at all?
static inline bool _mi_dense_is_asked(void) {
  return _mi_option_get_fast(mi_option_allow_thp) == 1 && _mi_region_fits_huge(_mi_prim_os_page_size());
}

// May a new block ask for huge pages?  Takes its size from the credit if so.
bool _mi_dense_take(size_t size);

// A block has grown that is going to be looked at.
void _mi_dense_grown(size_t old_size, size_t size);

// So large is a block at least that is looked at.
#define MI_DENSE_MIN (4 * MI_MiB)

// A block is about to be freed.  Reads its contents, unless it is taken to be like the last ones (DE5).  Was it dense?
bool _mi_dense_freed(const void* start, size_t size);

#define MI_THIN_MIN \
  (4 * MI_MiB) // smaller blocks are kept by threads (heap/kept.h), and clearing them takes 0.2 ms at most

// Is the system to clear a block of zeros of that size?
bool _mi_dense_is_thin(size_t size);

// A block of zeros of MI_THIN_MIN or more, which has slices, is about to be freed.  Reads its contents.
void _mi_dense_freed_zeros(const void* start, size_t size);
