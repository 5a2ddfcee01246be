// When freed memory goes back to the system.  Layer: arena.
//
// Freed slices stay backed for a while, since they are likely to be used again soon.  How long depends on whether anybody
// comes by later:
//
//   by the clock    Every interval (options purge_delay x arena_purge_mult, 100 ms) as much memory goes back as was free and backed
//                   during the *whole* interval: a program whose use swings keeps the amount by which it swings.  If it soon needs memory
//                   again that went back, more is held for a while (recall.h).
//   by the amount   Without the library's thread (heap/background.h) nobody comes by when the program sleeps after a free.  So the
//                   free itself gives back the free memory that exceeds the allowance.
//   at a peak       In either case free memory goes back before the process becomes larger than it ever was (trade.h).
//
// PG1  The allowance is 1/16 of the memory that was freed lately, or, if that is more, the amount by which the program swung in the last
//      interval: memory that was taken and freed again, and memory that had to be backed again soon after it was given back.  Memory of the
//      second kind in this interval is added.  The allowance is at least 1 MiB, and at most 32 MiB or as much as is in use, whichever is
//      more.
// PG2  Large blocks that threads keep for their next requests (heap/large.h, L3) count as free memory that is backed, until they are in
//      use again.  Threads ask once for the amount that they may keep; that is no more than may stay outside of a hold (PG6), or 32 MiB
//      during one.  Spare pages (heap/spare.h) count in the same way, and also as freed and used again, as if they had gone to the arena.
// PG3  So a program that frees and then sleeps leaves 1/16 of the memory that it freed.  One that frees and allocates the same memory
//      again and again pays for it once, and leaves 32 MiB, or as much as it uses.
// PG4  A system that takes no memory back, because it is locked or the call is forbidden, is asked again after a while, not by each free.
// PG5  In all cases no more slices stay than options allow (retain, and a share of a container's memory).  If there are more, half of
//      the allowed number stays, so that the next free does not purge again.
// PG6  Memory that is recalled is held (recall.h).  Without the library's thread nothing goes back by the clock during a hold, and by the
//      amount the largest of these may stay:
//        - 32 MiB;
//        - four times what is in use;
//        - as much as makes, with what is in use, twice the most that was used in the last two to four seconds, if an eighth of that most
//          is still in use, or if to give back is dear (PG8): between blocks of many sizes as much memory is free as they take.
//      In addition as much may stay as was needed again in this interval, up to a quarter of that.  If more is free, it goes back down to
//      a MiB below this bound, not to half of it.
//      There is no hold if it would end before the next round.  A hold for 12 MiB and more begins as soon as they were needed again,
//      unless the program slept in the last interval (busy.h).  Nothing is held for a program that sleeps for long, or most of the time,
//      between two rounds: nobody would come by to end the hold.
// PG7  By the amount, parts of huge pages go back only when more than the allowance was free for a millisecond for each MiB of the
//      excess.  That is the time that it takes to split them and to take them again by small pages.  A program that frees all of its
//      blocks in any order frees whole chunks in the end; one that sleeps before that leaves the parts.
// PG8  To give back is dear (dear.h) when memory that went back by the amount and was needed again in the same interval has cost more than
//      a twentieth of the time.  Before that a program that frees all leaves 40 MiB at most; afterwards it leaves as much as it used at
//      most, and a quarter, until the first free after the hold.
#pragma once

#include "slices.h"

// Memory that is short under a limit comes from here (limit.h).
void _mi_purge_init(void);

// At most n slices may stay (PG5), but at least as many as are not worth the system calls.
void _mi_purge_set_retained(size_t n);

// Is there a thread that calls _mi_purge_round every interval?
bool _mi_purge_has_thread(void);
void _mi_purge_set_has_thread(bool has_thread);

// Milliseconds between rounds; 0: memory goes back at once; < 0: never.
int64_t _mi_purge_interval(void);

// To be called after slices were freed, without locks: by the amount.
void _mi_purge_by_amount(void);

// To be called without locks after slices were taken that were not backed, before they are written: if the process would become larger
// than ever, free memory goes back for them (trade.h).
void _mi_purge_at_peak(void);

// By the clock: if an interval is over, memory that was free all the time goes back, or all free memory if `is_idle` (nobody allocates or
// frees).  Less goes back if memory is held.  Takes locks.
void _mi_purge_round(bool is_idle);

// Nobody comes by any more: memory that is held goes back.
void _mi_purge_end_hold(void);

// Gives up to n purgeable slices back to the system, or a few more; returns how many were given.
size_t _mi_purge_slices(size_t n);

// Gives back all free memory except `stay` slices, or up to a chunk less than those; returns how many slices went back.
size_t _mi_purge_to(size_t stay);

// Free slices that are backed, and those that threads keep.
size_t _mi_purge_n_backed(void);

// Is there any such slice that a later round may give back?  Not while the system refuses to take memory.
bool _mi_purge_has_more(void);

// May a thread keep n slices more (PG2)?  They are kept from then on.
bool _mi_purge_keep(size_t n);
// They are not kept any more.
void _mi_purge_unkeep(size_t n);
// Of the slices that may be kept n are in use from now on (lend), or are kept again (unlend): in between they do not count as free.
void _mi_purge_lend(size_t n);
void _mi_purge_unlend(size_t n);
// In the child of a fork: n slices may be kept, and n_lent of these are lent, whatever a thread was about to count that the child does
// not have.
void _mi_purge_set_kept(size_t n, size_t n_lent);

// The same for n slices that were in use until now, and that wait for their next use.  Under a lock of the caller.
bool _mi_purge_wait(size_t n);
void _mi_purge_end_wait(size_t n, bool is_used);
