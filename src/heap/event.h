// Events: work for slow paths beside their own, announced by words that one load tests.  Layer: heap.
//
//   _mi_event_pending   reasons to look closer at each slow malloc: orphans of a fork (fork.h), sampling (sampler.h), a soft
//                       limit on memory that was crossed (arena/limit.h), a request by a signal
//   _mi_event_round     the number of the current round (background.h); a theap that has another one trims (trim.h)
//   _mi_event_wanted    who wants to hear of work that slow paths have done, a bit each: the background thread, which sleeps without a
//                       timeout; an observer of rounds, where there is no such thread
//
// EV1  Rounds lie above slow paths in the order of layers: background.c registers the one function that slow paths call.
#pragma once

#include "../base/atomic.h"
#include "../base/compiler.h"

// The sum of all pending events: 1 for each theap or option that samples blocks, MI_EVENT_ORPHANS if there are orphans, MI_EVENT_LIMIT for
// a soft limit that was crossed, and MI_EVENT_REQUEST for the request of a signal.
extern mi_atomic(uint32_t) _mi_event_pending;

#define MI_EVENT_ORPHANS (1u << 24)
#define MI_EVENT_LIMIT   (1u << 29)
#define MI_EVENT_REQUEST (1u << 30)

static mi_always_inline bool _mi_event_is_pending(void) {
  return mi_unlikely(mi_load_relaxed(&_mi_event_pending) != 0);
}

static inline bool _mi_event_is_sampling(void) {
  return mi_load_relaxed(&_mi_event_pending) % MI_EVENT_ORPHANS != 0;
}

// Was a soft limit crossed?
static inline bool _mi_event_is_limit(void) {
  return (mi_load_relaxed(&_mi_event_pending) & MI_EVENT_LIMIT) != 0;
}

// A soft limit was crossed (true), or that has been attended to (false).
void _mi_event_set_limit(bool is_crossed);

// Sets the word anew in the child of a fork, because threads that the child does not have may have been changing it.  n_sampling: the
// number of theaps and options that sample.
void _mi_event_after_fork(uint32_t n_sampling, bool has_orphans);

extern mi_atomic(uint32_t) _mi_event_round;
extern mi_atomic(uint32_t) _mi_event_wanted;

#define MI_EVENT_SLEEPS 1u // the thread sleeps, and changes this
#define MI_EVENT_NOTES  2u // somebody observes rounds, and there is no thread

// `wake`: a round is wanted although little memory is in use.
typedef void mi_event_poll_fun(bool wake);
void         _mi_event_register(mi_event_poll_fun* poll);

// Requests by the handler of a signal: the next slow malloc, or the library's thread, calls `answer` with the value of the request.  Making
// a request takes only atomic operations; a request replaces one that still waits.
void _mi_event_on_request(void (*answer)(int value));
void _mi_event_request(int value);
void _mi_event_answer(void);

// The following are called without locks and outside of enter and leave.

// Makes a round, or wakes the library's thread, if it is time.  To be called once in a while.
void _mi_event_poll(void);

// The same, but a round is wanted in any case.
void _mi_event_wake(void);

// Slices were freed.
void _mi_event_freed(void);

// A slow path has done some work, after which a round may be due.
static inline void _mi_event_note(void) {
  if (mi_unlikely(mi_load_relaxed(&_mi_event_wanted) != 0)) _mi_event_poll();
}
