// Trimming: a thread gives back, on its own slow paths, memory that it does not use any more.  Layer: heap.
//
// TI1  A block that rests in a bin keeps its page from becoming empty, and a thread that sleeps after it has freed a lot
//      takes no more slow paths.  So while a thread frees, a bin from which nothing is taken is emptied, and has half the limit
//      from then on.  Nothing was taken if `slots` has only become less.  A drain that receives no more blocks ends.
// TI2  Once in each round (background.h) the thread gives back what it holds of classes that it has not used since the round before, in
//      portions, and pages of the other classes that became empty by the frees of other threads.
// TI3  A thread that makes a page of a wide class looks at the bins of all wide classes, each of which may hold a few blocks.  If they
//      hold more than 1 MiB, more than a quarter of the pages of those classes, and more than 1/16 of the pages of all threads, the bins
//      from which nothing was taken in the last looks are emptied.  Two looks suffice, unless the bin was filled four times or more, and
//      its first block was not written all over: a program that uses many wide classes in turn wants it again, and it is hardly
//      resident, so then the number of looks is half that of the wide classes in use.  When the thread makes a page of any class by which
//      the process becomes larger than it ever was (arena/purge_at_peak.h), the bins are emptied without these bounds, and after two
//      looks: a block in a bin keeps a page of up to 512 KiB.
// TI4  Before a thread takes a run of more slices than a kept block has at most (kept.h), it empties the bins of its wide classes: a few
//      blocks of each class would keep pages, and whole chunks, from becoming parts of the run.
// TI5  If there are more than 8 threads, they share 8 MiB for the blocks in bins of wide classes.  When a thread has its part, a bin that
//      is filled keeps no blocks: a freed block goes to its page, and an empty page to whichever thread wants it (spare.h).  One block
//      of each of these classes is 3 MiB, and a thread that uses all of them in turn has no other occasion to give them up.
//
// All functions are called between enter and leave, except that for TI4.
#pragma once

#include "event.h"
#include "presence.h"
#include "registry.h"

#define MI_TRIM_THREADS 8 // TI5

// TI1: looks at a few bins and a drain.
void _mi_trim_some(mi_theap_t* theap);

// Looks at a few grown bins: another class needs memory (grow.h, GB3).
void _mi_trim_grown(mi_theap_t* theap);

// A page of a class is about to be made (TI3).
void _mi_trim_wide(mi_theap_t* theap, size_t for_cls);

// A page has made the process larger than it ever was (TI3).
void _mi_trim_at_peak(mi_theap_t* theap);

// TI5: may the bin of the wide class, which is empty, keep a block while there are n_threads threads?
bool _mi_trim_has_part(mi_theap_t* theap, size_t cls, size_t n_threads);

static inline bool _mi_trim_may_keep(mi_theap_t* theap, size_t cls) {
  size_t n_threads = mi_load_relaxed(&_mi_registry_n_threads);
  if (mi_likely(cls < MI_CLASS_WIDE || n_threads <= MI_TRIM_THREADS)) return true;
  return _mi_trim_has_part(theap, cls, n_threads);
}

// TI2.
mi_cold void _mi_trim_all(mi_theap_t* theap);

// TI2, if a round has begun since the thread last did that.
static inline void _mi_trim_by_round(mi_theap_t* theap) {
  if (mi_unlikely(theap->trim.round != mi_load_relaxed(&_mi_event_round))) _mi_trim_all(theap);
}

// Enters for a free.  A thread that a round has asked for trims at once: what it frees may never take it to a slow path.
static inline void _mi_trim_enter(mi_theap_t* theap) {
  if (mi_likely(_mi_presence_try_enter(theap))) return;
  _mi_presence_wait(theap);
  _mi_trim_by_round(theap);
}

// TI4.  The calling thread's theap.
void _mi_trim_for_run(mi_theap_t* theap);
