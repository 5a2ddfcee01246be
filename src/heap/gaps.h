// Pages whose free memory is kept as gaps: blocks of several classes lie next to each other there.  Layer: heap.
//
//   page of one class   |aaa|   |   |aaa|   |aaa|        most blocks are free, and no use to other classes
//   gap page            |aaa|bbbbbb||aaa|gap|aaa|        what is free is one gap; blocks of any class that fit are made of it
//
// A page that holds few blocks of a class that does not grow becomes a gap page (sparse.h) and is one until it is empty.
//
// GP1  A gap page is cut into runs of units of 16 bytes.  A bit for each unit says whether a run begins there, and another
//      whether that run is a block.  A block has the size of its class, and the alignment that all blocks of its class have.
// GP2  Who owns the page changes the bits.  Those at both ends of a block stay as they are as long as the block is in use, so
//      that who has the block may read them at any time.
// GP3  `free` is NULL and bin_offset is that of a bin without slots, so that each free of the owner ends in _mi_free_slow.
//      `extended` is the number of its map, `used` counts its blocks, block_size is 0.
// GP4  While it is OWNED its gaps are in the lists of its theap, and it is in no queue.  It is never PARKED.  SHARED it is in the
//      pool of gap pages.  Its `capacity` is MI_GAP_CAPACITY, however many blocks it has, and the count of its word is that less
//      those, so that the free of the last one claims it.  No page of a class has so high a count: who frees reads the word, then
//      `capacity`, and never takes the one before the page became a gap page for the one after.
// GP5  All gap pages are of the main heap.
// GP6  A free of what is no block is found between enter and leave, where nobody may be told: who listens may allocate.  It is
//      reported at the end of that slow free, or of the next one if something else has found it, or a round.
// GP7  A freed block becomes a gap at once, so that it joins its neighbours for larger ones, as long as requests come that gaps do
//      not serve.  After MI_GAP_QUIET frees for each gap page without such a request sizes have stopped to drift, and blocks go
//      to the bin of their class while that has slots: to make gaps of them and cut blocks out of gaps costs several times as much.
// GP8  A freed block is a loose gap (gap_list.h).  Each request that gaps are to serve joins those of a few pages; if none serves it
//      goes on with others, up to MI_GAP_JOINS runs.  A page that its theap does not own has none that is loose.
#pragma once

#include "gap_list.h"
#include "queue.h"

#define MI_GAP_CHAIN    8 // so many blocks are made at a time
#define MI_GAP_CAPACITY ((uint16_t)MI_WORD_COUNT_MAX)
#define MI_GAP_QUIET    64
#define MI_GAP_JOINS \
  1024 // some 60 instructions for each block that was freed; what is left is joined by the next requests

// The bits of builds that check blocks are in the blocks, and tools know blocks by their classes: neither has gap pages.
#define MI_GAPS (!MI_CHECKED && !MI_PADDING && !MI_TRACK && !MI_TAGS)

static inline bool _mi_gaps_is(const mi_page_t* page) {
  return MI_GAPS && mi_unlikely(_mi_page_kind(page) == MI_PAGE_GAPS);
}

// Can blocks of the class lie in a gap page?
static inline bool _mi_gaps_fits(size_t cls) {
  const mi_class_info_t* info = &_mi_size_class_info[cls];
  return MI_GAPS && info->n_slices == 1 && info->block_size % MI_GAP_UNIT == 0;
}

// The bytes of the block p, 0 if there is none.
size_t _mi_gaps_size(const mi_page_t* page, const void* p);

// For those who look from outside: what others have freed and its owner has not seen.
mi_chain_t _mi_gaps_chain(const mi_page_t* page);

// The next block at unit *at or later, of `size` bytes; false if there is none.
bool _mi_gaps_next(const mi_page_t* page, size_t* at, size_t* size);

// ---- between enter and leave, by the owner ------------------------------------------------------------------------------

// Makes a page of the theap's queue one, if it can be.
bool _mi_gaps_make(mi_theap_t* theap, mi_page_t* page);

// Blocks of a class out of gaps; none if no gap fits.
mi_chain_t _mi_gaps_take(mi_theap_t* theap, size_t cls);

// A block of a page that the theap owns is free.
void _mi_gaps_free(mi_theap_t* theap, mi_page_t* page, mi_block_t* block);

// Takes what others have freed in up to n pages, in turn.
void _mi_gaps_collect(mi_theap_t* theap, size_t n);

// A page that was just adopted from a pool.  False: it is shared again.
bool _mi_gaps_adopt(mi_theap_t* theap, mi_page_t* page);

// Lets go of all.
void _mi_gaps_release(mi_theap_t* theap);

// GP6: what is to be reported, once; NULL: nothing.
const void* _mi_gaps_wrong_free(mi_theap_t* theap);

// ---- else ---------------------------------------------------------------------------------------------------------------

// A page that the caller has CLAIMED out of a pool is a gap page from now on, if it was none, and its gaps are in no list.  Returns its
// map; NULL: there is no memory for one, and it is what it was.
mi_gap_map_t* _mi_gaps_claimed(mi_page_t* page);
// That is shared again; or goes back, if others have freed its last block.
void          _mi_gaps_share_claimed(mi_page_t* page);

// Makes one without blocks, which the caller holds, an ordinary page that can be deleted.
void _mi_gaps_unmake(mi_page_t* page);

// Outside of enter and leave.
mi_cold void _mi_gaps_report(const void* wrong_free);

// In the child of a fork.  As _mi_gaps_unmake, of a page that a thread had claimed which the child does not have: whether that has given
// back its map nobody knows.
void _mi_gaps_lose(mi_page_t* page);
// The theap has none, and nobody owns the page any more.
void _mi_gaps_forget(mi_theap_t* theap);
// Goes to the pool: what its bits call a block is in use, but for its chain, and all else is free.  False if it has no blocks.
bool _mi_gaps_orphan(mi_page_t* page);

// Do its bits agree with what it counts?
bool _mi_gaps_is_valid(const mi_page_t* page);
