// The statistics in a file that other processes map.  Layer: api.  docs/design/publish.md has the format.
//
// PB1  Without the option nothing of this is touched: no memory, no system call, no observer of rounds.
// PB2  One thread writes at a time, the one that makes a round: the lock of rounds guards everything here.
// PB3  The sequence is odd while values are written.  A reader that finds the same even number before and after has values of one
//      update.  What else a file has does not change once its magic number is there, but for its state.
// PB4  With the option at 1 all system calls are made where it is set.  Later there are none: a program may forbid them.
// PB5  The child of a fork never writes to the file of its parent.
// PB6  Of several copies of the library in a process one publishes, the first: the file of a copy that has its file mapped stays.
#pragma once

// Obeys the option from now on.
void _mi_publish_init(void);

// The process ends: the last numbers, and that they are the last.
void _mi_publish_done(void);
