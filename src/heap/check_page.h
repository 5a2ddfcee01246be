// Heap consistency check of pages, and what both parts of the check share.  Layer: heap.  See check.h.
#pragma once

#include "view.h"

typedef struct mi_check_s {
  const mi_heap_t* heap; // NULL: all
  mi_faults_t      faults;
  // Pages by what they say, and those in lists: as many.
  size_t           n_owned, n_queued;
  size_t           n_shared, n_pooled;
  size_t           n_in_heaps, n_listed; // not of the main heap
  bool             has_unsettled;        // some bin cannot be looked at: nobody knows all free blocks
  size_t           n_overflows;          // faults that say nothing of our own data
  mi_view_t        view;
} mi_check_t;

static inline bool _mi_check_page_that(mi_check_t* c, bool is_so, const char* otherwise, const void* at,
                                       const mi_page_t* page) {
  if (!is_so) _mi_view_add_fault(&c->faults, otherwise, at, page);
  return is_so;
}

static inline bool _mi_check_page_wants(const mi_check_t* c, const mi_heap_t* heap) {
  return c->heap == NULL || c->heap == heap;
}

// Faults of the program's, in blocks that it has.
extern const char _mi_check_page_overflow[];
extern const char _mi_check_page_margin[];

// Can what lies there be read as such?
bool _mi_check_page_is_theap(const mi_theap_t* theap);
bool _mi_check_page_is_heap(const mi_heap_t* heap);
bool _mi_check_page_is_page(const mi_page_t* page);

// All pages of the regions.
void _mi_check_page_all(mi_check_t* c);
