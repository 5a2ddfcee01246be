// Address space for regions: reserving it, giving it back, and opening chunks of it.  Layer: arena.
#pragma once

#include "region.h"

extern size_t          _mi_space_n_shared; // arenas that are not exclusive
extern size_t          _mi_space_n_bound;  // those of them that have a NUMA node
extern size_t          _mi_space_refused; // so many chunks, or more, are not asked for again by this request for slices
extern mi_atomic(bool) _mi_space_is_short; // the last time that memory was to be opened the system refused

// Makes regions 0 and 1.  False when the system gives no address space at all.
bool _mi_space_init(void);

// A request for n slices was refused.  If the process got no memory for even one block so far, that is said, once, whatever the
// options are.  Caller holds no lock of the arena.
mi_cold void _mi_space_report_none(size_t n);

// The following return NULL when out of address space, of memory, or of regions; the caller holds the arena lock.  Arenas
// are exclusive and have nothing usable until they are started.

// Adds a region with room for at least `size` bytes.  For pages in huge-page chunks only where the span has room for it.
mi_cold mi_region_t* _mi_space_add(size_t size, bool is_huge);
// Adds an arena of whole chunks, reserved by us: in the span if that has room.
mi_cold mi_region_t* _mi_space_add_reserved(size_t size, size_t align);
// Can memory be managed in OS pages of that size?  A slice is one or more of them.
static inline bool   _mi_space_fits_pages(size_t os_page_size) {
  return mi_is_pow2(os_page_size) && os_page_size <= MI_SLICE_SIZE;
}

// Adds an arena of the program's memory: slices, as many as make whole chunks.  `has_commit`: not all is committed.
mi_cold mi_region_t* _mi_space_add_given(void* start, size_t size, bool has_commit);

// ---- parts, for window.c -------------------------------------------------------------------------------------------

// An entry that is not in use, NULL if all are; and what makes it the region.
mi_region_t* _mi_space_find_entry(void);
mi_region_t* _mi_space_install(mi_region_t* region, const mi_region_t* made);

// ---- arenas ---------------------------------------------------------------------------------------------------------

// The first n chunks of an arena, whose fields are set, may be handed out.  Caller holds the arena lock.
mi_cold void _mi_space_start(mi_region_t* region, size_t n);

// Gives a region back to the system, or the program; nothing of it is in use.  Not regions 0 and 1.  Caller holds the arena
// lock.
mi_cold void _mi_space_remove(mi_region_t* region);

// Makes the first n chunks of a region usable.  Caller holds the arena lock.
bool _mi_space_open(mi_region_t* region, size_t n);

// The same for n slices more, of the last chunk if some are missing there, else of the next one.  Only in planned regions.
mi_cold bool _mi_space_open_slices(mi_region_t* region, size_t n);

// Unmaps all but the first n chunks of a planned region; nothing of the rest is in use.  False if the system refuses.  Caller
// holds the arena lock.
mi_cold bool _mi_space_close(mi_region_t* region, size_t n);

// Makes the heap links of all open chunks usable; they are zero at first.  False when out of memory.  Most programs
// have one heap and never need them.
bool _mi_space_open_heap_links(mi_region_t* region);
