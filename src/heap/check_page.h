// Heap consistency check of pages, and what both parts of the check share.  Layer: heap.  See check.h.
#pragma once

#include "view.h"

// What a page is in a list of.
typedef enum mi_check_list_e { MI_CHECK_QUEUE, MI_CHECK_POOL, MI_CHECK_HEAP, MI_CHECK_LISTS } mi_check_list_t;

typedef struct mi_check_s {
  const mi_heap_t* heap; // NULL: all
  mi_faults_t      faults;
  size_t           n_said[MI_CHECK_LISTS]; // pages that say they are in such a list, and those that were found in one:
  size_t           n_listed[MI_CHECK_LISTS]; // as many (CH3)
  bool             has_unsettled;            // some bin cannot be looked at: nobody knows all free blocks
  size_t           n_overflows;              // faults that say nothing of our own data
  uint64_t         waiting;                  // the table of what waits (waiting.h)
  mi_view_t        view;
} mi_check_t;

// Returns is_so; otherwise it is a fault `at` a place, in a page (or NULL).
#define MI_CHECK(c, is_so, otherwise, at, page) _mi_view_holds(&(c)->faults, is_so, otherwise, at, page)

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
