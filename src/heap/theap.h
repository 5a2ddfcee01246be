// A thread's part of a heap: its bins, its pages, its outbox.  Layer: heap.
//
//   malloc:  bin  <--refill--  page's free list | chain of others' frees | new blocks  <--  pool | arena
//   free:    bin, while it has slots  --overflow-->  the block's page (its own)  |  outbox (others')  --batch-->  page word
//
// H1  A thread touches its bins without marking that it does: that is the fast path.  Each change of a bin begins with `slots`, so that
//     whoever takes bins away from a thread can tell whether the thread is in the middle of a change (bin.h).
// H2  All else of a theap (queues, outbox, quarantine, plain fields of its pages) is touched between enter and leave only
//     (presence.h), by its thread or by whoever has revoked it: a sleeping thread cannot keep what it does not use.
// H3  slots = max(limit, blocks that the bin was filled with) - (blocks in the bin).  So the bin never holds more than it
//     was filled with or its limit allows.
// H4  A page that is OWNED by a theap is in its class's `queue` or, with MI_PAGE_IS_FULL, in its `full` (queue.h); a gap page is in neither
//     (gaps.h, GP4).
// H5  A theap's memory is never given back, only used again, and for the same heap as long as a page may have it as its
//     home (heap.h, Q3).  So an outdated pointer to a theap in `home` does no harm.
// H6  `thread` is the backing theap of the thread that has this one (its own address in a backing theap): the identity of
//     that thread.  NULL while no thread has it.  So a thread that finds its own backing theap there has the theap, and no other does.
// H7  Outside of slow paths, slots + (blocks in the bin) is the bin's `total`.
// H8  A thread that gives back or takes over a page whose home is another theap counts it in that theap's `left`.  The thread of that
//     theap subtracts it from `n_pages` now and then: otherwise a theap whose pages others empty would seem to have all that it ever made.
#pragma once

#include <stddef.h>

#include "../page/page.h"
#include "../page/written.h"
#include "directory.h"
#include "kept.h"

typedef struct mi_subproc_s mi_subproc_t;
typedef struct mi_sampler_s mi_sampler_t;
typedef struct mi_gaps_s    mi_gaps_t;

typedef struct mi_bin_s {
  mi_block_t* head;
  int32_t     slots;
  union {
    int32_t limit;
    char    room[12 - sizeof(mi_block_t*)]; // a bin is as large with pointers of 32 bits
  };
} mi_bin_t;

// The state of a bin that the fast path does not need.
typedef struct mi_bin_book_s {
  int32_t     total;       // H7
  int32_t     slots_taken; // `slots` of a bin that was closed (bin.h, BN1)
  mi_block_t* taken;       // ... and its list
} mi_bin_book_t;

typedef struct mi_page_list_s {
  mi_page_t* first;
  mi_page_t* last;
  size_t     count;
} mi_page_list_t;

typedef struct mi_class_state_s {
  mi_page_list_t queue;          // pages that had room when last seen; refill begins with the first
  mi_page_list_t full;           // pages that had none
  int32_t        slots_seen;     // the bin's `slots` when it was last looked at
  uint8_t        n_unused;       // looks in a row that found that nothing was taken from it
  uint8_t        n_fills;        // how often the bin was filled, up to a maximum
  bool           has_overflowed; // a free found the bin full since it ran empty
  uint16_t       n_grown;        // blocks that the bin may hold above the limit of the class (grow.h)
  uint16_t       n_refills;      // since the theap looked for sparse pages (sparse.h), up to the maximum of the type
  uint32_t       n_pages;        // of which it is the home, as far as it has noted: how far the class has grown
  uint32_t       round;          // of the last time that the bin was filled
  int32_t        slots_then;     // the bin's `slots` when the thread last looked whether it still uses the class
  mi_bin_book_t  book;           // of its bin
} mi_class_state_t;

// Where the frees into one page go for a while (drain.h).
typedef struct mi_drain_s {
  mi_bin_t          bin;
  mi_bin_book_t     book;
  mi_page_t*        page; // whose blocks these are; NULL: it is not in use
  mi_block_t*       last; // of the bin's list; NULL: unknown
  const mi_block_t* seen; // the first block in the bin of `seen_cls` when a page of that class was last looked at
  uint32_t          seen_cls;
  int32_t           slots_then; // `slots` when it was last looked at whether it is in use (trim.h)
} mi_drain_t;

#define MI_DRAINS 8 // a power of two

