// Sparse pages: which pages become gap pages, and when a theap looks for them.  Layer: heap.
//
// When the sizes that a program uses change, the blocks that are left of the old sizes keep their pages, and pages are made for the new
// sizes.  So before a theap makes a page it uses gaps (gaps.h), and now and then it looks at how much memory of its pages is free.
//
// SP1  If more than a quarter of the memory of the theap's pages is free, and that is more than 2 MiB, pages of classes that have several
//      pages with room become gap pages, a few at a time.
// SP2  The theap looks at its pages at one in 32 requests for a page, or fewer if it has many, and at one in 16
//      after a look that found so.
// SP3  Before a page is made, because there is no shared page of the class either, a few shared gap pages are looked at.
// SP4  If they do not serve, then at one in 16 such requests the theap makes gap pages of sparse shared pages, of classes that it does not
//      use at the moment.  It does so if there are 32 MiB of shared pages; or 2 MiB, if a round has shared its own pages since the last
//      time (idle.h).  (Fewer shared pages may just be on their way from one thread to another.)
// SP5  No request counts what is free in more than 4096 pages, looks at more than 2048 that may become gap pages, or makes more than
//      512 of them.  A theap with more pages goes on at the next look with other pages: those that were looked at come to the front of
//      their queue, and a look begins at the end.
#pragma once

#include "theap.h"

// Blocks of the class out of gaps, when the theap has no page of the class with room; none: find or make a page.
mi_chain_t _mi_sparse_take(mi_theap_t* theap, size_t cls);

// The same before a page is made, because there is no shared page of the class either (SP3, SP4).
mi_chain_t _mi_sparse_take_shared(mi_theap_t* theap, size_t cls);
