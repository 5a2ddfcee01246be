// What the scheduler's copy of the library is compiled with (-include): each atomic operation, each fence and each access to the link of
// a free block is a step, before which the scheduler may let another virtual thread go on; and what the system does for threads, time
// and chance, the scheduler does (schedule.c).  The sources of src are as they are.
#pragma once

// ---- steps ------------------------------------------------------------------------------------------------------------

// Where the step is: the last seven characters of the name of the file, and the line.
void _mi_schedule_step(const char* file, int line);
// The same in a loop that waits for another thread.
void _mi_schedule_pause(const char* file, int line);
// Does a weak compare-and-swap fail although the value is the expected one?
int  _mi_schedule_fails(void);

#include "base/atomic.h"

// An operation that is missing here does not compile.  What is stored is computed before the step: another thread may come between
// the load and the store of `store(x, load(x) + 1)`.
#define schedule_step() _mi_schedule_step(&__FILE__[sizeof(__FILE__) - 8], __LINE__)

#undef mi_atomic_ns
#define mi_atomic_ns(f) schedule_##f

#define schedule_before(operation) (schedule_step(), (operation))
#define schedule_with(operation, p, x, order) \
  __extension__({ \
    __auto_type                      schedule_p = (p); \
    __typeof__((void)0, *schedule_p) schedule_x = (x); \
    schedule_step(); \
    operation(schedule_p, schedule_x, order); \
  })

#define schedule_atomic_load_explicit(p, order)         schedule_before(atomic_load_explicit(p, order))
#define schedule_atomic_store_explicit(p, x, order)     schedule_with(atomic_store_explicit, p, x, order)
#define schedule_atomic_exchange_explicit(p, x, order)  schedule_with(atomic_exchange_explicit, p, x, order)
#define schedule_atomic_fetch_add_explicit(p, x, order) schedule_before(atomic_fetch_add_explicit(p, x, order))
#define schedule_atomic_fetch_sub_explicit(p, x, order) schedule_before(atomic_fetch_sub_explicit(p, x, order))
#define schedule_atomic_fetch_and_explicit(p, x, order) schedule_before(atomic_fetch_and_explicit(p, x, order))
#define schedule_atomic_fetch_or_explicit(p, x, order)  schedule_before(atomic_fetch_or_explicit(p, x, order))
#define schedule_atomic_compare_exchange_strong_explicit(p, old, x, success, failure) \
  schedule_before(atomic_compare_exchange_strong_explicit(p, old, x, success, failure))
#define schedule_atomic_compare_exchange_weak_explicit(p, old, x, success, failure) \
  schedule_before(_mi_schedule_fails() ? (*(old) = atomic_load_explicit(p, failure), false) \
                                       : atomic_compare_exchange_strong_explicit(p, old, x, success, failure))
#define schedule_atomic_thread_fence(order) schedule_before(atomic_thread_fence(order))
#define schedule_atomic_signal_fence(order) schedule_before(atomic_signal_fence(order))

#define mi_cpu_pause() _mi_schedule_pause(&__FILE__[sizeof(__FILE__) - 8], __LINE__)

// Blocks are not filled, which would take more time than all else: tests write into them what they have to be told by.
#include "base/mode.h"
#undef MI_FILL_NEW
#define MI_FILL_NEW 0

// ---- thread-local variables -------------------------------------------------------------------------------------------

#include "prim/local.h"

// How far those of the virtual thread that runs are from the section that has them as they are declared.
extern uintptr_t _mi_schedule_distance;

#undef MI_LOCAL
#undef mi_local
#define MI_LOCAL(type, name) __attribute__((section("mi_local"))) type name
#define mi_local(name)       (*(__typeof__(name)*)((uintptr_t)&(name) + _mi_schedule_distance))

// ---- the system -------------------------------------------------------------------------------------------------------

#define _mi_prim_wait                 _mi_schedule_wait
#define _mi_prim_wake                 _mi_schedule_wake
#define _mi_prim_thread_exit_init     _mi_schedule_exit_init
#define _mi_prim_thread_exit_stop     _mi_schedule_exit_stop
#define _mi_prim_thread_exit_arm      _mi_schedule_exit_arm
#define _mi_prim_thread_exit_is_armed _mi_schedule_exit_is_armed
#define _mi_prim_thread_exit_is_sure  _mi_schedule_exit_is_sure
#define _mi_prim_thread_pulse_begin   _mi_schedule_pulse_begin
#define _mi_prim_thread_has_ended     _mi_schedule_has_ended
#define _mi_prim_thread_pulse_end     _mi_schedule_pulse_end
#define _mi_prim_fork_init            _mi_schedule_fork_init
#define _mi_prim_thread_watch         _mi_schedule_watch
#define _mi_prim_thread_watched       _mi_schedule_watched
#define _mi_prim_thread_after_fork    _mi_schedule_after_fork
#define _mi_prim_thread_is_alone      _mi_schedule_is_alone
#define _mi_prim_thread_start         _mi_schedule_start
#define _mi_prim_thread_join          _mi_schedule_join
#define _mi_prim_thread_id            _mi_schedule_id
#define _mi_prim_is_ending            _mi_schedule_is_ending
#define _mi_prim_clock_ms             _mi_schedule_clock_ms
#define _mi_prim_clock_ns             _mi_schedule_clock_ns
#define _mi_prim_cpu_time_ms          _mi_schedule_clock_ms
#define _mi_prim_random               _mi_schedule_random
#define _mi_prim_environment_entry    _mi_schedule_environment_entry
#define _mi_prim_numa_node_count      _mi_schedule_numa_node_count

// ---- links of free blocks, and spinning ---------------------------------------------------------------------------------

#include "page/page.h"
#include "prim/lock.h"

#define _mi_block_set_next(block, next) (_mi_block_set_next(block, next), schedule_step())
#define _mi_block_next_fast(block, next) \
  __extension__({ \
    bool schedule_found = _mi_block_next_fast(block, next); \
    schedule_step(); \
    schedule_found; \
  })

// A thread that does not get a lock at once soon sleeps.
#undef MI_LOCK_SPINS
#define MI_LOCK_SPINS 2
