// Memory that is freed and soon needed again: how long free memory is held for a program that swings.  Layer: arena.
//
// RC1  Slices that were free for a whole interval, whether they went back or not, and are needed again, were *recalled*.
// RC2  Each MiB recalled lengthens the hold by 40 ms, 100 times the cost of giving a MiB back and taking it again.  The hold begins when
//      memory last went back, so a recall of memory that went back long ago has no effect.
// RC3  During the hold the program keeps, used and free together, as much as it used at most in the last two to four seconds, less a
//      quarter of what it uses now.  Memory that was free for as long goes back.  So no more than a hundredth of the time goes into giving
//      back and taking again, except for swings that the hold does not cover because of RC4.  A program that uses the same amount all the
//      time holds nothing.
// RC4  The hold ends at most four seconds from now: a program that stops gives everything back.
//
// Times are milliseconds on the caller's clock.
#pragma once

#include "region.h"

#define MI_RECALL_MS_MIB  40
#define MI_RECALL_MS_MOST 4000

typedef struct mi_recall_s {
  int64_t until;      // the end of the hold
  int64_t last_give;  // when slices last went back
  int64_t half_since; // when the later one of `halves` began
  size_t  n_given;    // slices that went back and were not needed since
  size_t  n_retaken;  // those that were, in this interval
  size_t  n_seen;     // the least that was free and backed in the last interval, and still is
  size_t n_fresh; // slices that had ever been handed out without being backed, at its end or when slices last went back
  size_t halves[2]; // the least that was free and backed, in the last half of MI_RECALL_MS_MOST and in this one
  size_t most[2];   // the most that was used then, at the ends of intervals
} mi_recall_t;

#define MI_RECALL_INITIAL {INT64_MIN / 2, INT64_MIN / 2, INT64_MIN / 2, 0, 0, 0, 0, {SIZE_MAX, SIZE_MAX}, {0, 0}}

// An interval is over, in which at least `low` slices were free and backed; n_used are in use.  Returns how many may go back.
size_t _mi_recall_round(mi_recall_t* recall, int64_t now, size_t low, size_t n_used, size_t n_fresh);

// In the middle of an interval: a hold that was earned since it began does not wait for its end.
void _mi_recall_begin(mi_recall_t* recall, int64_t now, size_t n_fresh);

// n slices went back, for whatever reason.  Slices that were taken in the same interval before that were none of them.
void _mi_recall_note(mi_recall_t* recall, int64_t now, size_t n, size_t n_fresh);

// n slices went back that do not count as recalled if they are needed again (trade.h).
void _mi_recall_lessen(mi_recall_t* recall, size_t n);

// RC2, RC4: the end of a hold that begins at `from`, for n slices with ms_mib milliseconds for each MiB.
static inline int64_t _mi_recall_until(int64_t from, int64_t now, size_t n, size_t ms_mib) {
  int64_t until = from + (int64_t)(n * ms_mib / (MI_MiB / MI_SLICE_SIZE));
  return until < now + MI_RECALL_MS_MOST ? until : now + MI_RECALL_MS_MOST;
}

// Nothing is held any more, and slices that are taken from now on do not count as recalled.
static inline void _mi_recall_forget(mi_recall_t* recall) {
  recall->until = INT64_MIN / 2;
  recall->n_given = recall->n_retaken = recall->n_seen = 0;
}

static inline bool _mi_recall_holds(const mi_recall_t* recall, int64_t now) {
  return now < recall->until;
}
