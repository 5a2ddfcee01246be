// What a thread gives back by itself, on its slow paths, because it does not use it any more.  Layer: heap.
//
// TI1  A block that rests in a bin keeps its page from becoming empty, and a thread that sleeps after it has freed a lot
//      takes no more slow paths.  So while it frees, a bin from which nothing is taken is emptied, and has half the limit
//      from then on.  Nothing was taken if `slots` has only become less.  Drains into which nothing goes any more end.
// TI2  Once a round (background.h) what the thread holds of classes that it has not used since the round before goes back, in
//      portions, and so do pages of the others that became empty by what other threads have freed.
// TI3  A thread that makes a page of a wide class looks at the bins of those classes, of each of which a few blocks may be left:
//      if they hold more than 1 MiB, than a quarter of the pages of those classes, and than 1/16 of the pages of all threads,
//      those from which nothing was taken since the look before the last are emptied.
//
// TI4  Before a thread takes a run of more slices than large blocks have that are kept (kept.h), it empties the bins of its wide
//      classes: a few blocks of each keep pages, and whole chunks, from becoming parts of the run.
//
// TI5  More than 8 threads share 8 MiB for what they have in bins of wide classes.  A bin that is filled when its thread has its part
//      keeps none: what is freed goes to its page, and when that is empty to whichever thread wants it (spare.h).  One block
//      of each of these classes is 3 MiB, and a thread that uses all of them in turn has no other occasion to give them up.
//
// Between enter and leave, but for TI4.
#pragma once

#include "event.h"
#include "presence.h"
#include "registry.h"

#define MI_TRIM_THREADS 8 // TI5

void _mi_trim_some(mi_theap_t* theap);

// Looks at a few grown bins: another class needs memory (grow.h, GB3).
void _mi_trim_grown(mi_theap_t* theap);

// A page of a class is about to be made (TI3).
void _mi_trim_wide(mi_theap_t* theap, size_t for_cls);

// TI5: is there room for a block of the wide class, whose bin is empty, if there are so many threads?
bool _mi_trim_has_part(mi_theap_t* theap, size_t cls, size_t n_threads);

static inline bool _mi_trim_may_keep(mi_theap_t* theap, size_t cls) {
  size_t n_threads = mi_load_relaxed(&_mi_registry_n_threads);
  if (mi_likely(cls < MI_CLASS_WIDE || n_threads <= MI_TRIM_THREADS)) return true;
  return _mi_trim_has_part(theap, cls, n_threads);
}

mi_cold void _mi_trim_all(mi_theap_t* theap);

// TI2, if there was a round since the thread did that last.
static inline void _mi_trim_by_round(mi_theap_t* theap) {
  if (mi_unlikely(theap->round != mi_load_relaxed(&_mi_event_round))) _mi_trim_all(theap);
}

// Enters for a free.  A thread that a round has asked for trims at once: what it frees may never take it to a slow path.
static inline void _mi_trim_enter(mi_theap_t* theap) {
  if (mi_likely(_mi_presence_try_enter(theap))) return;
  _mi_presence_wait(theap);
  _mi_trim_by_round(theap);
}

// TI4.  The calling thread's theap.
void _mi_trim_for_run(mi_theap_t* theap);
