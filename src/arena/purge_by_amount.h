// By the amount: what a free gives back where the library has no thread.  Layer: arena.
//
// AM1  The allowance is 1/16 of the memory that was freed lately, or, if that is more, the amount by which the program swung in the last
//      interval; and what went back by mistake in this one (swing.h).  It is at least 1 MiB, and at most 32 MiB or as much as is in use,
//      whichever is more.  If more is free, it goes back down to half of the allowance.
// AM2  So a program that frees and then sleeps leaves 1/16 of the memory that it freed.  One that frees and allocates the same memory
//      again and again pays for it once, and leaves 32 MiB, or as much as it uses.
// AM3  During a hold (hold.h) the largest of these may stay:
//        - 32 MiB;
//        - four times what is in use;
//        - as much as makes, with what is in use, twice the most that was used in the last two to four seconds, if an eighth of that most
//          is still in use, or if to give back is dear (AM5): between blocks of many sizes as much memory is free as they take.
//      In addition as much may stay as was needed again in this interval, up to a quarter of that.  If more is free, it goes back down to
//      a MiB below this bound, not to half of it.
// AM4  Parts of huge pages go back only when more than the allowance was free for a millisecond for each MiB of the excess.  That is
//      the time that it takes to split them and to take them again by small pages.  A program that frees all of its blocks in any order
//      frees whole chunks in the end; one that sleeps before that leaves the parts.
// AM5  To give back is dear (dear.h) when memory that went back by mistake has cost more than a twentieth of the time.  Before that a
//      program that frees all leaves 40 MiB at most; afterwards it leaves as much as it used at most, and a quarter, until the first free
//      after the hold.
#pragma once

#include "region.h"

// To be called after slices were freed, without locks.  Where the library has a thread only what options allow is looked at (purge.h,
// PG3), and where memory goes back at once all goes.
void _mi_purge_by_amount(void);

// AM1, with n_mistaken slices that went back by mistake in this interval.
size_t _mi_purge_by_amount_allowance(size_t n_mistaken);
