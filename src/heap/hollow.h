// Pages that nobody has, and of which little is in use: what they do not use goes back.  Layer: heap.
//
//   a page, shared for long  |aaa|   |   |aaa|   |   |   |   |      16 OS pages, all of them backed
//   hollow                   |aaa|...............|aaa|.......|      a gap page; OS pages that lie in gaps are not
//
// A few blocks keep a page.  Where a thread that sleeps or has ended leaves them, its pages wait in the pools for whoever needs
// some, and a program that needs none keeps them for as long as these blocks live.
//
// HO1  A list of a pool is quiet when its first page is the same for HOLLOW_ROUNDS: pages are shared and adopted there.  The library's
//      thread then claims pages that use little, some in each round, makes gap pages of them, gives back the OS pages that lie in
//      gaps, and shares them.  A list that stays as it is is looked at again later, since others free blocks of its pages.
// HO2  Uses little: its blocks touch no more OS pages than 5/4 of those that it has, each block counted for itself.  If they are
//      anywhere in the page, between a quarter and a third of it goes back then, and more if there are fewer.
// HO3  The page is used as any other gap page: whoever adopts it backs what it writes.  What is given back once is not asked for again
//      before a quarter of the blocks has gone.
// HO4  Only where the library has a thread: lists are quiet by its rounds, and programs with one thread share no pages.
#pragma once

#include "../base/compiler.h"

// A round, under the lock of rounds.  True if there will be more to do.
bool _mi_hollow_round(void);
