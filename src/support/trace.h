// Who allocated and who freed a block: stacks, for reports of errors.  Layer: support.
//
// Guarded blocks keep their own (heap/guard.h).  In debug builds, with option debug_stacks, a table remembers those of all
// other blocks as well:
//
// TR1  The table is a cache: the place of a block follows from its address, and another block may take it over.  So not
//      everything is found; what is found is of the block that is at that address.
// TR2  A place is written and read by whoever has its lock, for a few instructions.  Those who do not get it for long do
//      without: the child of a fork may find it locked for ever.
#pragma once

#include "../base/atomic.h"
#include "../base/mode.h"

#define MI_TRACE_FRAMES 16
#define MI_TRACE_BLOCKS (MI_DEBUG > 0 && MI_CHECKED && !MI_TRACK)

// Who did something, and from where.
typedef struct mi_trace_s {
  uintptr_t thread;
  size_t    n_frames; // 0: from where is not known
  void*     frames[MI_TRACE_FRAMES];
} mi_trace_t;

// Stacks can be taken from now on: loads the system's unwinder, which programs that do not ask for it shall not pay for.
void _mi_trace_start(void);

// The system is asked for the number of the calling thread now; of others when they first need it.
void _mi_trace_know_thread(void);

// In the child of a fork the thread has another number.
void _mi_trace_after_fork(void);

// For the calling thread, which holds no lock of the library.
void _mi_trace_take(mi_trace_t* trace);

// Says in a warning that the block was allocated (`what`) so.
void _mi_trace_warn(const char* what, const void* block, const mi_trace_t* trace);

// ---- of all blocks --------------------------------------------------------------------------------------------------

typedef struct mi_trace_place_s mi_trace_place_t;

extern mi_atomic(mi_trace_place_t*) _mi_trace_table; // NULL: it was not asked for

void         _mi_trace_init(void); // with the options
mi_cold void _mi_trace_remember(const void* block, bool is_free);

// Says in warnings who allocated and who freed the block, if that is known.
mi_cold void _mi_trace_explain(const void* block);

static mi_always_inline void _mi_trace_allocated(const void* block) {
  if (MI_TRACE_BLOCKS && mi_unlikely(mi_load_relaxed(&_mi_trace_table) != NULL)) _mi_trace_remember(block, false);
}

static mi_always_inline void _mi_trace_freed(const void* block) {
  if (MI_TRACE_BLOCKS && mi_unlikely(mi_load_relaxed(&_mi_trace_table) != NULL)) _mi_trace_remember(block, true);
}
