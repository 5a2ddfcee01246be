// A small mutex.  Layer: prim.
//
//   0  free        1  held, nobody sleeps        2  held, somebody may sleep
//
// It neither allocates nor has a destructor.  Critical sections are short, so a contender spins for a while first; an
// oversubscribed machine makes it sleep instead of burning its time slice.
//
// A thread that forks holds all locks of the library while handlers of the program run (heap/fork.h).  These may allocate: for
// that thread, and for its copy in the child, acquiring and releasing do nothing until it gives the locks back.
//
// A thread that ends the process may do so in a handler of a signal, and be the one that holds a lock: it would wait for itself.
// So it hurries (_mi_lock_hurry), and takes locks for looks only, which can be left out.
//
// Builds that check blocks may find a fault while they hold a lock, and what the program does about it may need that lock.  So they
// count what each thread holds, and say it when it holds none (_mi_lock_postpone).
#pragma once

#include "prim.h"

typedef struct mi_lock_s {
  mi_atomic(uint32_t) state;
} mi_lock_t;

#define MI_LOCK_SPINS 64 // about 1-2 us: longer than our critical sections, shorter than a sleep and a wake-up

// Threads that have ended share their variables where those are copied (local.h).
#define MI_LOCK_COUNTED (MI_CHECKED && !MI_LOCAL_COPIED)

typedef struct mi_lock_count_s {
  size_t n;                // locks that the thread holds
  void (*when_none)(void); // is called once, when it has given back the last one; NULL: nothing is
} mi_lock_count_t;

#if MI_LOCK_COUNTED
extern MI_LOCAL(mi_lock_count_t, _mi_lock_count);
void _mi_lock_at_none(void);
#endif

static inline void _mi_lock_note_held(void) {
#if MI_LOCK_COUNTED
  mi_local(_mi_lock_count).n++;
#endif
}

static inline void _mi_lock_note_given_back(void) {
#if MI_LOCK_COUNTED
  mi_lock_count_t* count = &mi_local(_mi_lock_count);
  if (--count->n == 0 && mi_unlikely(count->when_none != NULL)) _mi_lock_at_none();
#endif
}

// Does the calling thread hold a lock, so that `act` will be called when it does not any more?  Not in other builds, and not while
// it forks: the locks let it pass.
bool _mi_lock_postpone(void (*act)(void));

mi_cold void _mi_lock_wait(mi_lock_t* lock);

// The thread that forks, as _mi_lock_self names it; 0: none does.
extern mi_atomic(uintptr_t) _mi_lock_forker;

// A name of the calling thread that its copy in the child of a fork has too.
uintptr_t _mi_lock_self(void);

static inline bool _mi_lock_is_forker(void) {
  uintptr_t forker = mi_load_relaxed(&_mi_lock_forker); // its own store, or not equal to its name
  return mi_unlikely(forker != 0) && forker == _mi_lock_self();
}

// For looks.  False, without the lock: the calling thread hurries, and did not get it within a second, or did not get another one
// before.
bool _mi_lock_look(mi_lock_t* lock);

// The calling thread hurries from now on, or (false) no longer.
void _mi_lock_hurry(bool is_hurried);
bool _mi_lock_is_hurried(void);

// For a loop that waits, without a lock, until another thread is done with a few instructions: while *word is `seen` it is not.
// Sleeps after a while: if the caller is a real-time thread, the other one may not run before it does.
void _mi_lock_pause(mi_atomic(uint32_t)* word, uint32_t seen, int* n_spins);

static inline bool _mi_lock_try(mi_lock_t* lock) {
  uint32_t expected = 0;
  if (!mi_cas_strong(&lock->state, &expected, 1, acquire, relaxed)) return false;
  _mi_lock_note_held();
  return true;
}

static inline void _mi_lock_acquire(mi_lock_t* lock) {
  if (_mi_lock_is_forker()) return;
  if (mi_unlikely(!_mi_lock_try(lock))) _mi_lock_wait(lock);
}

// Of what has just been made: the thread that forks holds this lock, too, and gives it back with the others.
static inline void _mi_lock_begin(mi_lock_t* lock) {
  if (!_mi_lock_is_forker()) return;
  mi_store_relaxed(&lock->state, 1u);
  _mi_lock_note_held();
}

// Also by the thread that forks: the lock will not be among those that it gives back.
static inline void _mi_lock_give_back(mi_lock_t* lock) {
  // release: whoever takes the lock next sees what we wrote under it
  uint32_t was = mi_atomic_ns(atomic_exchange_explicit)(&lock->state, 0, mi_memory_order(release));
  if (MI_DEBUG > 1 && was == 0) __builtin_trap(); // nobody held it
  if (mi_unlikely(was == 2)) _mi_prim_wake(&lock->state, false);
  _mi_lock_note_given_back();
}

static inline void _mi_lock_release(mi_lock_t* lock) {
  if (!_mi_lock_is_forker()) _mi_lock_give_back(lock);
}
