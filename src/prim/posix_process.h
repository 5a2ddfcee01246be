// The process, as Linux, macOS, the BSDs and Haiku have it: for the files of these systems.  Layer: prim.
#pragma once

#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>

#include "prim.h"

int64_t          _mi_posix_process_clock_ns(clockid_t clock);
// For _mi_prim_random where the system has no random numbers, or none yet: no secret, but another one each time.
uint64_t         _mi_posix_process_guess(void);
// What the system says of the process, and from it the times of *info; the rest of that is zero.
void             _mi_posix_process_usage(struct rusage* usage, mi_process_info_t* info);
// A timeout of _mi_prim_wait as system calls take it, in *t; NULL for ever.
struct timespec* _mi_posix_process_timeout(int64_t timeout_ms, struct timespec* t);

// Between these two libc does not cancel the calling thread: around functions at which it would, while locks are held.
int  _mi_posix_process_shield(void);
void _mi_posix_process_unshield(int state);

// May so much more be written to a file (RLIMIT_FSIZE)?  Writing beyond that would end the process.
bool _mi_posix_process_may_write(int fd, size_t size);

// Is standard error a file with such a limit?  No unless it was prepared.
bool _mi_posix_process_stderr_is_limited(void);
