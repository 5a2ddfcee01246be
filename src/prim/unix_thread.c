// Threads where the library does not stand in for pthread_create, and so starts none of its own.  Layer: prim.
//
// UT1  Where no destructor tells of the end of a thread (thread_exit.c), nothing does: there are no robust mutexes, or not in all
//      versions.  What such a thread leaves stays with its theap.
#include <errno.h>

#include "thread_exit.h"

int _mi_prim_thread_watch(void (*started)(void), void (*ended)(bool is_last)) {
  (void)started, (void)ended;
  return ENOTSUP;
}

int _mi_prim_thread_start(void (*run)(void)) {
  (void)run;
  return ENOTSUP;
}

void _mi_prim_thread_join(void) {}

void _mi_prim_thread_after_fork(void) {
  _mi_thread_exit_after_fork();
}

bool _mi_prim_thread_is_alone(void) {
  return false;
}

int _mi_prim_thread_pulse_begin(mi_prim_pulse_t* pulse) {
  (void)pulse;
  return ENOTSUP;
}

bool _mi_prim_thread_has_ended(mi_prim_pulse_t* pulse) {
  (void)pulse;
  return false;
}

void _mi_prim_thread_pulse_end(mi_prim_pulse_t* pulse) {
  (void)pulse;
}
