// Thread-local variables of Emscripten's threads.  Layer: prim.
//
// A worker runs one thread after the other.  Before a thread runs, and after the last destructor of its thread-specific data, the
// system allocates and frees for it: then there are no thread-local variables of the compiler, or they are freed memory.
//
// ET1  A thread's copy is its own from its first use of a variable until _mi_local_end.  What a thread leaves whose exit is not
//      noticed, the next thread of its worker has.
// ET2  Threads between _mi_local_end and their end share one copy, that of the first of them (local.c, LK3).  Which thread of a
//      worker that is, a number of threads says that is not used again; no thread runs where the system knows none.
#include "local_place.h"

#if MI_LOCAL_BY_WORKER

  #include <pthread.h>
  #include <unistd.h>

  #if defined(__wasm64__)
    #define LOCAL_WORD "i64"
  #else
    #define LOCAL_WORD "i32"
  #endif

// The second is the number of the last thread of the worker that has ended.
__asm__(".globl _mi_local_worker\n"
        "_mi_local_worker:\n"
        ".globaltype local_worker_ended, " LOCAL_WORD "\n"
        "local_worker_ended:\n");

static mi_atomic(uintptr_t) local_of_ended;

static uintptr_t local_worker_get(void) {
  uintptr_t distance;
  __asm__ volatile("global.get _mi_local_worker\n\tlocal.set %0" : "=r"(distance));
  return distance;
}

static void local_worker_set(uintptr_t distance) {
  __asm__ volatile("local.get %0\n\tglobal.set _mi_local_worker" : : "r"(distance));
}

static uintptr_t local_ended_get(void) {
  uintptr_t thread;
  __asm__ volatile("global.get local_worker_ended\n\tlocal.set %0" : "=r"(thread));
  return thread;
}

static void local_ended_set(uintptr_t thread) {
  __asm__ volatile("local.get %0\n\tglobal.set local_worker_ended" : : "r"(thread));
}

static bool local_has_ended(void) {
  return (uintptr_t)pthread_self() == 0 || (uintptr_t)gettid() == local_ended_get();
}

mi_cold uintptr_t _mi_local_make(void) {
  uintptr_t distance = mi_load_acquire(&local_of_ended);
  if (distance != 0 && local_has_ended()) return distance;
  distance = _mi_local_place_take();
  local_worker_set(distance);
  return distance;
}

void _mi_local_end(void) {
  uintptr_t distance = local_worker_get(), none = 0;
  if (distance == 0) return;
  local_worker_set(0);
  local_ended_set((uintptr_t)gettid());
  if (!mi_cas_strong(&local_of_ended, &none, distance, acq_rel, acquire)) _mi_local_place_give_back(distance);
}

// There is no fork.
void _mi_local_after_fork(void) {}

#endif
