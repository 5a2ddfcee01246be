// What storms-heaps knows of heaps and blocks: places that have a heap at times, and slots that have a block.
//
// HS1  Who allocates from the heap of a place holds the lock of the place for reading; who ends, visits or checks the heap holds it
//      for writing.  Who reads or changes a slot holds its lock.  A place is locked before a slot.
// HS2  A block belongs to the heap that it came from until that is deleted, then to the main heap.
// HS3  The child of a fork has the locks that other threads held.  What they guard is lost to it.
#pragma once

#include "storm.h"

// ThreadSanitizer follows 64 locks that a thread holds.
enum { n_places = 8, n_slots = (TEST_TSAN ? 50 : 500), main_place = 0 };

typedef struct place_s {
  pthread_rwlock_t lock;
  mi_heap_t*       heap; // NULL: none there; that of main_place is the main heap
  size_t           life; // how many heaps have ended here
} place_t;

typedef struct slot_s {
  pthread_mutex_t lock;
  uint8_t*        p;           // as storm_write has written it; NULL: no block
  size_t          place, life; // where it came from
  bool            is_lost;     // HS3
} slot_t;

typedef struct worker_s {
  pthread_t thread;
  rng_t     rng;
  size_t    n_steps;
  size_t    place, life; // of its default heap
} worker_t;

static place_t places[n_places];
static slot_t  slots[n_slots];
static bool    is_child;

static inline size_t pick(worker_t* w, size_t n) {
  return rng_below(&w->rng, n);
}

// ---- places and slots -----------------------------------------------------------------------------------------------

// Locks a place that has a heap; NULL: this one cannot be used now.
static inline place_t* place_use(size_t i) {
  if (pthread_rwlock_tryrdlock(&places[i].lock) != 0) return NULL;
  if (places[i].heap != NULL) return &places[i];
  pthread_rwlock_unlock(&places[i].lock);
  return NULL;
}

static inline void place_leave(place_t* at) {
  pthread_rwlock_unlock(&at->lock);
}

// The place of the thread's default heap, which is the main heap when that has ended.
static inline place_t* place_use_default(worker_t* w) {
  place_t* at = &places[w->place];
  if (pthread_rwlock_tryrdlock(&at->lock) != 0) return NULL;
  if (at->life == w->life) return at;
  place_leave(at);
  w->place = main_place;
  w->life = 0;
  return place_use(main_place);
}

static inline bool slot_use(slot_t* s, bool may_wait) {
  return !s->is_lost && (may_wait ? pthread_mutex_lock(&s->lock) : pthread_mutex_trylock(&s->lock)) == 0;
}

static inline void slot_leave(slot_t* s) {
  pthread_mutex_unlock(&s->lock);
}

static inline void slots_lose(void) {
  for (size_t i = 0; i < n_slots; i++) {
    if (slot_use(&slots[i], false)) slot_leave(&slots[i]);
    else slots[i].is_lost = true;
  }
}

// Does its block belong to the heap of this place?  Of the main heap this is known while no other thread runs.
static inline bool slot_is_of(const slot_t* s, const place_t* at) {
  if (at == &places[s->place] && s->life == at->life) return s->p != NULL;
  return s->p != NULL && at == &places[main_place] && s->life != places[s->place].life;
}

static inline void slot_set(worker_t* w, slot_t* s, const place_t* at, void* p, size_t size) {
  s->p = (uint8_t*)p;
  s->place = (size_t)(at - places);
  s->life = at->life;
  CHECK_FOR(p != NULL, "%zu bytes of place %zu", size, s->place);
  CHECK_FOR(mi_heap_of(p) == at->heap, "%p+%zu of place %zu is of %p", p, size, s->place, (void*)mi_heap_of(p));
  if (p != NULL) storm_write(&w->rng, p, size);
}

static inline void slot_check(const slot_t* s) {
  CHECK_FOR(storm_is_whole(s->p), "%p of place %zu", (void*)s->p, s->place);
}

static inline void slot_put(slot_t* s) {
  if (s->p != NULL) slot_check(s);
  mi_free(s->p);
  s->p = NULL;
}
