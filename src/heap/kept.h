// The large blocks that a thread keeps for its next requests.  Layer: heap.
//
// KE1  Each thread has a set of kept blocks.  Whoever touches a set takes it first, with one exchange.  If somebody else has taken it, the
//      thread does without it, so that nobody waits for others in malloc and free.
// KE2  The page of a kept block is CLAIMED, and in the list of its size: there are eight lists for each doubling.  A request looks at the
//      first page of its own list and of the next one that has any, and takes what is at most a quarter too large.
// KE3  Kept blocks count as free memory that is backed (arena/purge.h, PG2).  They have `n_allowed` less `n_room` slices.
// KE4  A thread that requests no large blocks keeps one block.  For each slice that it has requested in vain one more slice may be allowed,
//      up to MI_KEPT_SLICES: that is its credit.  None is allowed while the system refuses memory, because a region with a kept block
//      cannot be given back.
// KE5  A round takes away the blocks that were in the set at the round before already.  The allowed number becomes less by their slices,
//      and becomes zero if no kept block was used again in between.
// KE6  A request that no kept block fits gets the first part of a larger one, or takes as many slices out of the set as it is going to take
//      from the arena, where free neighbours are joined.  So the blocks that are kept and those in use are together never more than was
//      in use at one time.  Slices that have left the set for a block that will not come back to it are not allowed any more.
#pragma once

#include "../page/page.h"

#define MI_KEPT_SLICES_MIN 8
#define MI_KEPT_SLICES_MAX 64  // of one block: 4 MiB
#define MI_KEPT_SLICES     512 // of all blocks of a thread
#define MI_KEPT_LISTS      25

typedef struct mi_kept_s {
  mi_atomic(uint64_t) nonempty; // a bit for each list
  mi_atomic(size_t)   n_allowed;
  mi_atomic(size_t)   n_credit; // KE4; its thread adds to it, without taking the set
  mi_atomic(uint32_t) is_taken; // KE1; the rest belongs to whoever has taken it
  size_t              n_room;
  uint64_t            n_reused_seen; // at the last round: how often one had been used again
  mi_page_t*          lists[MI_KEPT_LISTS];
} mi_kept_t;

// Keeps a page.  Returns the page that is to be given back instead, this one or another; NULL if none is.
mi_page_t* _mi_kept_push(mi_kept_t* kept, mi_page_t* page);

// A page of n slices or up to a quarter more, NULL if there is none.
mi_page_t* _mi_kept_pop(mi_kept_t* kept, size_t n);

// There was none.  Returns pages that leave the set for the request, linked by `next` (KE6): one that is larger, or else several.
mi_page_t* _mi_kept_missed(mi_kept_t* kept, size_t n);

// Takes all pages, linked by `next`.  `is_own`: by its thread, which waits until nobody else is at the set, unless that
// one may never leave it: as the process ends, and while the thread forks.
mi_page_t* _mi_kept_take_all(mi_kept_t* kept, bool is_own);

// The same for a round, for pages that were there at the last one (KE5).  n_reused: how often a kept block was used again so far.
mi_page_t* _mi_kept_take_unused(mi_kept_t* kept, uint64_t n_reused);

// In the child of a fork, where no other thread is left that could be at the set: is the page in it?
bool _mi_kept_has(const mi_kept_t* kept, const mi_page_t* page);

// It is empty: the pages are lost, or somebody else's.
void _mi_kept_forget(mi_kept_t* kept);

// Is anything kept, or allowed to be?
static inline bool _mi_kept_any(const mi_kept_t* kept) {
  return mi_load_relaxed(&((mi_kept_t*)kept)->n_allowed) != 0;
}
