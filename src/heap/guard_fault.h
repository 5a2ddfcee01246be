// What is said of an access to memory that a guarded block has made inaccessible.  Layer: heap.
//
// GF1  A report is written by a signal handler that may have little stack (MI_FAULT_STACK), and while other threads write
//      theirs: line by line with the system's `write`, without locks, thread-local variables or anything of libc.
#pragma once

// Faults are reported from now on.
void _mi_guard_fault_watch(void);

// The same, and stacks can be taken (support/trace.h).
void _mi_guard_fault_start(void);
