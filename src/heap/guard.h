// Guarded blocks: each ends where memory is inaccessible, and is made inaccessible when it is freed.  Layer: heap.
//
//   a run of slices       |########|      ....[block]|###################|       '#': inaccessible
//   `before`              |########|[block]....      |###################|
//                         start    data              data_end            end
//
// GU1  A guarded block has a page of its own (LARGE, GUARDED) whose descriptor has the exact size, and a record.
// GU2  A run keeps its record from the time when it is taken from the arena until it is given back.  LIVE: all but
//      [data, data_end) is inaccessible.  FREED: all of it is, and nothing of it is backed; its page stays CLAIMED, so that
//      another free is noticed.  Runs are used again, or given back, in the order in which they were freed; the last one
//      stays, so that a use of it is noticed however large it is.  One that the system does not make accessible again waits
//      without a page, and is tried again at every free of a guarded block.
// GU3  What lies next to a block in its OS pages is filled when it is made, and looked at when it is freed, or by a check.
// GU4  The guard lock guards lists, counts and states of records, and the end of a block while it is resized.  The arena lock
//      may be taken while it is held.  The handler of faults reads records without it: what it finds is as good as the
//      program's own synchronisation.
// GU5  Runs come from chunks of the allocator's own data, which are never in memory that the program provides: the library must not
//      change the protection of that memory.  So a heap that is bound to an arena has no guarded blocks.
// GU6  A block of no bytes has only inaccessible memory in builds with padding, where each block has the size that was asked for;
//      in others it has one byte.
// GU7  A guarded block that was sampled moves when it is resized, since its end has to be where memory ends.  In hardened builds, where all
//      large blocks are guarded, that would make growing in steps quadratic.  There the block stays while it has room, and the bytes that
//      it then has behind its end in its last OS page are filled.  If it was resized before, it gets room for a quarter more, of address
//      space only.
#pragma once

#include "../support/trace.h"
#include "heap.h"

#define MI_GUARD_LIVE_MAX     4096 // each has up to three mappings of the 65530 that the kernel allows by default
#define MI_GUARD_FREED_MAX    256
#define MI_GUARD_FREED_SLICES 1024 // in all: 64 MiB of address space, but for a larger one alone

typedef enum mi_guard_state_e { MI_GUARD_NONE, MI_GUARD_LIVE, MI_GUARD_FREED } mi_guard_state_t;

// The record.
struct mi_guard_s {
  mi_guard_t*         next;    // in the list of those that are FREED, or not in use
  mi_atomic(uint32_t) state;   // mi_guard_state_t
  bool                is_zero; // nothing is backed, but for `data` while LIVE: it reads as zero once it is accessible
  size_t              n_slices;
  mi_page_t*          page;
  char *              start, *end;
  char *              data, *data_end;
  char*               block;
  size_t              size;
  mi_trace_t          allocated, freed;
};

// Where a block lies at an offset of its page.
typedef struct mi_guard_place_s {
  size_t n_slices, align; // of the run; align in slices
  size_t data, block, data_end;
} mi_guard_place_t;

typedef struct mi_guard_request_s {
  size_t size, align, offset; // (p + offset) is a multiple of `align`
  bool   is_precise;          // the block ends exactly where it is inaccessible, if the alignment allows
  bool   is_before;           // it begins where it is inaccessible
  size_t room;                // bytes by which it shall be able to grow where it is (GU7)
} mi_guard_request_t;

// A block that reads as zero.  NULL when there are too many already, or out of memory, or it is not to be had for this
// heap, size or alignment.
void* _mi_guard_malloc(mi_heap_t* heap, const mi_guard_request_t* request);

// That of the guarded block at p, NULL if there is none.
static inline mi_guard_t* _mi_guard_at(const void* p) {
  const mi_page_t* page = _mi_page_of(p);
  bool is_guarded = (page != NULL && _mi_page_kind(page) == MI_PAGE_LARGE && _mi_page_has(page, MI_PAGE_GUARDED));
  return is_guarded ? page->guard : NULL;
}

static inline bool _mi_guard_has(const void* p) {
  return _mi_guard_at(p) != NULL;
}

// The first `size` bytes of a guarded block at p are about to be written: they are backed at once, not at one fault each.
void _mi_guard_populate(void* p, size_t size);

// The block stays where it is and has `size` bytes from now on; false if it has no room, or is to give memory back (GU7).
bool _mi_guard_resize(mi_page_t* page, size_t size);

// The page is of no heap any more, and nobody else has it: its block is freed.
void _mi_guard_free(mi_page_t* page);

// The runs of freed blocks go back to the arena: memory is short.  True if there were any.
mi_cold bool _mi_guard_drop_freed(void);

// Is what lies next to the block in use as it was filled (GU3)?
bool _mi_guard_is_whole(const mi_guard_t* guard);

// Says who allocated and who freed a block, in warnings.
void _mi_guard_explain(const mi_page_t* page);

// The record of the block whose run has the address, NULL if there is none.
const mi_guard_t* _mi_guard_find(uintptr_t address);

extern mi_lock_t _mi_guard_lock; // GU4

// ---- parts, for tests -----------------------------------------------------------------------------------------------

// False when it is too large for a guarded block.
bool   _mi_guard_place(const mi_guard_request_t* request, mi_guard_place_t* place);
size_t _mi_guard_count(mi_guard_state_t state); // how many are LIVE, or FREED
