// The process and its threads, as macOS, the BSDs and Haiku have them: for the files of these systems.  Layer: prim.
#pragma once

#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>

#include "prim.h"

// What the system says of the process, and from it the times of *info; the rest of that is zero.
void             _mi_unix_process_usage(struct rusage* usage, mi_process_info_t* info);
// For _mi_prim_random where the system has no random numbers, or none yet: no secret, but another one each time.
uint64_t         _mi_unix_process_guess(void);
// Milliseconds since a time of the calendar.
int64_t          _mi_unix_process_since_ms(const struct timeval* start);
// A timeout of _mi_prim_wait as system calls take it, in *t; NULL for ever.
struct timespec* _mi_unix_process_timeout(int64_t timeout_ms, struct timespec* t);
// For _mi_prim_wait where a thread cannot sleep on a word: a short sleep, after which the caller looks again.
void             _mi_unix_process_nap(int64_t timeout_ms);