// Blocks of one page that others own, on their way back to it.
typedef struct mi_batch_s {
  mi_page_t*  page; // NULL: closed
  mi_block_t* first;
  mi_block_t* last;
  uint32_t    count;
  uint32_t    limit; // of its class
} mi_batch_t;

// Whether the thread of a theap is at work in it (H2).
typedef enum mi_presence_e { MI_THEAP_OUTSIDE, MI_THEAP_INSIDE } mi_presence_t;

// How far a round is with taking from a theap the memory that its thread does not use (presence.h).
typedef enum mi_revoked_e {
  MI_THEAP_FREE,
  MI_THEAP_ASKED,   // a later round will take from it, unless its thread comes by
  MI_THEAP_CLOSED,  // the same; its bins have been closed
  MI_THEAP_TAKEN,   // a round is at work in it
  MI_THEAP_AWAITED, // ... and its thread waits for the end of that
  MI_THEAP_EMPTIED  // a round has taken from it
} mi_revoked_t;

#define MI_QUARANTINE_SIZE (MI_HARDENED ? 64 : 1)

#define MI_OUTBOX_SIZE 32 // open batches: about as many as a program has classes of small blocks (docs/decisions/009)

// Counters of a theap for the statistics (H2); never set back, not even for its next thread (heap/heap_stats.h).
typedef enum mi_theap_count_e {
  MI_COUNT_LARGE_REUSED, // kept large blocks that were used again; of a backing theap, by its thread only
  MI_COUNT_SEARCHES,     // how often no page of a class was known to have room
  MI_COUNT_SEARCHED,     // pages looked at then
  MI_COUNT_PARKED,       // full pages
  MI_COUNT_CLAIMED,      // pages that became its own by a free
  MI_COUNT_ADOPTED,      // ... and out of a pool
  MI_THEAP_COUNTS
} mi_theap_count_t;

// When bins and pages of unused classes are looked at (trim.h).
typedef struct mi_theap_trim_s {
  uint32_t round;        // the last one in which it was trimmed as a whole
  uint32_t n_slow_frees; // counts to the next look at unused bins
  uint32_t n_looks;      // at unused bins: they tell which bins are next
  uint32_t next_grown;   // class at which the next look at grown bins begins
  uint32_t wide_classes; // a bit for each wide class of which it ever made a page (TI3)
} mi_theap_trim_t;

// What grown bins count for (grow.h).
typedef struct mi_theap_grown_s {
  size_t n_slices;
  size_t n_alone; // of these, those of blocks that have a page each
} mi_theap_grown_t;

// How far a theap is with a look at its pages (sparse.h, SP5), and when it begins with the next.
typedef struct mi_sparse_s {
  size_t   n_free;     // free bytes that were counted so far
  uint32_t cls;        // class at which counting goes on
  uint32_t n_left;     // pages of that class that are still to be counted
  uint32_t n_to_make;  // pages to be looked at before they are counted again
  bool     is_begun;   // counting the pages of the class has begun
  uint32_t n_requests; // for a page, since it last looked at its pages
  uint32_t n_to_look;  // at so many requests it looks at its pages
  uint32_t made_cls;   // the class of which it last made gap pages
  uint32_t n_misses;   // requests that no page had room for, since it last looked at shared pages
} mi_sparse_t;

// Whether the thread of a backing theap has ended without saying so (ended.h).
typedef struct mi_theap_watch_s {
  mi_prim_pulse_t pulse;
  mi_theap_t*     next;
  mi_theap_t*     prev;
  bool            is_watched; // this holds, and what is above is in use
} mi_theap_watch_t;

// A place in a list.
typedef struct mi_theap_link_s {
  mi_theap_t*  next;
  mi_theap_t** at; // what points to the theap
} mi_theap_link_t;

// While no thread has the theap: among the warm ones (warm.h), or among the vacant ones of its heap (vacant.h).
typedef struct mi_theap_warm_s {
  mi_theap_t* next;
  uint32_t    n_slices; // what it counts for
} mi_theap_warm_t;

typedef struct mi_theap_vacant_s {
  uint64_t since;      // how many theaps had become vacant when it did (VA4)
  uint64_t seen_round; // the vacant round in which it was last not vacant, or seen to be a home
} mi_theap_vacant_t;

// The blocks that a thread has freed and that may not be used again yet (quarantine.h).
typedef struct mi_theap_quarantine_s {
  mi_block_t* blocks[MI_QUARANTINE_SIZE];
  uint64_t    random;
} mi_theap_quarantine_t;

// H8: pages of which it is the home, and that other threads gave back or took over.
typedef struct mi_theap_left_s {
  mi_atomic(bool)     any;
  mi_atomic(uint32_t) n[MI_CLASS_COUNT];
} mi_theap_left_t;

