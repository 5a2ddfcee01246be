// A thread's part of a heap: its bins, its pages, its outbox.  Layer: heap.
//
//   malloc:  bin  <--refill--  page's free list | chain of others' frees | new blocks  <--  pool | arena
//   free:    bin, while it has room  --overflow-->  the block's page (ours)  |  outbox (not ours)  --batch-->  page word
//
// H1  bins are touched by their thread without any mark: they are the fast path.  Each change of a bin begins with `slots`, so
//     that who takes bins away from a thread can tell whether it is in the middle of one (heap/idle.h).
// H2  All else of a theap (queues, outbox, quarantine, plain fields of its pages) is touched between enter and leave only,
//     by its thread, or by whoever has revoked it (heap/idle.h): a sleeping thread cannot keep what it does not use.
// H3  slots = max(limit, blocks that the bin was filled with) - (blocks in the bin), so that the bin never holds more than
//     it got or has room for.
// H4  A page that is OWNED by a theap is in its class's `queue` or, with MI_PAGE_IS_FULL, in its `full`.
// H5  A theap's memory is never given back, only used again, and for the same heap as long as a page may have it as its
//     home (heap/heap.h, Q3): an old pointer to one in `home` does no harm.
// H6  `thread` is the backing theap of the thread that has this one (its own address in a backing theap): the identity of
//     that thread.  NULL while no thread has it.  Only its thread finds itself there.
// H7  Outside of slow paths, slots + (blocks in the bin) is the `total` of the class.
#pragma once

#include "../page/page.h"
#include "directory.h"

typedef struct mi_subproc_s mi_subproc_t;
typedef struct mi_sampler_s mi_sampler_t;

typedef struct mi_bin_s {
  mi_block_t* head;
  int32_t     slots;
  int32_t     limit;
} mi_bin_t;

typedef struct mi_page_list_s {
  mi_page_t* first;
  mi_page_t* last;
  size_t     count;
} mi_page_list_t;

typedef struct mi_class_state_s {
  mi_page_list_t queue;      // pages that had room when last seen; refill begins with the first
  mi_page_list_t full;       // pages that had none
  int32_t        slots_seen; // the bin's `slots` when it was last looked at
  uint32_t       n_unused;   // looks in a row that found that nothing was taken from it
  uint32_t       n_fills;    // how often the bin was filled, up to a maximum
  uint32_t       n_pages;    // made by this theap and not given back by it: how far the class has grown
  int32_t        total;      // H7
  uint32_t       epoch;      // of the last time that the bin was filled
  int32_t        slots_then; // the bin's `slots` when the thread looked the last time whether it still uses the class
  // Of a bin that was taken away (heap/idle.h, V3):
  int32_t        slots_taken;
  mi_block_t*    taken;
} mi_class_state_t;

// Blocks of one page that others own, on their way back to it.
typedef struct mi_batch_s {
  mi_page_t*  page; // NULL: closed
  mi_block_t* first;
  mi_block_t* last;
  uint32_t    count;
  uint32_t    limit; // of its class
} mi_batch_t;

// Where the thread of a theap is (H2).
typedef enum mi_presence_e { MI_THEAP_OUTSIDE, MI_THEAP_INSIDE } mi_presence_t;

// How far others are with taking from it what its thread does not use (heap/idle.h).
typedef enum mi_revoked_e {
  MI_THEAP_FREE,
  MI_THEAP_ASKED,   // it will be taken from unless its thread comes by
  MI_THEAP_CLOSED,  // the same; its bins have been closed
  MI_THEAP_HELD,    // somebody is at it
  MI_THEAP_AWAITED, // ... and its thread waits for that
  MI_THEAP_EMPTIED  // it was taken from
} mi_revoked_t;

#define MI_QUARANTINE_SIZE (MI_HARDENED ? 64 : 1)

#define MI_OUTBOX_SIZE 16 // open batches; snmalloc's and our own measurements agree that a few suffice

// What a theap counts for the statistics (H2); never set back, not even for its next thread (heap/heap_stats.h).
typedef enum mi_theap_count_e {
  MI_COUNT_LARGE_REUSED, // large blocks that were kept and are used again; of a backing theap, by its thread only
  MI_COUNT_SEARCHES,     // how often no page of a class was known to have room
  MI_COUNT_SEARCHED,     // pages looked at then
  MI_COUNT_PARKED,       // full pages
  MI_COUNT_CLAIMED,      // pages that became its own by a free
  MI_THEAP_COUNTS
} mi_theap_count_t;

// Where a thread looks for its theap of a heap first: at the lowest bits of the heap's id.
typedef mi_directory_entry_t mi_theap_cached_t;

