// Which blocks are guarded: guarded mode, of a process and of a theap.  Layer: heap.
//
//   off       nothing happens: what slow paths look at anyway (`_mi_event_pending`) is 0
//   counting  rates of 1000 and more: slow paths count the blocks with which bins are filled.  When it is time, the theap
//             is armed for a few allocations, one of which is guarded
//   armed     each allocation takes the slow path, and is counted.  With lower rates a theap is armed all the time
//
// SA1  The bins of an armed theap are kept by its sampler; its own are closed: they have no blocks, so that malloc takes the
//      slow path, and no room, so that free gives blocks to their pages.  The slow path opens the one that it needs.
// SA2  A sampler is touched by the thread that has its theap, as bins are.  Its memory is never given back, as that of its
//      theap is not.
// SA3  A thread whose bins have all that it needs takes no slow paths.  So while it is counted, bins are filled but have no room
//      (MI_BIN_NO_SLOTS): they run empty soon, since frees go to pages.  Each round (background.h) does the same to all bins, also
//      those that were filled before.
// SA4  `_mi_event_pending` counts reasons for slow paths to look closer: the option, each theap with a rate of its own,
//      each armed theap.
#pragma once

#include "theap.h"

#define MI_SAMPLER_ALL_BELOW 1000 // rates below count every allocation

#define MI_SAMPLER_CLOSED -1 // room and blocks left of a closed bin (SA1)

struct mi_sampler_s {
  mi_bin_t bins[MI_CLASS_COUNT]; // S1
  size_t   number;
  uint32_t version; // of the options, when they were last looked at
  bool     is_armed;
  bool     is_busy; // its thread makes a guarded block, and may allocate meanwhile
  bool     has_own_rate;
  bool     has_own_bounds;
  bool     is_precise;
  uint32_t n_unfit;        // allocations in a row that could not be the one, while armed for a few
  size_t   before_percent; // of its blocks that begin, not end, where memory is inaccessible
  size_t   rate;           // 0: none
  size_t   min, max;       // sizes
  int64_t  countdown;      // to the next guarded block
  int64_t  not_before_ns;  // see sampler_may_arm
  uint64_t random;
};

// Up to this alignment, a power of two, blocks of any size are aligned without being asked to be: 16, or 1 while guarded
// blocks are precise.
extern mi_atomic(size_t) _mi_sampler_plain_align;

// ---- for slow paths, while _mi_event_pending is not 0; `theap` may be NULL ------------------------------------------

// A guarded block, NULL if this allocation is not to be guarded.
// It reads as zero.
void* _mi_sampler_malloc(mi_theap_t* theap, size_t size, size_t align, size_t offset);

typedef enum mi_sampler_turn_e { MI_SAMPLER_NOTHING, MI_SAMPLER_FILLS, MI_SAMPLER_OPENED } mi_sampler_turn_t;

// Before and after a block of a class is taken otherwise.
mi_sampler_turn_t _mi_sampler_open(mi_theap_t* theap, size_t cls);
void              _mi_sampler_close(mi_theap_t* theap, size_t cls, mi_sampler_turn_t turn);

// ---- settings -------------------------------------------------------------------------------------------------------

// Guarded mode as the options have it, also when they change.
void _mi_sampler_init(void);

// For a theap of the calling thread, instead of the options.
void _mi_sampler_set_rate(mi_theap_t* theap, size_t rate, size_t seed);
void _mi_sampler_set_bounds(mi_theap_t* theap, size_t min, size_t max);

// The part of a round: of a live theap.
void _mi_sampler_tick(mi_theap_t* theap);

// ---- the life of a theap that has a sampler -------------------------------------------------------------------------

// Its bins are its own again.
void _mi_sampler_disarm(mi_theap_t* theap);

// Another thread has it from now on.
void _mi_sampler_reset(mi_theap_t* theap);

// Its thread did not survive a fork, and neither did what was in its bins.
void _mi_sampler_forget(mi_theap_t* theap);