// The cache in which a thread first looks for its theap of a heap, by the lowest bits of the heap's id.
typedef mi_directory_entry_t mi_theap_cached_t;

#define MI_THEAP_CACHE_SIZE 8 // a power of two

struct mi_theap_s {
  // Read by fast paths and by those who revoke it.
  mi_bin_t               bins[MI_CLASS_COUNT]; // first: the offset of a bin counts from here
  mi_atomic(mi_theap_t*) thread;               // H6
  mi_atomic(uint32_t)    presence;             // mi_presence_t
  mi_atomic(uint32_t)    revoked;              // mi_revoked_t
  mi_atomic(bool)        is_closed;            // its bins were closed by others; set under _mi_idle_lock

  // What its thread is to look at, and when (H2).
  bool             has_deleted; // pages were given back since the last look at the purge policy
  bool             has_trimmed; // ... and bins were looked at
  bool             was_emptied; // a round has shared its pages since it last looked at shared ones (sparse.h)
  mi_theap_trim_t  trim;
  mi_theap_grown_t grown;
  uint32_t         n_slow; // slow mallocs: the heartbeat of deferred frees; its own thread only

  // Of a backing theap only: what belongs to its thread.
  mi_kept_t         kept;                       // large blocks that it freed last (large.h, L3)
  mi_theap_cached_t cache[MI_THEAP_CACHE_SIZE]; // of its own thread
  mi_directory_t    directory;                  // the other theaps of the thread, except those that are retired
  mi_subproc_t*     subproc;                    // written by its own thread, under the registry lock
  mi_theap_watch_t  watch;
  mi_theap_t*       retired; // first of the thread's theaps whose heap has ended
  size_t            number;  // how many theaps were made before it; 0 if it was made while its thread forks

  // Which heap and which thread have it, and in which lists it is: under the registry lock.
  mi_atomic(mi_heap_t*) heap;      // NULL: of none; read by its thread without the lock
  mi_heap_t*            ended;     // the heap that it served until that heap ended (heap.h, Q8)
  uint64_t              heap_id;   // of the heap for which its thread got it
  mi_theap_link_t       in_heap;   // among the theaps of the heap
  mi_theap_link_t       in_thread; // among those of the thread, beginning with the backing theap; or the retired ones
  mi_theap_t*           next;      // in the registry
  mi_theap_warm_t       warm;
  mi_theap_vacant_t     vacant;
  mi_atomic(bool)       is_live;     // a thread has it
  mi_atomic(bool)       is_late;     // threads past their exit share it; read without the lock by rounds
  bool                  is_orphan;   // its thread did not survive a fork
  mi_atomic(bool)       has_retired; // `retired` is not empty; without the lock

  // What slow paths use of its classes and pages (H2).
  mi_theap_quarantine_t quarantine; // of a backing theap
  mi_class_state_t      classes[MI_CLASS_COUNT];
  mi_batch_t            outbox[MI_OUTBOX_SIZE];
  mi_atomic(uint64_t)   counts[MI_THEAP_COUNTS];

  // Bins beside those of its classes.
  mi_bin_t   returns[MI_CLASS_COUNT]; // where frees go while it is counted (counted.h)
  uint16_t   return_offset;           // the offset from a bin to its return bin; 0: the theap is not counted
  mi_bin_t   no_slots;                // always empty and without slots: the bin of gap pages (gaps.h)
  mi_drain_t drains[MI_DRAINS];       // by the lowest bits of the class

  // What few theaps need.
  mi_sampler_t*   sampler;    // of its own thread; NULL: it never needed one (heap/sampler.h)
  mi_gaps_t*      gaps;       // NULL: it never had any
  const void*     wrong_free; // an address freed into a gap page that is no block: to be reported (gaps.h, GP6)
  mi_sparse_t     sparse;
  mi_written_t    written; // which classes fill their pages of several slices
  mi_theap_left_t left;
};

// bin_offset of a page of a counted theap is larger by this than that of others (counted.h).
#define MI_RETURNS_OFFSET  offsetof(mi_theap_t, returns)
// bin_offset of gap pages (gaps.h).
#define MI_NO_SLOTS_OFFSET offsetof(mi_theap_t, no_slots)
// bin_offset of a page that is drained is this or more (drain.h).
#define MI_DRAINS_OFFSET   offsetof(mi_theap_t, drains)

// The drain that a class shares with others.
#define _mi_theap_drain(theap, cls) (&(theap)->drains[(cls) % MI_DRAINS])

