// What the environment says about the recording, and its file.
//
//   TRACE_FILE     where it is written; %p becomes the number of the process, and NUMBER.2 and so on for what it executes
//                  later. Without %p the first process that comes to it records, and no other
//   TRACE_PROGRAM  only programs with this name record; any if not set
//   TRACE_LIMIT    the most bytes of the file, with K, M or G; 256M if not set
#pragma once

#include "trace.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct settings_s {
  char   pattern[PATH_MAX]; // absolute
  char   file[PATH_MAX];
  size_t limit;
  bool   is_per_process; // there is %p in the pattern
  dev_t  device;         // of the file: another one may get its name
  ino_t  inode;
} settings_t;

// False if this program is not to be recorded. Ends the process with exit code 2 if a variable has a wrong value.
bool settings_read(settings_t* settings);

// The file of this process, mapped up to the limit; NULL if it has none, and the user has been told why, unless another
// process is recording into it. Of the first file of a program an error ends the process, if `must_be` is true.
trace_header_t* settings_create(settings_t* settings, bool must_be);

// Make the file larger, or cut it off at its end; 0 or the error.
int settings_grow(const settings_t* settings, size_t size);
int settings_cut(const settings_t* settings, size_t size);

// Tells the user, without memory from the allocator.
__attribute__((format(printf, 1, 2))) void settings_say(const char* format, ...);

// A flag that is false, and becomes false in the child of a fork, also of one past the handlers of fork (_Fork, clone).
atomic_bool* settings_flag(void);