#define MI_THEAP_CACHE_SIZE 8 // a power of two

struct mi_theap_s {
  mi_bin_t               bins[MI_CLASS_COUNT]; // first: the offset of a bin counts from here
  mi_atomic(mi_theap_t*) thread;               // H6
  mi_atomic(uint32_t)    presence;             // mi_presence_t
  mi_atomic(uint32_t)    revoked;              // mi_revoked_t
  mi_atomic(bool)        is_closed;            // its bins were closed by others; set under _mi_idle_lock
  bool                   has_deleted;          // pages were given back since the last look at the purge policy
  bool                   has_trimmed;          // ... and bins were looked at
  uint32_t               epoch;        // of the last look at what its thread does not use any more (heap/idle.h)
  uint32_t               n_slow_frees; // counts to the next look at unused bins
  uint32_t               n_trims;      // ... and which are next
  uint32_t               n_slow;       // slow mallocs: the heartbeat of deferred frees; its own thread only
  mi_atomic(mi_page_t*)  kept_large;   // a large block that the thread freed last (heap/large.c, L3)
  mi_atomic(size_t)      kept_allowed; // slices that may be kept
  const mi_page_t*       kept_seen;    // in the last round: that block, and how often one had been used again
  uint64_t               n_reused_seen;
  // Of a backing theap only:
  mi_theap_cached_t      cache[MI_THEAP_CACHE_SIZE]; // of its own thread
  mi_directory_t         directory;                  // the other theaps of the thread, but for those that are retired
  mi_subproc_t*          subproc;                    // written by its own thread, under the registry lock
  mi_atomic(bool)        has_retired;                // `retired` is not empty
  bool                   is_watched;                 // heap/ended.h: this and what follows
  mi_prim_life_t         life;
  mi_theap_t*            ended_next;
  mi_theap_t*            ended_prev;
  mi_theap_t*            retired; // first of the thread's theaps whose heap has ended
  // Under the registry lock (heap/thread.c).  An `at` is what points to the theap in the list that has it.
  mi_atomic(mi_heap_t*)  heap;      // NULL: of none; read by its thread without the lock
  mi_heap_t*             ended;     // which it served before, and which is not used again until then (heap.h, Q8)
  uint64_t               heap_id;   // of the heap for which its thread got it
  mi_theap_t*            heap_next; // among the theaps of the heap
  mi_theap_t**           heap_at;
  mi_theap_t*      thread_next; // the other theaps of the thread, beginning with the backing theap; or the retired ones
  mi_theap_t**     thread_at;
  mi_theap_t*      next;                           // in the registry
  uint64_t         vacant_since;                   // how many theaps had become vacant then (heap/vacant.h, V4)
  uint64_t         seen_round;                     // when it was last not vacant, or seen to be a home (heap/vacant.c)
  mi_atomic(bool)  is_live;                        // a thread has it
  bool             is_late;                        // threads past their exit share it
  bool             is_orphan;                      // its thread did not survive a fork
  mi_block_t*      quarantine[MI_QUARANTINE_SIZE]; // of a backing theap (heap/quarantine.h)
  uint64_t         quarantine_random;
  mi_class_state_t classes[MI_CLASS_COUNT];
  mi_batch_t       outbox[MI_OUTBOX_SIZE];
  mi_atomic(uint64_t) counts[MI_THEAP_COUNTS];
  mi_sampler_t*       sampler; // of its own thread; NULL: it never needed one (heap/sampler.h)
};

mi_static_assert(sizeof(mi_bin_t) == (size_t)1 << MI_BIN_SHIFT, "the offset of a bin is 16 x its class");

// The theap from which malloc of the calling thread takes its blocks: its backing theap, unless the program has chosen
// another heap as the thread's default.  _mi_theap_none before its first allocation, _mi_theap_dead after its exit:
// all bins of those are empty and no page has them as its home, so that both take the slow paths, which tell.
extern mi_thread_local mi_theap_t* _mi_theap_default;
extern mi_theap_t                  _mi_theap_none;
extern mi_theap_t                  _mi_theap_dead;

extern mi_atomic(size_t) _mi_thread_count;      // threads that have a theap
extern mi_atomic(bool)   _mi_thread_has_others; // there is, or was, more than one of them

// How many reasons there are for slow mallocs to look closer: orphans of a fork to adopt (heap/fork.h), blocks to guard
// (heap/sampler.h).  So they test one word, which is nearly always 0.  Blocks to guard count one each, orphans
// MI_NOTICE_OTHER.
extern mi_atomic(uint32_t) _mi_theap_notices;

#define MI_NOTICE_OTHER (1u << 24)

