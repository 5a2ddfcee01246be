// Views of pages, for those who look at them from outside: which blocks are live.  Layer: heap.
//
// A block is free when it was not made yet, is on its page's list or on the chain of the page's word, or waits in a bin, in
// an outbox or in a quarantine.  All others are live: the program has them.
//
// VW1  A view is a copy: whoever looks at one holds no lock.
// VW2  A link is followed only to where a block of the same page or bin can be.  So if somebody uses the heap meanwhile, or
//      has written into free blocks, a view may be wrong, but making it does no harm.
// VW3  The fields of a page are read once, and the view is made of these values: the page's thread may be making it a gap page at this
//      moment, or giving it back.
#pragma once

#include "gaps.h"
#include "waiting.h"
#include "walk.h"

// ---- faults ------------------------------------------------------------------------------------------------------

#define MI_FAULTS_KEPT 16

// A fault: `what` is wrong `at` a place, in a page or (NULL) elsewhere.
typedef struct mi_damage_s {
  const char*      what;
  const void*      at;
  const mi_page_t* page;
  size_t           block_size; // of the page; 0: one large block
} mi_damage_t;

// Faults are kept until no lock is held and they can be reported: the program's handler may allocate.
typedef struct mi_faults_s {
  size_t      n; // of which the first MI_FAULTS_KEPT are kept
  mi_damage_t kept[MI_FAULTS_KEPT];
} mi_faults_t;

// Adds a fault if `is_so` is false; `faults` may be NULL.  Returns is_so.
bool _mi_view_holds(mi_faults_t* faults, bool is_so, const char* otherwise, const void* at, const mi_page_t* page);

// ---- blocks ---------------------------------------------------------------------------------------------------------

typedef struct mi_view_s {
  const mi_page_t* page;
  mi_heap_t*       heap;
  char*            start;       // of the first block
  size_t           cls;         // MI_CLASS_NONE: one large block
  size_t           block_size;  // of a gap page, its unit: a block is where it begins
  size_t           usable_size; // of that, the program's
  size_t           n_blocks;    // 0: the page fits no size class, or is just being given back
  size_t           n_made;
  size_t           n_live;
  bool             is_shared; // any thread may adopt it
  mi_theap_t*      home;      // NULL: one large block, or the page waits, or is being given back
  bool             has_gaps;  // it is a gap page; the second half of `free` says where its runs begin (gaps.h)
  uint64_t         free[MI_PAGE_BLOCKS_MAX / 64]; // bit i: block i is free
} mi_view_t;

static inline bool _mi_view_is_live(const mi_view_t* view, size_t i) {
  return ((view->free[i / 64] >> (i % 64)) & 1) == 0;
}

// What the program has of block i.
size_t _mi_view_block_size(const mi_view_t* view, size_t i);

// A view of a page; caller holds the registry lock and the arena lock.  `waiting`: the table of what waits (waiting.h), or 0.
void _mi_view_make(mi_view_t* view, mi_page_t* page, uint64_t waiting, mi_faults_t* faults);

// A view of the next page.  At the end of the process there may be no more (idle.h).
bool _mi_view_next(mi_walk_t* walk, mi_view_t* view);

// Ends a walk before its end.
void _mi_view_end(mi_walk_t* walk);
