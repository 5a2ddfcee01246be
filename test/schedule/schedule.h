// Virtual threads that run the real code of the library, one at a time, in an order that a seed decides.
//
// SC1  Between two steps (hooks.h) a virtual thread is alone.  So an interleaving is the list of steps at which another thread goes on,
//      and of the threads that do: the same seed gives the same list, of which `trace` is a hash.
// SC2  A thread that waits (for a lock, or a word) goes on when another one wakes it.  If all wait, those that wait for a limited time go
//      on; if there are none, that is a deadlock.  More steps than `steps_max` in one run are a livelock.
// SC3  The memory is sequentially consistent.  What weaker orders do, test/model/relacy looks for.
// SC4  A failure ends the process, with what is needed to see it again.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SCHEDULE_TASKS = 6 }; // the first is that of main

typedef void schedule_body_fun(size_t task);

// Once, before the library is used.
void schedule_init(void);

// One run begins: tasks 1 to n, which are new threads.  The seed decides how threads take turns.
void schedule_begin(uint64_t seed, size_t n, schedule_body_fun* body);
// Instead of by chance: in schedule_together this task takes n steps, then the others do n_others (SIZE_MAX: all that they can), then it
// goes on for as long as it can, and then they do.
void schedule_preempt(size_t first, size_t n, size_t n_others);
// Runs one task until it calls schedule_barrier or ends; nobody interrupts it.
void schedule_alone(size_t task);
// Runs all tasks until each has called schedule_barrier or ended.
void schedule_together(void);
// By a task: the part of its body up to here is done.
void schedule_barrier(void);

// The task that runs; 0: main.
size_t schedule_task(void);

// The thread of the task that runs ends, as the system would tell the library; what it does from then on it does past its exit.
void schedule_thread_exit(void);
// Is that noticed when it happens?  Else such a thread does nothing from then on.
bool schedule_exit_is_seen(void);
// ... and the task goes on as a new thread.
void schedule_thread_new(void);

// How the end of a thread comes to be known (prim.h); of a new one chance says how.
typedef enum schedule_end_e {
  SCHEDULE_END_SEEN,   // by a destructor
  SCHEDULE_END_UNSURE, // by a destructor, perhaps: it has a pulse, too, and looks for others whose end nobody has told
  SCHEDULE_END_UNSEEN  // by its pulse only; it looks, too
} schedule_end_t;
void schedule_thread_ends(schedule_end_t how);
// What the system does when a thread arms its destructor: libc may allocate there.
void schedule_thread_on_arm(void (*act)(void));

// A fork by the task that runs; true in the child, which has no other task, and must end itself.  In the parent *status is that of
// the child.
bool schedule_fork(int* status);

// Time goes by.
void schedule_sleep(int64_t ms);

// Of this run: chance, so far; how many steps; how often another thread went on.
uint64_t schedule_trace(void);
size_t   schedule_steps(void);
size_t   schedule_switches(void);

// Are switches, and what tests note, printed?  For people who look for what went wrong.
void schedule_show(bool is_shown);
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
void schedule_note(const char* fmt, ...);

// SC4.  `where` says what ran; it is said by schedule_fail.
void schedule_set_place(uint64_t batch, size_t run, const char* scenario);
#if defined(__GNUC__)
__attribute__((noreturn, format(printf, 1, 2)))
#endif
void schedule_fail(const char* fmt, ...);
