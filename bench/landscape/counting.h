// What is counted, and in which part of a program.
//
// A count begins with counting_begin() and ends with counting_end().  What this program itself executes does not count, nor do
// libc's functions that clear and copy, which differ from processor to processor.
#ifndef LANDSCAPE_COUNTING_H
#define LANDSCAPE_COUNTING_H

#include <stdbool.h>

enum mode {
  mode_callgrind, // instructions, by callgrind: this runs in it
  mode_step,      // instructions, by a trap after each
  mode_calls,     // system calls, by the parent
  mode_faults,    // minor page faults, by the kernel
};

// Before anything else.
void counting_prepare(enum mode mode);

// Runs a function in a process of its own.  0 if it comes to its end, else what waitpid says.
int counting_run(void (*function)(const void*), const void* argument);

// Is a byte to be written in each page of a block?
bool counting_touches_pages(void);

void counting_begin(void);

// Stops, and prints what was counted as a line "NAME COUNT"; callgrind has it as a file of that name.
void counting_end(const char* name);

// This thread is not counted from here on, or is: another one than that which began is not counted unless it says so.
// Was it counted?
bool counting_pause(void);
void counting_resume(void);

#endif