// bin_offset of the page that the class's drain drains.
static inline size_t _mi_theap_drain_offset(size_t cls) {
  return MI_DRAINS_OFFSET + cls % MI_DRAINS * sizeof(mi_drain_t) + offsetof(mi_drain_t, bin);
}

mi_static_assert(sizeof(mi_bin_t) == (size_t)1 << MI_BIN_SHIFT, "the offset of a bin is 16 x its class");

// The theap from which malloc of the calling thread takes its blocks: its backing theap, unless the program has chosen
// another heap as the thread's default.  _mi_theap_none before its first allocation, _mi_theap_dead after its exit:
// all bins of these two are empty and no page has them as its home, so that malloc and free take the slow paths, which tell them apart.
extern MI_LOCAL(mi_theap_t*, _mi_theap_local);
#define _mi_theap_default mi_local(_mi_theap_local)
extern mi_theap_t _mi_theap_none;
extern mi_theap_t _mi_theap_dead;

// acquire: what was done before a thread got it happened before
static inline bool _mi_theap_is_live(const mi_theap_t* theap) {
  return mi_load_acquire(&theap->is_live);
}

// Makes its bins those of a new theap.
void _mi_theap_init(mi_theap_t* theap);

// A page that leaves its owner's hands names the bin of its class (drain.h, DR1).
static inline void _mi_theap_undrain(mi_page_t* page) {
  if (mi_unlikely(mi_load_relaxed(&page->bin_offset) >= MI_DRAINS_OFFSET))
    _mi_page_set_bin(page, (size_t)page->cls << MI_BIN_SHIFT);
}

static mi_always_inline mi_bin_t* _mi_theap_bin(mi_theap_t* theap, size_t bin_offset) {
  return (mi_bin_t*)(void*)((char*)theap + bin_offset);
}

// The fast path of malloc: takes the first block of a bin.  NULL if the bin is empty; in checked builds also if the block is the last
// one or its link was overwritten (_mi_theap_pop takes the last one).
//
// All threads without a theap change `slots` of the bins that they share (_mi_theap_none, _mi_theap_dead) at once; nobody reads it.
static mi_always_inline void* _mi_theap_pop_fast(mi_theap_t* theap, size_t bin_offset) {
  mi_bin_t*   bin = _mi_theap_bin(theap, bin_offset);
  mi_block_t* next;
  if (MI_TSAN && bin->head == NULL) return NULL;
  bin->slots++; // H1
  mi_compiler_fence();
  mi_block_t* block = bin->head;
  if (mi_unlikely(block == NULL || !_mi_block_next_fast(block, &next))) {
    bin->slots--;
    return NULL;
  }
  bin->head = next;
  return block;
}

// The same for the slow path: NULL only if the bin is empty.
static inline mi_block_t* _mi_theap_pop(mi_theap_t* theap, size_t cls) {
  mi_bin_t* bin = &theap->bins[cls];
  bin->slots++; // H1
  mi_compiler_fence();
  mi_block_t* block = bin->head;
  if (block != NULL) bin->head = _mi_page_next_block(block);
  else bin->slots--;
  return block;
}

// The fast path of free: pushes a block.  False if the bin has no slots.
static mi_always_inline bool _mi_theap_push(mi_bin_t* bin, mi_block_t* block) {
  int32_t slots = bin->slots - 1;
  if (mi_unlikely(slots < 0)) return false;
  bin->slots = slots; // H1
  mi_compiler_fence();
  _mi_block_set_next(block, bin->head);
  bin->head = block;
  return true;
}

// Other threads may read a counter at any time, but only one thread changes it.
static inline void _mi_theap_count(mi_theap_t* theap, mi_theap_count_t what, size_t n) {
  mi_store_relaxed(&theap->counts[what], mi_load_relaxed(&theap->counts[what]) + n);
}

// H8: a page of the class has another home from now on, or none.
static inline void _mi_theap_count_left(mi_theap_t* home, size_t cls) {
  mi_fetch_add_relaxed(&home->left.n[cls], 1u);
  mi_store_relaxed(&home->left.any, true);
}

// The heap that the theap serves.  That heap may end at any time, and the theap serves the main heap then (heap.h, Q8).
static inline mi_heap_t* _mi_theap_heap(const mi_theap_t* theap) {
  return mi_load_acquire(&((mi_theap_t*)theap)->heap);
}

// The backing theap of the calling thread, NULL if it has none (yet, or any more).
static mi_always_inline mi_theap_t* _mi_theap_backing(void) {
  return mi_load_relaxed(&_mi_theap_default->thread);
}
