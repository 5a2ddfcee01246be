// Looking for what cannot be: check.c for theaps and heaps, check_page.c for pages.  Layer: heap.
//
// All locks are held meanwhile, so that nothing moves; what is found is kept and reported when they are released again.
// A pointer is followed only after it was seen to be one of those that can be there: a check survives what it looks for.
// The lists of theaps and of heaps as such are trusted: they lie where no block does.
#pragma once

#include "walk.h"

// Holds everything about a heap (NULL: about all) against the invariants, and reports what is wrong: EFAULT, each fault.
// True if nothing is.  No other thread may use the heap meanwhile.
bool _mi_check(mi_heap_t* heap);

// ---- inside ---------------------------------------------------------------------------------------------------------

typedef struct mi_check_s {
  const mi_heap_t* heap; // NULL: all
  mi_faults_t      faults;
  // Pages by what they say, and those in lists: as many.
  size_t           n_heap_links, n_queued;
  size_t           n_shared, n_pooled;
  size_t           n_in_heaps, n_listed; // not of the main heap
  bool             has_unsettled;        // some bin cannot be looked at: nobody knows all free blocks
  size_t           n_overflows;          // faults that say nothing of our own data
  mi_view_t        view;
} mi_check_t;

static inline bool _mi_check_that(mi_check_t* c, bool is_so, const char* otherwise, const void* at,
                                  const mi_page_t* page) {
  if (!is_so) _mi_faults_add(&c->faults, otherwise, at, page);
  return is_so;
}

static inline bool _mi_check_wants(const mi_check_t* c, const mi_heap_t* heap) {
  return c->heap == NULL || c->heap == heap;
}

// Faults of the program's, in blocks that it has.
extern const char _mi_check_overflow[];
extern const char _mi_check_margin[];

// Can what lies there be read as such?
bool _mi_check_is_theap(const mi_theap_t* theap);
bool _mi_check_is_heap(const mi_heap_t* heap);
bool _mi_check_is_page(const mi_page_t* page);

// All pages of the regions.
void _mi_check_pages(mi_check_t* c);