static inline bool _mi_theap_is_sampled(uint32_t notices) {
  return notices % MI_NOTICE_OTHER != 0;
}

// A bin takes so many blocks of a page when it is filled for the first time, then twice as many each time, and soon all
// there are: what a bin holds when its thread ends has to be given back block by block, so a thread that uses few blocks
// should not get many.
#define MI_THEAP_FILL_FIRST 8

// ---- touching a theap (H2) ------------------------------------------------------------------------------------------

// An asymmetric lock: two plain stores and a load for the thread itself; the other side pays by waiting.  The compiler fence
// keeps the store before the load in the program; the processor's reordering of the two is over when the other side has
// waited (heap/idle.h, V2).
static mi_always_inline bool _mi_theap_try_enter(mi_theap_t* theap) {
  mi_store_relaxed(&theap->presence, (uint32_t)MI_THEAP_INSIDE);
  if (MI_TSAN) mi_fence_seq_cst();
  else mi_compiler_fence();
  // acquire: what the other side did to our pages happened before
  return mi_likely(mi_load_acquire(&theap->revoked) == MI_THEAP_FREE);
}

static mi_always_inline void _mi_theap_leave(mi_theap_t* theap) {
  mi_store_release(&theap->presence, (uint32_t)MI_THEAP_OUTSIDE); // release: the other side sees what we did
}

mi_cold void _mi_theap_wait_revoked(mi_theap_t* theap); // after a failed try; enters

static inline void _mi_theap_enter(mi_theap_t* theap) {
  if (!_mi_theap_try_enter(theap)) _mi_theap_wait_revoked(theap);
}

// acquire: what was done before a thread got it happened before
static inline bool _mi_theap_is_live(const mi_theap_t* theap) {
  return mi_load_acquire(&theap->is_live);
}

static mi_always_inline mi_bin_t* _mi_theap_bin(mi_theap_t* theap, size_t bin_offset) {
  return (mi_bin_t*)(void*)((char*)theap + bin_offset);
}

