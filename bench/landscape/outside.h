// Functions of libc that this program defines in its place, for the library under test too.
//
// memset, memcpy and memmove are those of libc, and are not counted: they differ from processor to processor.  Where
// instructions are counted, the clock stands still: what the library does when time has passed would fall into other calls in
// each run, and into more of them because counting is slow.
#ifndef LANDSCAPE_OUTSIDE_H
#define LANDSCAPE_OUTSIDE_H

#include <stdbool.h>

void outside_prepare(bool stop_clock);

// Is the instruction one of libc's functions that clear and copy?  libc calls them without the names above.
bool outside_is_string(unsigned long address);

// Prints a line "outside OBJECT FROM TO" for each of these functions, with offsets in the object.
void outside_print(void);

#endif
