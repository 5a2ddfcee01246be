// The process and its threads, as macOS, the BSDs and Haiku have them: for the files of these systems.  Layer: prim.
#pragma once

#include "posix_process.h"

// Milliseconds since a time of the calendar.
int64_t _mi_unix_process_since_ms(const struct timeval* start);
// For _mi_prim_wait where a thread cannot sleep on a word: a short sleep, after which the caller looks again.
void    _mi_unix_process_nap(int64_t timeout_ms);
