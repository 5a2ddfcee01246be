// Threads of systems that have one.  Layer: prim.
#include "prim.h"

#include <errno.h>

#if !MI_PRIM_THREADS

// clang-format off

// It ends with the program, so nobody has to hear of it.
MI_PRIM_DEFAULT void _mi_prim_thread_exit_init(void (*done)(void)) { (void)done; }
MI_PRIM_DEFAULT int  _mi_prim_thread_exit_arm(void)                { return 0; }
MI_PRIM_DEFAULT bool _mi_prim_thread_exit_is_armed(void)           { return true; }
MI_PRIM_DEFAULT bool _mi_prim_thread_exit_is_sure(void)            { return true; }
MI_PRIM_DEFAULT void _mi_prim_thread_exit_stop(void)               {}

MI_PRIM_DEFAULT int  _mi_prim_thread_pulse_begin(mi_prim_pulse_t* pulse) { (void)pulse; return ENOTSUP; }
MI_PRIM_DEFAULT bool _mi_prim_thread_has_ended(mi_prim_pulse_t* pulse)  { (void)pulse; return false; }
MI_PRIM_DEFAULT void _mi_prim_thread_pulse_end(mi_prim_pulse_t* pulse)   { (void)pulse; }

MI_PRIM_DEFAULT int    _mi_prim_fork_init(void (*prepare)(void), void (*parent)(void), void (*child)(void)) { (void)prepare, (void)parent, (void)child; return 0; }
MI_PRIM_DEFAULT int    _mi_prim_thread_watch(void (*started)(void), void (*ended)(bool is_last)) { (void)started, (void)ended; return ENOTSUP; }
MI_PRIM_DEFAULT size_t _mi_prim_thread_watched(void)          { return 0; }
MI_PRIM_DEFAULT void   _mi_prim_thread_after_fork(void)       {}
MI_PRIM_DEFAULT bool   _mi_prim_thread_is_alone(void)         { return true; }
MI_PRIM_DEFAULT int    _mi_prim_thread_start(void (*run)(void)) { (void)run; return ENOTSUP; }
MI_PRIM_DEFAULT void   _mi_prim_thread_join(void)             {}

MI_PRIM_DEFAULT bool      _mi_prim_has_thread_storage(void)   { return true; }
MI_PRIM_DEFAULT uintptr_t _mi_prim_thread_id(void)            { return 1; }
MI_PRIM_DEFAULT bool      _mi_prim_thread_is_main(void)       { return true; }

// Nobody could wake the only thread: whoever waits looks again at once.
MI_PRIM_DEFAULT void _mi_prim_wait(mi_atomic(uint32_t)* word, uint32_t expected, int64_t timeout_ms) { (void)word, (void)expected, (void)timeout_ms; }
MI_PRIM_DEFAULT void _mi_prim_wake(mi_atomic(uint32_t)* word, bool all) { (void)word, (void)all; }

// clang-format on

#endif
