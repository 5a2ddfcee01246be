// Threads of Emscripten, beyond what systems with POSIX threads share (thread_exit.c).  Layer: prim.
#include <emscripten/threading.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>

#include "prim.h"

#if MI_PRIM_THREADS

// Where there is no key left for it, nobody hears of the exit of a thread.
int _mi_prim_thread_life_begin(mi_prim_life_t* life) {
  (void)life;
  return ENOTSUP;
}

bool _mi_prim_thread_has_ended(mi_prim_life_t* life) {
  (void)life;
  return false;
}

void _mi_prim_thread_life_end(mi_prim_life_t* life) {
  (void)life;
}

// The library does not stand in for pthread_create, and starts no thread.
int _mi_prim_thread_watch(void (*started)(void), void (*ended)(bool is_last)) {
  (void)started, (void)ended;
  return ENOTSUP;
}

int _mi_prim_thread_start(void (*run)(void)) {
  (void)run;
  return ENOTSUP;
}

void _mi_prim_thread_join(void) {}

// There is no fork.
void _mi_prim_thread_after_fork(void) {}

bool _mi_prim_has_thread_storage(void) {
  return true;
}

uintptr_t _mi_prim_thread_id(void) {
  return (uintptr_t)pthread_self();
}

bool _mi_prim_thread_is_main(void) {
  return emscripten_is_main_runtime_thread() != 0;
}

// A browser's main thread must not sleep: there this spins.
void _mi_prim_wait(mi_atomic(uint32_t)* word, uint32_t expected, int64_t timeout_ms) {
  int saved = errno;
  emscripten_futex_wait((volatile void*)word, expected, timeout_ms < 0 ? INFINITY : (double)timeout_ms);
  errno = saved;
}

void _mi_prim_wake(mi_atomic(uint32_t)* word, bool all) {
  int saved = errno;
  emscripten_futex_wake((volatile void*)word, all ? INT32_MAX : 1);
  errno = saved;
}

#endif
