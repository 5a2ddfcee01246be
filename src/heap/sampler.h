// Which allocations are sampled, and what for: a guarded block (guard.h), or the profile (profile.h).  Layer: heap.
//
//   off       nothing happens: `_mi_event_pending`, which slow paths read anyway, is 0
//   counted   each allocation takes the first lines of the slow path, which count it (counted.h)
//   armed     each allocation takes the slow path, and is counted.  For rates of guarded blocks below 1000
//
// SA1  The sampler of an armed theap keeps the contents of the theap's bins.  The bins themselves are closed: they have no blocks, so that
//      malloc takes the slow path, and no slots, so that free gives blocks to their pages.  The slow path opens the bin that it needs.
// SA2  A sampler is touched by the thread that has its theap, as bins are.  Its memory is never given back, as that of its
//      theap is not.
// SA3  A thread whose bins have all that it needs takes no slow paths, and does not see that it is to count.  So each round
//      (background.h) takes the slots of all bins that are not counted yet (MI_BIN_NO_SLOTS): they run empty soon.
// SA4  `_mi_event_pending` counts reasons for slow paths to look closer: the option, the profile, each theap with a rate of its
//      own, each armed or counted theap.
// SA5  An allocation is charged once, and is sampled if a meter runs out with it: for guarded blocks 1, for the profile the bytes
//      of its block.  A part of those that are left is lent to `credit`: while it lasts, no setting is looked at.
// SA6  A meter starts at random, whatever came before.  So for the profile each allocation is sampled with the probability
//      1 - exp(-bytes / mean), independently of all others, whichever of them fill bins.
#pragma once

#include "counted.h"

#define MI_SAMPLER_ALL_BELOW 1000 // lower rates of guarded blocks count every allocation

#define MI_SAMPLER_CLOSED -1 // slots and limit of a bin that its sampler has closed (SA1)

// What an allocation is sampled for, as bits.
#define MI_SAMPLER_GUARD   1
#define MI_SAMPLER_PROFILE 2

// The charge for an allocation of a class (SA5).
typedef struct mi_sampler_cost_s {
  uint32_t bytes;
  uint32_t guards; // 0 or 1
} mi_sampler_cost_t;

struct mi_sampler_s {
  int64_t           credit;   // bytes, SA5
  int64_t           to_guard; // the meters: blocks, and bytes without those of `credit`
  int64_t           to_profile;
  mi_sampler_cost_t costs[MI_CLASS_COUNT];
  mi_bin_t          bins[MI_CLASS_COUNT]; // SA1
  size_t            number;
  uint32_t          version; // of the settings, when they were last looked at
  bool              is_armed;
  bool              is_busy; // its thread makes a guarded block or takes a stack, and may allocate meanwhile
  bool              has_own_rate;
  bool              has_own_bounds;
  bool              is_precise;
  size_t            before_percent; // of its blocks that begin, not end, where memory is inaccessible
  size_t            rate;           // one guarded block in so many; 0: none
  size_t            mean;           // bytes between samples of the profile; 0: none
  size_t            min, max;       // sizes of guarded blocks
  int64_t           not_before_ns;  // see sampler_is_time
  uint64_t          random;
};

// Up to this alignment, a power of two, blocks of any size are aligned without being asked to be: 16, or 1 while guarded
// blocks are precise.
extern mi_atomic(size_t) _mi_sampler_plain_align;

// ---- what its settings say -------------------------------------------------------------------------------------------

static inline bool _mi_sampler_counts_all(const mi_sampler_t* s) {
  return s->rate > 0 && s->rate < MI_SAMPLER_ALL_BELOW;
}

static inline bool _mi_sampler_is_off(const mi_sampler_t* s) {
  return s->rate == 0 && s->mean == 0;
}

static inline bool _mi_sampler_wants_class(const mi_sampler_t* s, size_t cls) {
  return _mi_size_class_block(cls) >= s->min && (cls == 0 || _mi_size_class_block(cls - 1) < s->max);
}

static inline bool _mi_sampler_wants_size(const mi_sampler_t* s, size_t size) {
  return size >= s->min && size <= s->max;
}

// ---- for slow paths, while _mi_event_pending is not 0; `theap` may be NULL ------------------------------------------

// What an allocation of the class (MI_CLASS_NONE: of a page of its own) is sampled for.
unsigned _mi_sampler_pick(mi_theap_t* theap, size_t size, size_t cls);

// A block of a counted theap, charged and not sampled.  NULL: what follows decides.  This is what counting costs: most mallocs of
// a counted theap end here.
static mi_always_inline mi_block_t* _mi_sampler_next(mi_theap_t* theap, size_t cls) {
  if (!_mi_counted_is(theap)) return NULL;
  mi_sampler_t* s = theap->sampler;
  int64_t       credit = s->credit - s->costs[cls].bytes, to_guard = s->to_guard - s->costs[cls].guards;
  if (mi_unlikely(credit <= 0 || to_guard <= 0)) return NULL;
  mi_block_t* block = _mi_counted_pop(theap, cls);
  if (mi_unlikely(block == NULL)) return NULL;
  s->credit = credit;
  s->to_guard = to_guard;
  return block;
}

// What it counts in the profile.
static inline size_t _mi_sampler_bytes(size_t size, size_t cls) {
  return cls == MI_CLASS_NONE ? mi_max(size, 1) : _mi_size_class_block(cls);
}

// A guarded block, NULL if there is none to be had.  It reads as zero.
void* _mi_sampler_guard(mi_theap_t* theap, size_t size, size_t align, size_t offset);

// The block p, in a page of its own, is one of the profile's.
void _mi_sampler_profile(mi_theap_t* theap, void* p, size_t size, size_t bytes);

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

// The profile has a sample per so many bytes from now on; 0: none.
void _mi_sampler_set_mean(size_t mean);

// How many reasons there are for `_mi_event_pending` (SA4).
uint32_t _mi_sampler_reasons(void);

// The part of a round: of a live theap.
void _mi_sampler_tick(mi_theap_t* theap);

// ---- the life of a theap that has a sampler -------------------------------------------------------------------------

// Its bins are its own again, and nothing is counted before its next slow path.
void _mi_sampler_disarm(mi_theap_t* theap);

// Another thread has it from now on.
void _mi_sampler_reset(mi_theap_t* theap);

// What was in its bins is lost: its thread did not survive a fork, or its heap was destroyed.
void _mi_sampler_forget(mi_theap_t* theap);
