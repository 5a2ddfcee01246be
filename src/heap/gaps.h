// Pages whose free memory is kept as gaps: blocks of several classes lie next to each other there.  Layer: heap.
//
//   page of one class   |aaa|   |   |aaa|   |aaa|        most blocks are free, and no use to other classes
//   gap page            |aaa|bbbbbb||aaa|gap|aaa|        what is free is one gap; blocks of any class that fit are made of it
//
// A page that holds few blocks, of a class that does not grow, becomes a gap page (sparse.h) and stays one until it is empty.
//
// GP1  A gap page is cut into runs of units of 16 bytes.  A bit for each unit says whether a run begins there, and another
//      whether that run is a block.  A block has the size of its class, and the alignment that all blocks of its class have.
// GP2  Only the owner of the page changes the bits.  The bits at both ends of a block stay as they are while the block is in use, so
//      that whoever has the block may read them at any time.
// GP3  `free` is NULL and bin_offset is that of a bin without slots, so that each free by the owner ends in _mi_free_slow.
//      `extended` is the number of the page's map, `used` counts its blocks, block_size is 0.
// GP4  While a gap page is OWNED, its gaps are in the lists of its theap, and the page is in no queue.  It is never PARKED.  While it is
//      SHARED, it is in a pool's list of gap pages.  Its `capacity` is MI_GAP_CAPACITY, however many blocks it has.  The count in its word
//      is that capacity less the number of blocks in use, so that the free of the last block claims the page.  No page of a class reaches
//      so high a count: a thread that frees reads the word and then `capacity`, and cannot take the capacity that the page had before it
//      became a gap page for the one after.
// GP5  All gap pages are of the main heap.
// GP6  The free of an address that is no block is found between enter and leave, where it cannot be reported: the program's handler may
//      allocate.  It is reported at the end of that slow free, or, if something else or a round has found it, of the next one.
// GP7  As long as requests come that gaps do not serve, each freed block becomes a gap, so that it can be joined with its neighbours to
//      larger ones.  When there were MI_GAP_QUIET frees for each gap page without such a request, the program's sizes have stopped
//      drifting: then freed blocks go to the bin of their class while that has slots, because making gaps of them and cutting blocks out
//      of gaps costs several times as much.
// GP8  A freed block is a loose gap at first (gap_list.h).  Each request that gaps are to serve joins the loose gaps of a few pages; if no
//      gap serves it, those of more pages, up to MI_GAP_JOINS runs.  A page that no theap owns has no loose gaps.
#pragma once

#include "gap_list.h"
#include "queue.h"

#define MI_GAP_CHAIN    8 // blocks that are cut at a time
#define MI_GAP_CAPACITY ((uint16_t)MI_WORD_COUNT_MAX)
#define MI_GAP_QUIET    64
#define MI_GAP_JOINS \
  1024 // some 60 instructions for each block that was freed; what is left is joined by the next requests

// Builds that check blocks, and builds for tools, have no gap pages: the checks and the tools know a block's size by its class.
#define MI_GAPS (!MI_CHECKED && !MI_PADDING && !MI_TRACK && !MI_TAGS)

static inline bool _mi_gaps_is(const mi_page_t* page) {
  return MI_GAPS && mi_unlikely(_mi_page_kind(page) == MI_PAGE_GAPS);
}

// Can blocks of the class lie in a gap page?
static inline bool _mi_gaps_fits(size_t cls) {
  const mi_class_info_t* info = &_mi_size_class_info[cls];
  return MI_GAPS && info->n_slices == 1 && info->block_size % MI_GAP_UNIT == 0;
}

// The size of the block at p, 0 if there is none.
size_t _mi_gaps_size(const mi_page_t* page, const void* p);

// For those who look from outside: the blocks that other threads have freed and the owner has not seen.
mi_chain_t _mi_gaps_chain(const mi_page_t* page);

// The next block at unit *at or later, of `size` bytes; false if there is none.
bool _mi_gaps_next(const mi_page_t* page, size_t* at, size_t* size);

// ---- between enter and leave, by the owner ------------------------------------------------------------------------------

// May a page of the theap's queue become a gap page?
bool _mi_gaps_can_make(const mi_theap_t* theap, mi_page_t* page);

// Makes it one, if that is possible and there is a map for it.
bool _mi_gaps_make(mi_theap_t* theap, mi_page_t* page);

// Blocks of a class out of gaps; none if no gap fits.
mi_chain_t _mi_gaps_take(mi_theap_t* theap, size_t cls);

// A block of a page that the theap owns is free.
void _mi_gaps_free(mi_theap_t* theap, mi_page_t* page, mi_block_t* block);

// Takes the blocks that other threads have freed in up to n pages, in turn.
void _mi_gaps_collect(mi_theap_t* theap, size_t n);

// The page was just adopted from a pool: its gaps go to the theap's lists.  False: the page is shared again.
bool _mi_gaps_adopt(mi_theap_t* theap, mi_page_t* page);

// Lets go of all gap pages of the theap.
void _mi_gaps_release(mi_theap_t* theap);

// GP6: the address that is to be reported, once; NULL: nothing is.
const void* _mi_gaps_wrong_free(mi_theap_t* theap);

// ---- else ---------------------------------------------------------------------------------------------------------------

// A page that the caller has CLAIMED from a pool becomes a gap page, if it is none yet; its gaps are in no list.  Returns its map; NULL
// without any change if there is no memory for a map.
mi_gap_map_t* _mi_gaps_claimed(mi_page_t* page);
// Shares it again; or gives it back, if others have freed its last block.
void          _mi_gaps_share_claimed(mi_page_t* page);

// Makes a gap page without blocks, which the caller holds, an ordinary page that can be deleted.
void _mi_gaps_unmake(mi_page_t* page);

// GP6: reports it, outside of enter and leave.
mi_cold void _mi_gaps_report(const void* wrong_free);

// In the child of a fork.  As _mi_gaps_unmake, for a page that was claimed by a thread which the child does not have: nobody knows whether
// that thread has given back the page's map.
void _mi_gaps_lose(mi_page_t* page);
// In the child of a fork: the theap has no gap pages any more, and nobody owns the page any more.
void _mi_gaps_forget(mi_theap_t* theap);
// Goes to the pool: what its bits call a block is in use, but for its chain, and all else is free.  False if it has no blocks.
bool _mi_gaps_orphan(mi_page_t* page);

// Do its bits agree with what it counts?
bool _mi_gaps_is_valid(const mi_page_t* page);
