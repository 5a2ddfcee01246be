// The span: the range of addresses that the fast paths know, and its subregions.  Layer: arena.
//
// The fast paths know region 0 only: its base, its table, and how many slices the table describes.  These are the base, the table and the
// size of the span, which has room for everything that a process may need.  The span costs nothing, because it is planned, not reserved:
// its address is chosen at random where usually nothing is, and parts of it are mapped when they are needed.
//
//                                                                             base
//   +-------------+----------+------------------+--------------- - - --------+--------+---------+----------+-------- - -
//   | free_chunks | chunks   | table            | heap links                 | band 0 | band 1  | an arena | band 2
//   | 1 bit       | 32 bytes | 64 bytes a slice | 32 bytes a slice           | small  | huge    |          |
//   +-------------+----------+------------------+--------------- - - --------+--------+---------+----------+-------- - -
//
// A subregion is a region of its own: it shares the arrays of chunks and of descriptors with the span, but has its own buckets and bounds.
// It is a band, which the allocator opens as it needs memory, or an arena that the program reserves.
//
// SR1  The mapped parts of the span are few ranges that grow upwards, which the kernel keeps as one mapping each: the bits and the
//      array of chunks, the table, and of each subregion its chunks and its heap links.
// SR2  The span is covered up to the n_slices of region 0: table and array of chunks are mapped that far, and reach further
//      than all that is open.  They are never unmapped.
// SR3  No mapping of anybody else is replaced.  If one is in the way, the subregion ends there; if one is in the way of a table, the span
//      ends.
// SR4  Each subregion has whole words of free_chunks.  So no two have heap links in the same OS page.
//
// All of this under the arena lock.
#pragma once

#include "region.h"

// Bands are that large at least, and so are regions of our own outside of the span: 64 chunks are a word of bits.
#define MI_BAND_SIZE_MIN (64 * MI_CHUNK_SIZE)

// Plans the span, and its first two bands: regions 0 and 1.  False where there can be none.
bool _mi_subregion_plan(void);

// How many bytes the next band should have.
size_t _mi_subregion_band_size(bool is_huge);

// Makes a band for at least `size` bytes, as large as it should be if the span has such a place.  False if it has none.
mi_cold bool _mi_subregion_make_band(mi_region_t* made, size_t size, bool is_huge);

// Does the range meet the span or its tables?  Nothing else of the library may lie there, and no arena that the program provides.
bool _mi_subregion_overlaps(const void* start, size_t size);

// Makes `region`, which is zero, the n chunks of region 0 from the i-th on.
void _mi_subregion_fill(mi_region_t* region, size_t i, size_t n);

// The lowest n chunks of the span of which no subregion has any and which start at a multiple of `align` bytes;
// SIZE_MAX if there are none.
mi_cold size_t _mi_subregion_find(size_t n, size_t align);

// The first n chunks of a subregion have descriptors that can be written.  0, EEXIST or another errno value.
int _mi_subregion_cover(const mi_region_t* region, size_t n);

// Makes the bytes [from, to) of an array usable, up to the ends of OS pages; those before `from` are.  `is_new`: nothing is
// reserved there.  The same results.
int _mi_subregion_extend(void* array, size_t from, size_t to, bool is_new);

// Unmaps a subregion in which nothing is in use, and makes zero of what describes it, so that its place is free.  False if the
// system refuses: then the place is still taken.
mi_cold bool _mi_subregion_clear(mi_region_t* region);
