// The gaps that a theap has: lists of gaps by size, and loose gaps, which are in no list yet.  Layer: heap.
//
//   a page     |aaaa| gap |bb|loose|loose|cc| gap |loose|dddd|
//   joined     |aaaa| gap |bb|    gap    |cc|    gap    |dddd|
//
// GL1  A gap of a page that the theap owns is in the list for its size, or it is *loose*: then its page's map has a bit for it, and the
//      page is in the list of pages with loose gaps, which begins with the page that has had some for the longest time.
// GL2  Two gaps meet only if one of them is loose.
// GL3  A freed block is a loose gap at first, which costs little.  All loose gaps of a page are joined at once, with each other and with
//      the gaps next to them.
#pragma once

#include "gap_map.h"

#define MI_GAP_LISTS 64 // of which gap_list_index uses 61

// A gap, while it is in a list.
typedef struct mi_gap_s {
  struct mi_gap_s* next;
  struct mi_gap_s* prev;
} mi_gap_t;

// The gaps of a theap.
typedef struct mi_gaps_s {
  mi_gap_t*     lists[MI_GAP_LISTS]; // by size
  uint64_t      nonempty;            // bit i: lists[i] is
  mi_gap_map_t* first;
  mi_gap_map_t* turn;        // of the next page that _mi_gaps_collect looks at; NULL: the first
  mi_gap_map_t* first_loose; // GL1
  mi_gap_map_t* last_loose;
  size_t        n_pages;
  size_t        n_free;  // units in gaps that are in lists
  size_t        n_quiet; // frees since the last request that no gap served (gaps.h, GP7)
} mi_gaps_t;

// A gap of n units that begins at unit `first`, and where in it a block can begin.
typedef struct mi_gap_place_s {
  mi_gap_t*     gap;
  mi_gap_map_t* map;
  size_t        first, n, at;
} mi_gap_place_t;

static inline mi_gap_t* _mi_gap_list_at(const mi_gap_map_t* map, size_t i) {
  return (mi_gap_t*)(void*)(_mi_page_start(map->page) + i * MI_GAP_UNIT);
}

void _mi_gap_list_put(mi_gaps_t* gaps, mi_gap_t* gap, size_t n);
void _mi_gap_list_pull(mi_gaps_t* gaps, mi_gap_t* gap, size_t n);

// A gap in a list for a block of n units that begins at a multiple of `align` units; false if none is found.
bool _mi_gap_list_search(const mi_gaps_t* gaps, size_t n, size_t align, mi_gap_place_t* place);

// The block at p becomes a loose gap.  False if there is none.  For this and the next one `gaps` may be NULL: those of the page are in no
// lists.
bool _mi_gap_list_loosen(mi_gaps_t* gaps, mi_gap_map_t* map, const void* p);

// Joins the loose gaps of a page that is not in the list of those.  Returns how many runs it has made.
size_t _mi_gap_list_join(mi_gaps_t* gaps, mi_gap_map_t* map);

// The same for the page that has some for the longest time; 0 if none has.
size_t _mi_gap_list_join_oldest(mi_gaps_t* gaps);

// A page whose gaps are in no lists, none of them loose; and one with no blocks.
void _mi_gap_list_enter_page(mi_gaps_t* gaps, mi_gap_map_t* map);
void _mi_gap_list_leave_page(mi_gaps_t* gaps, mi_gap_map_t* map);
