// Systems without fork, where the library has no thread of its own either.  Layer: prim.
#include <errno.h>

#include "prim.h"

int _mi_prim_fork_init(void (*prepare)(void), void (*parent)(void), void (*child)(void)) {
  (void)prepare, (void)parent, (void)child;
  return 0;
}

void _mi_prim_thread_after_fork(void) {}

bool _mi_prim_thread_is_alone(void) {
  return false;
}

int _mi_prim_thread_watch(void (*started)(void), void (*ended)(bool is_last)) {
  (void)started, (void)ended;
  return ENOTSUP;
}

size_t _mi_prim_thread_watched(void) {
  return 0;
}

int _mi_prim_thread_start(void (*run)(void)) {
  (void)run;
  return ENOTSUP;
}

void _mi_prim_thread_join(void) {}