// The first block of a bin: the fast path of malloc.  NULL if it is empty; or, in checked builds, if the block is the last
// or its link was overwritten.
//
// `slots` of the bins that threads without a theap share is changed by all of them at once; it is read by nobody.
static mi_always_inline void* _mi_bin_pop_fast(mi_bin_t* bin) {
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

// The same in all cases; NULL if it is empty.
static inline void* _mi_bin_pop(mi_bin_t* bin) {
  bin->slots++; // H1
  mi_compiler_fence();
  mi_block_t* block = bin->head;
  if (block != NULL) bin->head = _mi_block_next(block);
  else bin->slots--;
  return block;
}

// Others read it at any time, but only one counts.
static inline void _mi_theap_count(mi_theap_t* theap, mi_theap_count_t what, size_t n) {
  mi_store_relaxed(&theap->counts[what], mi_load_relaxed(&theap->counts[what]) + n);
}

// The heap that the theap serves; it may end at any time, and be the main one then (heap.h, Q8).
static inline mi_heap_t* _mi_theap_heap(const mi_theap_t* theap) {
  return mi_load_acquire(&((mi_theap_t*)theap)->heap);
}

// The backing theap of the calling thread, NULL if it has none (yet, or any more).
static mi_always_inline mi_theap_t* _mi_theap_backing(void) {
  return mi_load_relaxed(&_mi_theap_default->thread);
}

// ---- the slow paths of malloc and free ------------------------------------------------------------------------------
// That they throw nothing is said where fast paths end with them: as C++ these would else need a frame.

void _mi_theap_init(mi_theap_t* theap);

// A block of the class, when its bin is empty; the rest of what was found goes into the bin.  *is_zero: all of the block
// but its first word is zero.  NULL: out of memory.
void* _mi_theap_refill(mi_theap_t* theap, size_t cls, bool* is_zero);

// The rest of a free, after enter: up to leaving.
void         _mi_theap_free_slow(mi_theap_t* theap, mi_page_t* page, mi_block_t* block) mi_attr_noexcept;
// The same, when the block has been pushed to its page.
void         _mi_theap_free_trim(mi_theap_t* theap, mi_page_t* page) mi_attr_noexcept;
// The same as slow, after a failed try to enter.
mi_cold void _mi_theap_free_revoked(mi_theap_t* theap, mi_page_t* page, mi_block_t* block) mi_attr_noexcept;

// Frees a block of a page whose home is another theap.
void _mi_theap_free_remote(mi_theap_t* theap, mi_page_t* page, void* p) mi_attr_noexcept;

// The same for a thread that has no theap.
void _mi_page_free_remote(mi_page_t* page, void* block);

// Leaves, and then does what is left to do: purge policy, sleeping owners.
void _mi_theap_leave_slow(mi_theap_t* theap);

// Gives up all that the theap holds; for its own thread.
void _mi_theap_release(mi_theap_t* theap);

// ---- parts; between enter and leave ---------------------------------------------------------------------------------

void _mi_theap_page_enqueue(mi_theap_t* theap, mi_page_t* page);
void _mi_theap_page_delete(mi_theap_t* theap, mi_page_t* page);

// Is the page OWNED by this theap?  The order of the two loads matters (P4).
static inline bool _mi_theap_owns(const mi_theap_t* theap, mi_page_t* page) {
  if (_mi_page_word_state(mi_load_acquire(&page->word)) != MI_PAGE_OWNED) return false;
  return mi_load_relaxed(&page->home) == theap;
}

// An orphan of a fork, whose pages are taken care of, becomes an empty theap again that nobody has.  Under the registry lock.
void _mi_theap_forget(mi_theap_t* theap);

// Lets go of all pages: empty ones go back, full ones are parked, the rest is shared.
void _mi_theap_release_pages(mi_theap_t* theap);

// The same for one class, of at most *n pages; *n is less those.
void _mi_theap_release_class(mi_theap_t* theap, size_t cls, size_t* n);

// For a class that is in use: looks at up to *n pages, in turn, for what others have freed there; empty ones go back, full ones
// are parked; *n is less those.
void _mi_theap_collect_class(mi_theap_t* theap, size_t cls, size_t* n);

// Gives all blocks of a bin, or of a list that was one, back to their pages.
void _mi_theap_flush_bin(mi_theap_t* theap, size_t cls);
void _mi_theap_give_back_list(mi_theap_t* theap, mi_block_t* first);

// Deletes the class's last page with room if it is empty.
void _mi_theap_delete_empty(mi_theap_t* theap, size_t cls);

void _mi_outbox_add(mi_theap_t* theap, mi_page_t* page, mi_block_t* block);

static mi_always_inline mi_batch_t* _mi_outbox_batch(mi_theap_t* theap, const mi_page_t* page) {
  return &theap->outbox[((uintptr_t)page / MI_DESCRIPTOR_SIZE) % MI_OUTBOX_SIZE];
}

static mi_always_inline void _mi_outbox_link(mi_batch_t* batch, mi_block_t* block) {
  mi_block_set_next(block, batch->first);
  batch->first = block;
  batch->count++;
}

void _mi_outbox_flush(mi_theap_t* theap);

// ---- a free into a bin that is full -----------------------------------------------------------------------------------

// After about so many frees that do not go to a bin (a power of two) the bins of some other classes are looked at: when the
// count of a page's used blocks is a multiple of it, and at every so manieth free into pages of others.
#define MI_THEAP_FREES_PER_TRIM 32

// Frees a block of a page whose home is this theap, when its bin has no room.
//
// The fast path of a tear-down: nothing is called but in tail position.  The page's counter serves as the clock for
// looks too: an empty page is one of the occasions, so that one test does for both.  Most pages have one slice: a jump
// that is foreseen lets what follows begin before `back` is loaded (docs/decisions/006).
static mi_always_inline void _mi_theap_free_overflow(mi_theap_t* theap, mi_page_t* page, mi_block_t* block) {
  if (mi_unlikely(page->to_first != 0)) page -= page->to_first;
  if (mi_unlikely(!_mi_theap_try_enter(theap))) {
    _mi_theap_free_revoked(theap, page, block);
    return;
  }
  mi_block_t* first;
  if (mi_unlikely(!_mi_theap_owns(theap, page) ||
                  (first = page->free) == NULL)) { // NULL: it may be among the full pages
    _mi_theap_free_slow(theap, page, block);
    return;
  }
  size_t used = _mi_page_push_free(page, block, first);
  if (mi_likely(used % MI_THEAP_FREES_PER_TRIM != 0)) _mi_theap_leave(theap);
  else _mi_theap_free_trim(theap, page);
}

// Frees a block of a page whose home is this theap, of the calling thread.  `page` may be the descriptor of the block's own
// slice.
static mi_always_inline void _mi_theap_free_local(mi_theap_t* theap, mi_page_t* page, void* p) {
  mi_bin_t*   bin = _mi_theap_bin(theap, page->bin_offset);
  mi_block_t* block = (mi_block_t*)p;
  int32_t     slots = bin->slots - 1;
  if (mi_likely(slots >= 0)) {
    bin->slots = slots; // H1
    mi_compiler_fence();
    mi_block_set_next(block, bin->head);
    bin->head = block;
    return;
  }
  _mi_theap_free_overflow(theap, page, block);
}
