// Limits on memory: counting it, and refusing more.  Layer: arena.
//
//   process   slices in use + free slices that are backed + blocks with a mapping of their own    (what may be resident);
//             where memory only grows: all that has come (window.h, WI6)
//   heap      slices of its pages and large blocks, and its blocks with a mapping of their own
//
// LI1  Memory is counted before the caller has it, until nobody has it and it is not backed.  So memory in use and retained memory
//      together are never more than the hard limit, unless the limit was lowered below them.
// LI2  Counting comes first, and is undone if the memory cannot be had: two threads cannot both get the last slice.
// LI3  The functions that count call nothing else.  A caller that is refused gives back retained memory (_mi_limit_make_room), without
//      the arena lock, and asks again: as long as free memory is backed, or another thread gives memory back, no request fails.
// LI4  These are not counted: memory that the program provides, and large OS pages that the system keeps apart (the process has both
//      before, and a container does not limit them); and the tables of descriptors, 1/1000 of the memory that they describe.
#pragma once

#include "../base/atomic.h"
#include "../base/bits.h"

#define MI_LIMIT_NONE SIZE_MAX

// If memory is purged to make room, this share of the limit is purged in addition, so that the next requests find room and do not purge.
#define MI_LIMIT_AHEAD_SHARE 64

// A program that was told that the soft limit was crossed is told again if use was below the limit in between, by at least this share.
#define MI_LIMIT_BELOW_SHARE 16

typedef struct mi_limit_s {
  mi_atomic(size_t)  used; // bytes
  // Bytes, or MI_LIMIT_NONE:
  mi_atomic(size_t)  hard, soft;
  mi_atomic(size_t)  least; // the lower of the two: only a request beyond it is looked at closely
  // What became of requests:
  mi_atomic(size_t)  n_refused;
  mi_atomic(bool)    is_refused; // the last request was refused
  // When the program was told last; 0: not since there was room.
  mi_atomic(int64_t) told_ms;    // that the soft limit was crossed
  mi_atomic(int64_t) refused_ms; // that a request was going to be refused
} mi_limit_t;

#define MI_LIMIT_INIT \
  {mi_atomic_init(0), \
   mi_atomic_init(MI_LIMIT_NONE), \
   mi_atomic_init(MI_LIMIT_NONE), \
   mi_atomic_init(MI_LIMIT_NONE), \
   mi_atomic_init(0), \
   mi_atomic_init(false), \
   mi_atomic_init(0), \
   mi_atomic_init(0)}

extern mi_limit_t _mi_limit_process;

// No limits, and nothing used.
void _mi_limit_init(mi_limit_t* limit);

void _mi_limit_set(mi_limit_t* limit, size_t hard, size_t soft);

static inline bool _mi_limit_is_set(mi_limit_t* limit) {
  return mi_load_relaxed(&limit->least) != MI_LIMIT_NONE;
}

mi_cold bool _mi_limit_add_within(mi_limit_t* limit, size_t n, size_t moved);

// n more bytes are used, of which `moved` are going to hold contents of other memory, which goes as soon as they are here.  False if that
// would be more than the hard limit: then they are not counted.
static inline bool _mi_limit_add(mi_limit_t* limit, size_t n, size_t moved) {
  if (mi_unlikely(_mi_limit_is_set(limit))) return _mi_limit_add_within(limit, n, moved);
  mi_fetch_add_relaxed(&limit->used, n);
  return true;
}

// May n bytes more be used?  Nothing is counted: who has read which heap a block belongs to asks without its lock, and its limit may be
// another heap's by then.
mi_cold bool _mi_limit_ask(mi_limit_t* limit, size_t n);

// They are counted in any case: they are there.
static inline void _mi_limit_force(mi_limit_t* limit, size_t n) {
  mi_fetch_add_relaxed(&limit->used, n);
}

static inline void _mi_limit_remove(mi_limit_t* limit, size_t n) {
  mi_fetch_sub_relaxed(&limit->used, n);
}

// In the child of a fork: threads that it does not have may have counted blocks with mappings that are not there, or not any more.
static inline void _mi_limit_set_used(mi_limit_t* limit, size_t n) {
  mi_store_relaxed(&limit->used, n);
}

static inline size_t _mi_limit_used(mi_limit_t* limit) {
  return mi_load_relaxed(&limit->used);
}

// Was the last request refused?
static inline bool _mi_limit_is_refused(mi_limit_t* limit) {
  return mi_load_relaxed(&limit->is_refused);
}

// Do n bytes more cross neither of the limits of the process?
static inline bool _mi_limit_allows(size_t n) {
  size_t least = mi_load_relaxed(&_mi_limit_process.least), used = _mi_limit_used(&_mi_limit_process);
  return used <= least && n <= least - used;
}

// The program is told again so much later, while the soft limit is exceeded.
#define MI_LIMIT_AGAIN_MS 1000

// Is the program to be told of something of which it was told at *last_ms?  Of several threads that ask at the same time one tells it.
bool _mi_limit_tells(mi_atomic(int64_t)* last_ms, int64_t again_ms);

// How many bytes there are more than the soft limit allows.
size_t _mi_limit_excess(mi_limit_t* limit);

// ---- the process ------------------------------------------------------------------------------------------------------

// `purge` gives so many free slices back to the system and returns how many it gave, `crossed` is called when a soft limit was
// crossed, maybe with locks held.
void _mi_limit_register(size_t (*purge)(size_t n_slices));
void _mi_limit_on_crossed(void (*crossed)(mi_limit_t* limit));

// n bytes were refused: gives back what is retained.  True if it may be worth while to ask again; `tries` counts that, from 0
// on.  Takes the purge lock.
mi_cold bool _mi_limit_make_room(size_t n, size_t moved, int* tries);

// Contents have moved, and their old place is free: gives back what is more than the limit.  Takes the purge lock.
void _mi_limit_settle(void);

// May so much be backed that is not counted before it is used?
bool _mi_limit_has_room(size_t n);
