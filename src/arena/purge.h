// When freed memory goes back to the system.  Layer: arena.
//
// Freed slices stay backed for a while, since they are likely to be used again soon.  How long depends on whether anybody
// comes by later:
//
//   by the clock    Every interval (options purge_delay x arena_purge_mult, 100 ms) the amount that was free and backed during
//                   the *whole* interval goes back: a program that oscillates keeps what it swings by.  One that soon needs again
//                   what went back is held more for a while (recall.h).
//   by the amount   Without the library's thread (heap/background.h) nobody comes by when the program sleeps after a free.  So the
//                   free itself gives back what is more than the allowance.
//   at a peak       In either case what is free goes back before the process becomes larger than it ever was (trade.h).
//
// PG1  The allowance is 1/16 of what was freed lately, or what the program swings by: what was taken and freed again
//      during the last interval, and what had to be backed again after it was given back.  It is at least 1 MiB and at
//      most 32 MiB, or what is in use, if that is more.
// PG2  What threads keep for their next request of a large block (heap/large.h, L3) counts as free memory that is backed, until it
//      is in use again.  They ask once for what they may keep; that is no more than may stay outside of a hold (PG6), or 32 MiB
//      during one.  Empty pages that wait for the next request of their class (heap/spare.h) count in the same way, and as freed
//      and used again, as if they had gone to the arena.
// PG3  So a program that frees and then sleeps leaves 1/16 of that, and one that frees and allocates the same memory again and
//      again pays for it once, and leaves 32 MiB, or as much as it uses.
// PG4  A system that takes nothing, since the memory is locked or the call is forbidden, is asked again after a while,
//      not by each free.
// PG5  In all cases no more than so many slices stay as options say (retain, and a share of a container's memory); then half of
//      them, so that the next free does not purge again.
// PG6  Memory that is recalled is held (recall.h).  Without the library's thread nothing goes back by the clock meanwhile, and by the
//      amount 32 MiB may stay, or four times what is in use, if that is more; or as much as makes twice what was used at most in the
//      last two to four seconds, with what is in use, if an eighth of that is still in use or to give it back is dear (PG8): what a
//      program uses goes up and down, and between blocks of many sizes as much is free as they take.  And as much more as was
//      needed again in this interval, up to a quarter.  When more is free it goes back down to a MiB below that, not to half.
//      A hold that ends before the next round is none.  One for 12 MiB and more begins as soon as they were needed again, unless the
//      program slept in the last interval.  Who comes by only now and then, as the program sleeps for long or most of the time
//      between two rounds, has nothing held: nobody would come to end it.
// PG7  By the amount, parts of huge pages go back only when there was more than the allowance for a millisecond for each MiB of that,
//      which is what it takes to split them and to take them again by small pages: a program that frees all in any order frees
//      whole chunks in the end.  One that sleeps before that leaves them.
// PG8  To give back is dear (dear.h) when what went back by the amount and was needed again in the same interval has cost more than a
//      twentieth of the time.  A program that frees all leaves 40 MiB at most before that, and afterwards as much as it used at
//      most, and a quarter: until the first free after the hold.
#pragma once

#include "slices.h"

// Memory that is short under a limit comes from here (limit.h).
void _mi_purge_init(void);

// So many slices may stay at most; at least what is not worth the system calls (PG5).
void _mi_purge_set_retained(size_t n);

// Is there a thread that calls _mi_purge_round every interval?
bool _mi_purge_has_thread(void);
void _mi_purge_set_has_thread(bool has_thread);

// Milliseconds between rounds; 0: memory goes back at once; < 0: never.
int64_t _mi_purge_interval(void);

// To be called after slices were freed, without locks: by the amount.
void _mi_purge_by_amount(void);

// To be called after slices were taken that were not backed, before they are written, without locks: what is free goes back for them if
// the process would become larger than ever (trade.h).
void _mi_purge_at_peak(void);

// By the clock: what was free all the time goes back if an interval is over, and all that is free if `is_idle`: nobody
// allocates or frees.  Less than that if memory is held.  Takes locks.
void _mi_purge_round(bool is_idle);

// Nobody comes by any more: what is held goes back.
void _mi_purge_end_hold(void);

// Gives up to n purgeable slices back to the system, or a few more; returns how many were given.
size_t _mi_purge_slices(size_t n);

// Gives everything back that is free now but so many slices (or up to a chunk less); returns how many went back.
size_t _mi_purge_to(size_t stay);

// Free slices that are backed, and those that threads keep.
size_t _mi_purge_n_backed(void);

// Is there any of that which a later round may give back?  Not while the system refuses to take it.
bool _mi_purge_has_more(void);

// May a thread keep n slices more (PG2)?  They are kept from then on.
bool _mi_purge_keep(size_t n);
// They are not kept any more.
void _mi_purge_unkeep(size_t n);
// Of what may be kept n slices are in use, or are kept again: until then they do not count as free.
void _mi_purge_lend(size_t n);
void _mi_purge_unlend(size_t n);
// In the child of a fork: n slices may be kept, and n_lent of these are lent, whatever a thread was about to count that the child does
// not have.
void _mi_purge_set_kept(size_t n, size_t n_lent);

// The same for n slices that were in use until now, and that wait for their next use.  Under a lock of the caller.
bool _mi_purge_wait(size_t n);
void _mi_purge_end_wait(size_t n, bool is_used);
