// When freed memory goes back to the system: what the policies have in common.  Layer: arena.
//
// Freed slices stay backed for a while, since they are likely to be used again soon.  How long depends on whether anybody
// comes by later:
//
//   by the clock    Every interval (options purge_delay x arena_purge_mult, 100 ms) as much memory goes back as was free and backed
//                   during the *whole* interval: a program whose use swings keeps the amount by which it swings (purge_by_clock.h).
//   by the amount   Without the library's thread (heap/background.h) nobody comes by when the program sleeps after a free.  So the
//                   free itself gives back the free memory that exceeds the allowance (purge_by_amount.h).
//   at a peak       In either case free memory goes back before the process becomes larger than it ever was (purge_at_peak.h).
//
// If the program soon needs memory again that went back, more is held for a while (hold.h).
//
// PG1  A system that takes no memory back, because it is locked or the call is forbidden, is asked again after a while, not by each free.
// PG2  Large blocks that threads keep for their next requests (heap/large.h, L3) count as free memory that is backed, until they are in
//      use again.  Spare pages (heap/spare.h) count in the same way.  purge_keep.h decides how much that may be.
// PG3  In all cases no more slices stay than options allow (retain, and a share of a container's memory).  If there are more, half of
//      the allowed number stays, so that the next free does not purge again.
#pragma once

#include "recall.h"
#include "slices.h"

#define MI_PURGE_MIN_SLICES (MI_MiB / MI_SLICE_SIZE)        // stay in any case: less is not worth the system calls
#define MI_PURGE_MAX_SLICES ((32 * MI_MiB) / MI_SLICE_SIZE) // stay if little is in use; and threads keep no more

extern mi_recall_t _mi_purge_recall; // under the purge lock

// Memory that is short under a limit comes from here (limit.h).
void _mi_purge_init(void);

// At most n slices may stay (PG3), but at least as many as are not worth the system calls.
void   _mi_purge_set_retained(size_t n);
size_t _mi_purge_retained(void);

// Is there a thread that calls _mi_purge_by_clock every interval?
bool _mi_purge_has_thread(void);
void _mi_purge_set_has_thread(bool has_thread);

// Milliseconds between rounds; 0: memory goes back at once; < 0: never.
int64_t _mi_purge_interval(void);

// Gives up to n purgeable slices back to the system, or a few more; returns how many were given.
size_t _mi_purge_slices(size_t n);

// Gives back all free memory except `stay` slices, or up to a chunk less than those; returns how many slices went back.
size_t _mi_purge_to(size_t stay);

// The same with all of it, before a request is refused; but where the system took nothing from the last one, it is not asked again for a while.
void _mi_purge_for_request(void);

// Free slices that are backed, and those that threads keep.
size_t _mi_purge_n_backed(void);

// Is there any such slice that a later round may give back?  Not while the system refuses to take memory.
bool _mi_purge_has_more(void);

// So many of the slices that there were to give went back (PG1).
void _mi_purge_note(size_t n_given);

// Does the system take nothing?  Else each free would ask it again for all that is free.
bool _mi_purge_is_refused(void);

// PG2: slices that are kept, or wait, now; with those that are lent.
size_t _mi_purge_n_resting(void);
size_t _mi_purge_n_kept(void);

// n slices more are kept (purge_keep.h), or are not kept any more.
void _mi_purge_count_kept(size_t n);
void _mi_purge_unkeep(size_t n);
// Of the slices that may be kept n are in use from now on (lend), or are kept again (unlend): in between they do not count as free.
void _mi_purge_lend(size_t n);
void _mi_purge_unlend(size_t n);
// In the child of a fork: n slices may be kept, and n_lent of these are lent, whatever a thread was about to count that the child does
// not have.
void _mi_purge_set_kept(size_t n, size_t n_lent);
