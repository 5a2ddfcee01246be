// Theaps that nobody has.  Layer: heap.
//
// VA1  A theap of a heap is in its list `vacant` while nobody has it, and in `theaps` while a thread has it or it is an orphan.
// VA2  A vacant theap is empty, but pages may have it as their home.  So the next thread that needs a theap gets one of its heap;
//      what no page has as its home is unused, and can serve any heap.
// VA3  To tell which those are takes a walk over all pages, a round.  It goes on by a bounded number of steps each time that a
//      theap would have to be made, and a new one begins when there are twice as many theaps as were found to be in use: so
//      it costs a constant part of what theaps cost.  A page gets only a theap that a thread has as its home; so what was
//      vacant during all of a round and was not seen is no home, and stays so.
// VA4  A thread that gets a theap frees the blocks of the pages whose home that is into its bins, and hands them out again from
//      there.  If these blocks are old, its own new blocks fill the gaps that the old ones leave, one by one, and every old page
//      stays for a few of them.  So a theap rests: it is not used again before MI_VACANT_REST theaps became vacant after it,
//      unless there is no memory for another.  Most of what its former thread left has been freed by others then.  No more
//      than MI_VACANT_REST theaps rest at a time.
//
// All of it is under the registry lock; getting and putting take constant time.
#pragma once

#include "heap.h"

#define MI_VACANT_REST 16 // VA4: 170 KiB of theaps

// Adds a theap to one of the lists of its heap, and takes it out.
void _mi_vacant_link(mi_theap_t** list, mi_theap_t* theap);
void _mi_vacant_unlink(mi_theap_t* theap);

// A theap for the heap, in `theaps` from then on; `may_rest`: any (VA4).  NULL: one has to be made.
mi_theap_t* _mi_vacant_get(mi_heap_t* heap, bool may_rest);

// Nobody has the theap from now on.
void _mi_vacant_put(mi_theap_t* theap);

// No page has it as its home, nor will any.
void _mi_vacant_set_unused(mi_theap_t* theap);
