// Empty pages that wait for the next request of their class.  Layer: heap.
//
//   free that makes all blocks free  --> spare --request for a page of the class--> OWNED
//                                          |---- unused for a round, or slices are needed ----> arena
//
// A program that allocates and frees in batches empties pages that it soon needs again.  Where some threads free what others
// allocate, each page is emptied by a thread that does not need it.  To give it back to the arena and to make another for the next
// request takes ten times as many instructions as to keep it.
//
// EP1  A spare page is CLAIMED, of the main heap and of the library's own memory, has no home and no block in use.  While it
//      waits it keeps the list of its free blocks; small blocks are linked anew when it is taken.  Whoever walks over pages takes it for
//      one that is being made, and the child of a fork gives it back.
// EP2  No more pages of a class wait than were asked for since the round before the last: a thread that only frees keeps none.
// EP3  All spare pages count as free memory that is backed (arena/purge.h, PG2).
// EP4  A round gives back as many pages of each class as waited all the time since the round before.  If a request for slices is larger
//      than the memory that is free and backed, spare pages are given back before more memory is taken: pages that wait for one class do
//      not add to the memory that others need.  A large block needs slices side by side, so before one is made as many slices are given
//      back in any case.  So they are for a page of blocks that are larger than a slice: a program with a few blocks of many such sizes would
//      keep a page or two of each class, and touch them all in turn instead of memory that is in the cache.
#pragma once

#include "heap.h"

// Keeps a page that is CLAIMED by the caller, and that has no block in use.  False: the caller deletes it.
bool _mi_spare_keep(mi_page_t* page);

// A page of the class, OWNED by `home` from now on.  NULL if none waits.
mi_page_t* _mi_spare_take(size_t cls, mi_theap_t* home);

// Gives so many slices back, or a few more, if pages wait.  True if any were.
bool _mi_spare_relieve(size_t n);

// A page of the class is going to be made (EP4): true if any pages were given back.
bool _mi_spare_make_room(size_t cls);

// Gives back all of them.
void _mi_spare_drop_all(void);

// A round (EP4).
void _mi_spare_drop_unused(void);

extern mi_lock_t _mi_spare_lock; // taken after the pools' locks

// In the child of a fork, which gives all pages back that are CLAIMED, and then counts those that there are.
void _mi_spare_forget(void);
