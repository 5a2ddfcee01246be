// Pages that hold little, and the requests that take their place.  Layer: heap.
//
// When the sizes that a program uses change, what is left of the old ones keeps pages, and pages are made for the new ones.  So
// before a theap makes a page it uses gaps (gaps.h), and now and then looks at how much its pages hold.
//
// SP1  If more than a quarter of the theap's pages is free, and that is more than 2 MiB, pages of classes that have several
//      pages with room become gap pages, a few at a time.
// SP2  The theap looks at its pages at one in 32 requests for a page, or fewer if it has many, and at one in 16
//      after a look that found so.
// SP3  Before a page is made, because no shared one of the class is left either, a few gap pages that nobody has are looked at.
// SP4  If they do not serve, at one in 16 such requests the theap makes gap pages of sparse pages that nobody has, of classes that
//      it does not use at the moment, if there are 32 MiB of shared pages; or 2 MiB, if a round has shared its own since the last
//      time (idle.h).  Else so few are on their way from one thread to another.
// SP5  No request counts what is free in more than 4096 pages, looks at more than 2048 that may become gap pages, or makes more than
//      512 of them.  A theap with more goes on at the next look, with other pages: what was looked at comes to the front of its queue.
#pragma once

#include "theap.h"

// Blocks of the class out of gaps, when no page of the class is known to have room; none: take a page.
mi_chain_t _mi_sparse_take(mi_theap_t* theap, size_t cls);

// The same before a page is made, because there is no shared one of the class either.
mi_chain_t _mi_sparse_take_shared(mi_theap_t* theap, size_t cls);
