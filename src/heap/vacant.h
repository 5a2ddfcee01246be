// Vacant theaps, which no thread has.  Layer: heap.
//
// VA1  A theap of a heap is in its list `vacant` while nobody has it, and in `theaps` while a thread has it or it is an orphan.
// VA2  A vacant theap is empty, but pages may have it as their home.  So it can serve only a thread that needs a theap of the same
//      heap.  A vacant theap that is the home of no page is unused, and can serve any heap.
// VA3  A walk over all pages, a *vacant round*, finds out which theaps are unused.  It goes on by a bounded number of steps each time that
//      a theap would have to be made, and a new one begins when there are twice as many theaps as were found to be in use: so its cost is
//      a constant part of the cost of theaps.  Only a theap that a thread has can become the home of a page.  So a theap that was vacant
//      during all of a vacant round, and was not seen as a home, is none, and stays so.
// VA4  A thread that gets a theap frees blocks of the pages that have this theap as their home into its bins, and hands them out again from
//      there.  If these blocks are those of the theap's former thread, new blocks take their places one by one, and every old page stays
//      for a few of them.  So a theap rests: it is not used again before MI_VACANT_REST theaps became vacant after it, unless there is no
//      memory for another.  By then others have freed most of the blocks that its former thread left.  No more than MI_VACANT_REST theaps
//      rest at a time.
//
// All of it is under the registry lock; getting and putting take constant time.
#pragma once

#include "heap.h"

#define MI_VACANT_REST 16 // VA4: 170 KiB of theaps

// Adds a theap to one of the lists of its heap, and takes it out.
void _mi_vacant_link(mi_theap_t** list, mi_theap_t* theap);
void _mi_vacant_unlink(mi_theap_t* theap);

// A vacant theap for the heap, in `theaps` from then on; `may_rest`: one that rests will do (VA4).  NULL: one has to be made.
mi_theap_t* _mi_vacant_get(mi_heap_t* heap, bool may_rest);

// Nobody has the theap from now on.
void _mi_vacant_put(mi_theap_t* theap);

// No page has it as its home, nor will any.
void _mi_vacant_set_unused(mi_theap_t* theap);
