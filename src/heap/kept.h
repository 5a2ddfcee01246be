// The large blocks that a thread keeps for its next requests.  Layer: heap.
//
// KE1  Whoever touches a set takes it first, with one exchange.  Its thread does without if it is taken, so that nobody waits for
//      others in malloc and free.
// KE2  A page in it is CLAIMED, and in the list of its size: there are eight lists a doubling.  A request looks at the first page
//      of its own list and of the next one that has any, and takes what is at most a quarter too large.
// KE3  What is kept counts as free memory that is backed (arena/purge.h, PG2).  It is `n_allowed` less `n_room`.
// KE4  A thread that asks for none keeps one block.  More may be allowed for each slice that it asked for in vain, up to
//      MI_KEPT_SLICES: that is its credit.  None is allowed while the system refuses memory: a region with a block that is kept
//      cannot be given back.
// KE5  A round takes away what was in the set already at the one before.  What is allowed goes with it, and all of it if nothing
//      was used again in between.
// KE6  A request that nothing fits gets the first part of what is larger, or takes as much out of the set as it is going to take from
//      the arena, where free neighbours are joined.  So what is kept and what is in use are together never more than what was in
//      use at one time.  What has left the set for a block that will not come back to it is not allowed any more.
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

// Keeps a page.  Returns what is to be given back instead: it, or another one; NULL if nothing is.
mi_page_t* _mi_kept_push(mi_kept_t* kept, mi_page_t* page);

// A page of n slices or up to a quarter more, NULL if there is none.
mi_page_t* _mi_kept_pop(mi_kept_t* kept, size_t n);

// There was none.  Returns pages that leave the set for it, linked by `next` (KE6): one that is larger, or else several.
mi_page_t* _mi_kept_missed(mi_kept_t* kept, size_t n);

// Takes all pages, linked by `next`.  `is_own`: by its thread, which waits until nobody else is at the set, unless that
// one may never leave it: as the process ends, and while the thread forks.
mi_page_t* _mi_kept_take_all(mi_kept_t* kept, bool is_own);

// The same for a round, for those that were there at the last one (KE5).  One was used again so many times.
mi_page_t* _mi_kept_take_unused(mi_kept_t* kept, uint64_t n_reused);

// In the child of a fork, where no other thread is left that could be at the set: is the page in it?
bool _mi_kept_has(const mi_kept_t* kept, const mi_page_t* page);

// It is empty: the pages are lost, or somebody else's.
void _mi_kept_forget(mi_kept_t* kept);

// Is anything kept, or allowed to be?
static inline bool _mi_kept_any(const mi_kept_t* kept) {
  return mi_load_relaxed(&((mi_kept_t*)kept)->n_allowed) != 0;
}
