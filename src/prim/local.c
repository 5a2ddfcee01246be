// Thread-local variables by a key of thread-specific data, where the compiler's way may allocate.  Layer: prim.
//
// LK2  A thread's copy is its own from its first use of a variable until _mi_local_end, or until the last of the passes in which
//     the system calls destructors where the exit of the thread is not noticed (thread_exit.c).
// LK3  Threads between _mi_local_end and their end share one copy.  It is that of the first of them: it says that there is no
//     theap any more, and the rest of it is not worth an order among those threads.
// LK4  The system may allocate when it stores the first value of a key (OpenBSD does, glibc for most keys).  Meanwhile the thread
//     finds its copy in a table.
#include "local_place.h"

#if MI_LOCAL_BY_KEY

  #include <errno.h>
  #include <limits.h>
  #include <sched.h>

  #if !defined(PTHREAD_DESTRUCTOR_ITERATIONS)
    #define PTHREAD_DESTRUCTOR_ITERATIONS 4 // what POSIX demands at least
  #endif

mi_atomic(uintptr_t) _mi_local_key;
mi_atomic(uintptr_t) _mi_local_direct;

static MI_LOCAL(size_t, local_n_passes); // of destructors

// ---- threads while the system stores their value (LK4) -----------------------------------------------------------------

typedef struct local_making_s {
  mi_atomic(uintptr_t) thread; // 0: free
  uintptr_t            distance;
} local_making_t;

  #define LOCAL_MAKING_MAX 16

static local_making_t local_making[LOCAL_MAKING_MAX];

static uintptr_t local_making_find(void) {
  uintptr_t self = (uintptr_t)pthread_self();
  for (size_t i = 0; i < LOCAL_MAKING_MAX; i++) {
    if (mi_load_relaxed(&local_making[i].thread) == self) return local_making[i].distance;
  }
  return 0;
}

static local_making_t* local_making_begin(uintptr_t distance) {
  for (;;) {
    for (size_t i = 0; i < LOCAL_MAKING_MAX; i++) {
      uintptr_t none = 0;
      if (!mi_cas_strong(&local_making[i].thread, &none, (uintptr_t)pthread_self(), acquire, relaxed)) continue;
      local_making[i].distance = distance; // only this thread reads it
      return &local_making[i];
    }
    sched_yield(); // more threads than places begin now
  }
}

// ---- the key --------------------------------------------------------------------------------------------------------

static mi_atomic(uintptr_t) local_of_ended; // LK3

static void local_store(uintptr_t distance) {
  if (pthread_setspecific((pthread_key_t)(mi_load_relaxed(&_mi_local_key) - 1), (void*)distance) != 0) {
    _mi_local_place_fail("mimalloc: the system cannot store where the variables of a thread are\n");
  }
}

// In each pass the value is stored again: other destructors free.
static void local_destructor(void* value) {
  uintptr_t distance = (uintptr_t)value;
  local_store(distance);
  if (distance == mi_load_relaxed(&local_of_ended) || _mi_prim_thread_exit_is_armed()) return;
  if (++mi_local(local_n_passes) < PTHREAD_DESTRUCTOR_ITERATIONS) return;
  local_store(0);
  _mi_local_place_give_back(distance);
}

// Two threads may be the first to use a variable.
static void local_key_make(void) {
  pthread_key_t key;
  uintptr_t     none = 0;
  if (pthread_key_create(&key, &local_destructor) != 0) {
    _mi_local_place_fail("mimalloc: all keys of thread-specific data are in use\n");
  }
  if (!mi_cas_strong(&_mi_local_key, &none, (uintptr_t)key + 1, acq_rel, relaxed)) pthread_key_delete(key);
}

static uintptr_t local_key_value(void) {
  uintptr_t key = mi_load_acquire(&_mi_local_key);
  return key == 0 ? 0 : (uintptr_t)pthread_getspecific((pthread_key_t)(key - 1));
}

// Does the system keep the value where we think?
static void local_key_check(uintptr_t distance) {
  uintptr_t key = mi_load_relaxed(&_mi_local_key);
  if (MI_LOCAL_HAS_DIRECT && _mi_local_read(key - 1) == distance) mi_store_relaxed(&_mi_local_direct, key);
}

mi_cold uintptr_t _mi_local_make(void) {
  int       saved = errno;
  uintptr_t distance = local_key_value();
  if (distance == 0) distance = local_making_find();
  if (distance == 0) {
    if (mi_load_acquire(&_mi_local_key) == 0) local_key_make();
    distance = _mi_local_place_take();
    local_making_t* making = local_making_begin(distance);
    local_store(distance);
    mi_store_release(&making->thread, (uintptr_t)0);
    local_key_check(distance);
  }
  errno = saved;
  return distance;
}

// ---- the end of a thread, and fork ------------------------------------------------------------------------------------

void _mi_local_end(void) {
  uintptr_t distance = local_key_value();
  uintptr_t none = 0;
  if (distance == 0 || distance == mi_load_acquire(&local_of_ended)) return;
  if (mi_cas_strong(&local_of_ended, &none, distance, acq_rel, acquire)) return;
  local_store(none);
  _mi_local_place_give_back(distance);
}

// There is one thread now.  Places that others had are free, but for that of threads that have ended.
void _mi_local_after_fork(void) {
  for (size_t i = 0; i < LOCAL_MAKING_MAX; i++) mi_store_relaxed(&local_making[i].thread, (uintptr_t)0);
  _mi_local_place_keep(local_key_value(), mi_load_relaxed(&local_of_ended));
}

#endif
