// How much of its large blocks a program writes: this decides which of them ask for huge pages, and who clears zeros.  Layer: arena.
//
// A block that is written all over causes fewer page faults with huge pages.  A block of which little is used would take a huge page for
// each byte that is touched.  At malloc nobody says which of the two a block is going to be.  So the program's blocks are looked at when
// they are freed, and say what to expect of the next ones.
//
// DE1  A block is looked at in 16 places, or 8 if it is smaller than 32 MiB, at two OS pages near each other in each place.  It is dense
//      under three conditions.  In at most half of the places both pages are empty, as they are behind the used part of a buffer.  In at
//      most one place only one of the two is empty.  And the first page of the first place is not empty.  An OS page that cannot be read
//      counts as empty; on a system that cannot be asked (_mi_prim_populate_read), all do.
// DE2  There is a credit, in bytes.  A dense block adds its size when it is freed.  A new block asks for huge pages, as a mapping or in a
//      huge-page region, only if the credit is at least its size, which is then taken off.  A block that grows takes off as much as it
//      grows by, or its whole size if it was too small to be looked at before, as far as the credit goes.  A block that was looked at and
//      is not dense sets the credit to zero.
// DE3  A dense block that did not ask was larger than the credit.  So the credit stays below twice the bytes that were dense at one time.
// DE4  If free memory is reused for a large block of zeros, either the library clears it, or the memory goes back, so that the system
//      clears those parts that the program uses.  The second is five times as expensive for each such part, so it is done only while the
//      last block of zeros that was freed was *thin*: at most two of 16 OS pages of it held anything or could not be read.
// DE5  To look at a block takes up to 32 system calls.  After four blocks in a row that were dense only one of each four is looked at,
//      chosen by chance, and after four that were not only one of each 16; the others count as the last one did.  So a change in the
//      program is noticed after some blocks, and if blocks are dense by turns each block is looked at.
// DE6  After a thin block the system also clears smaller ones, from 512 KiB on, whose memory holds *little*: of 16 places all but the first
//      hold only zeros.  Otherwise what a thin block gives back would come again with the next one that is a little smaller.  They are
//      cleared in this way up to four times the size of that thin block, since a program may request no second one.
#pragma once

#include "../prim/prim.h"
#include "../support/option.h"
#include "region.h"

// Do dense blocks ask for huge pages at all?
static inline bool _mi_dense_is_asked(void) {
  return _mi_option_get_fast(mi_option_allow_thp) != 0 && _mi_region_fits_huge(_mi_prim_os_page_size());
}

// May a new block ask for huge pages?  Takes its size from the credit if so.
bool _mi_dense_take(size_t size);

// A block has grown; it is going to be looked at when it is freed (DE2).
void _mi_dense_grown(size_t old_size, size_t size);

// Smaller blocks are not looked at.
#define MI_DENSE_MIN (4 * MI_MiB)

// A block is about to be freed.  Was it dense?  Reads its contents, unless it is taken to be like the last ones (DE5).
bool _mi_dense_freed(const void* start, size_t size);

#define MI_THIN_MIN (4 * MI_MiB)

// Is a block of zeros of that size going to be thin?
bool _mi_dense_is_thin(size_t size);

// Should the system clear free memory for a block of zeros (DE4, DE6)?  Reads its contents.
bool _mi_dense_is_cleared_by_system(const void* start, size_t size);

// A block of zeros of MI_THIN_MIN or more, which has slices, is about to be freed.  Reads its contents.
void _mi_dense_freed_zeros(const void* start, size_t size);
