// What slow paths attend to beside their own work, as words that one load tests.  Layer: heap.
//
//   _mi_event_pending   reasons to look closer at each slow malloc: orphans of a fork (fork.h), sampling (sampler.h), a soft
//                       limit on memory that was crossed (arena/limit.h), a request by a signal
//   _mi_event_round     the number of the current round (background.h); a theap that has another one trims (trim.h)
//   _mi_event_sleeps    the background thread sleeps without a timeout; or there is none, and somebody observes rounds: a bit each
//
// EV1  Rounds lie above slow paths in the order of layers: background.c registers the one function that slow paths call.
#pragma once

#include "../base/atomic.h"
#include "../base/compiler.h"

// Each theap or option that samples blocks counts one, orphans count MI_EVENT_ORPHANS, a limit that was crossed MI_EVENT_LIMIT, a
// signal's request MI_EVENT_REQUEST.
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

// It was, or (false) that has been attended to.
void _mi_event_set_limit(bool is_crossed);

// In the child of a fork, where there are so many reasons to sample: threads that it does not have may have been changing the word.
void _mi_event_after_fork(uint32_t n_sampling, bool has_orphans);

extern mi_atomic(uint32_t) _mi_event_round;
extern mi_atomic(uint32_t) _mi_event_sleeps;

#define MI_EVENT_SLEEPS 1u // the thread changes it
#define MI_EVENT_NOTES  2u // work is to be noted, as there is no thread

// `wake`: a round is wanted although little memory is in use.
typedef void mi_event_poll_fun(bool wake);
void         _mi_event_register(mi_event_poll_fun* poll);

// What a handler of a signal asks for: `answer` is called with its value by the next slow malloc, or by the library's thread.
// Asking is only atomic operations; what is asked for while another request waits takes its place.
void _mi_event_on_request(void (*answer)(int value));
void _mi_event_request(int value);
void _mi_event_answer(void);

// All three are called without locks and outside of enter and leave.

// Is it time for a round?  Once in a while.
void _mi_event_poll(void);

// A round is wanted in any case.
void _mi_event_wake(void);

// Slices were freed.
void _mi_event_freed(void);

// Some work was done that may be worth a round.
static inline void _mi_event_note(void) {
  if (mi_unlikely(mi_load_relaxed(&_mi_event_sleeps) != 0)) _mi_event_poll();
}
