// Mapped blocks: blocks with a mapping of their own.  Layer: arena.
//
// A block over 32 MiB, or aligned to more than a chunk, comes from the system by itself and goes back at once; if such blocks come again
// soon, they take slices instead (recur.h).  There is no limit to their number but that of the system.  The descriptor of a mapped block
// lies in a slot (mapped_slot.h).
//
// MB1  A slot is unused, or stuck, or its range is in the index, or it is out: one caller has it.
// MB2  Ranges in the index are mapped, and in use.  A range is taken out before its mapping goes or moves, and is put in when the mapping
//      is there: so the library never claims an address that the system may have given to somebody else.
// MB3  When the system refuses to take a mapping back (it has to split another for that, and there are too many), its
//      contents go back, and its slot is stuck: it is tried again with later calls.
// MB4  In the child of a fork nobody knows what became of the mapping of a slot that another thread had out.  It is left
//      alone.
//
// MB5  A region of which the system has taken slices away (MI_REMAP_LOST, or memory of the program that it has unmapped itself) has a hole,
//      where the system may place what it is asked to map.  An address in it leads to the region, so no block stays there: another
//      place is found, and the hole is closed for good.
//
// With n blocks, allocating, freeing, finding and resizing take O(log n) and the time of the system calls.  The lock is a leaf: no other
// lock is taken while it is held, and no system call is made.
#pragma once

#include "mapped_slot.h"

// Reads as zero, and starts at a multiple of `align` bytes (a power of two).  Returns the descriptor, of which nothing is filled in
// but which may be of a block before; NULL when out of memory.  `size`: a multiple of a slice.
void* _mi_mapped_new(size_t size, size_t align);

// A new block that begins with the contents of [from, from + old_size), memory of a region, which are moved, not copied: that
// stays usable and reads as zero.  NULL if the system refuses: then nothing happened.
void* _mi_mapped_new_from(char* from, size_t old_size, size_t size);

// Frees a block in two steps.  The first takes it out of the index; false: it is out already (MB4).  Between them the
// descriptor is made one that is not in use: so the child of a fork finds a block that is in the index, and can be
// freed, or one that is out.  That matters, since a thread waits at the first step while another forks.
bool _mi_mapped_take_out(void* descriptor);
void _mi_mapped_free(void* descriptor, bool was_in);

// The block gets another size, a multiple of a slice, and another place if need be; what is added reads as zero.  No
// contents are copied.  False if the system refuses: then it is as it was.  The caller must be the only one to use it.
bool _mi_mapped_resize(void* descriptor, size_t size);

// Where the mapping starts, and its heap link.
char* _mi_mapped_start(const void* descriptor);
void* _mi_mapped_heap_link(const void* descriptor);

// The descriptor of the block that has this address, or a part of this range; NULL if there is none.
void* _mi_mapped_find(const void* p);
bool  _mi_mapped_overlaps(const void* start, size_t size);

// Tries again what is stuck (MB3), at most n of it.
void _mi_mapped_retry(size_t n);

typedef struct mi_mapped_sum_s {
  size_t n_blocks, size;      // in use
  size_t n_stuck, stuck_size; // address space without contents
} mi_mapped_sum_t;

mi_cold void _mi_mapped_get_sum(mi_mapped_sum_t* sum);
