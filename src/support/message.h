// Everything the allocator says, and what happens on an error.  Layer: support.
//
// MS1  Works before anything is initialised, at any depth (an output function may allocate, fail, and report that), and
//      never allocates itself.  A thread is inside a registered function at most once: what it says meanwhile goes to
//      stderr, and an error meanwhile is not reported to the handler again.
// MS2  errno is the same afterwards.
// MS3  A message is delivered in one piece, so lines of different threads do not mix.  What is over 500 characters is
//      cut off.
// MS4  In builds that check blocks, a thread that holds a lock of the library says what it has to say, and calls the handler of
//      errors, when it has given back the last one: either may need the lock (prim/lock.h).  It is a few lines, of a few threads;
//      more are cut off.
//
// Messages are lines: a newline is added where there is none, except by _mi_message_raw and _mi_message_write.
#pragma once

#include "../base/compiler.h"
#include "../base/public.h"

// To `out`, or where all output goes if that is NULL.
void _mi_message_write(mi_output_fun* out, void* arg, const char* text);
void _mi_message_raw(mi_output_fun* out, void* arg, const char* fmt, ...) mi_printf(3, 4);

// With option verbose at `level` or above; 0: always.
void _mi_message_print(long level, const char* fmt, ...) mi_printf(2, 3);

// With option show_errors, max_warnings times; with verbose always.
mi_cold void _mi_message_warning(const char* fmt, ...) mi_printf(1, 2);

// Prints as a warning does (max_errors times; always if the process is going to end), and calls the registered handler,
// or does what the build does by default: aborts, or returns.  err is a code of mi_register_error.
mi_cold void _mi_message_error(int err, const char* fmt, ...) mi_printf(2, 3);

// The calling thread is the main thread: its errors do not say which thread they come from.
void _mi_message_init(void);

// In the child of a fork: whoever was registering a function is not there any more.
void _mi_message_after_fork(void);
