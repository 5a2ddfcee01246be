/* The heap profile: the memory that is in use, and the memory that was allocated, by call stack.

   Some allocations are sampled: a block of n bytes with the probability 1 - exp(-n / rate), independently of all others. Each
   sample stands for several blocks, one over that probability, so that the expected sums are right whatever the rate is. With the
   default rate, 512 KiB, a program pays about ten microseconds for each 512 KiB that it allocates, an OS page for each 512 KiB in use,
   and about 5 ns for each block (docs/design/profile.md). While the profile is off, it costs nothing.

   It can be switched on in every build, except those for Valgrind and sanitizers:

     by the environment   MIMALLOC_PROFILE=PREFIX       from the start; a profile is written at the end of the process
                          MIMALLOC_PROFILE_RATE=BYTES   the rate, of this profile and of those that the program starts later
                          MIMALLOC_PROFILE_LEAKS=N      also prints, at the end, the N stacks with the most bytes in use
     by the program       mi_profile_start and so on
     from outside         MIMALLOC_PROFILE_SIGNAL=N at the start of the program, and then the signal N. The signal with a value
                          (sigqueue): 1 starts the profile, 2 stops it, 3 writes it. The signal without a value (kill) starts the
                          profile, or writes it if it is on. The next allocation that finds no block ready carries this out, or, if
                          the program has several threads, the library does within 100 ms. MIMALLOC_PROFILE is the prefix of the
                          files, ./mimalloc by default; together with MIMALLOC_PROFILE_SIGNAL it does not start the profile. If the
                          program has a handler for the signal when the library starts, the signal is left alone.

   Profiles are files PREFIX.PID.NUMBER.pb in the format of pprof (profile.proto, not compressed). A file is empty until it is
   complete; meanwhile the contents are in FILE.part. If a profile cannot be written, both files are removed and the program goes on. If
   the environment or a signal has asked for the profile, a warning is printed (MIMALLOC_SHOW_ERRORS=1). The child of a fork goes on
   with the profile of its parent, and writes files of its own.

   Files are written on Linux, Android, macOS, the BSDs and Haiku. Windows, WebAssembly and ports of your own have neither files nor
   the signal: there mi_profile_dump_to is the way to a profile, which has addresses but no names of files.

   All functions may be called by any thread at any time, but not by a handler of a signal. Errors are errno values; errno itself
   is left alone. */
#pragma once
#ifndef MIMALLOC_PROFILE_H
#define MIMALLOC_PROFILE_H

#include "mimalloc.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* Starts the profile, or changes its rate: the mean distance of samples in bytes, at most 1 GiB. 0: the rate of the environment, or
   512 KiB. Blocks that were allocated before the start are not in the profile. ENOMEM: there is no memory for its tables (about
   8 MiB of address space, backed as they fill). ENOTSUP: this is a build for a tool that watches every block. */
mi_decl_export int mi_profile_start(size_t rate) mi_attr_noexcept;

/* Stops taking samples. Blocks that are freed still leave the profile, so that it can be written later. If the profile is started
   again, it goes on with its numbers. */
mi_decl_export void mi_profile_stop(void) mi_attr_noexcept;

/* Writes a profile to a new file. With path NULL its name is the next PREFIX.PID.NUMBER.pb. After an error there is no new file:

     EEXIST          there is such a file, or one of that name with .part behind it
     EBUSY           another thread is writing a profile
     EINVAL          the profile was never started
     ENOTSUP         there are no files on this system
     ENAMETOOLONG    the name has more than 847 characters
     EFBIG           the limit on the size of files (RLIMIT_FSIZE) forbids it; the process does not end
     ENOENT, EACCES, ENOSPC, EMFILE, ...   the error of the system

   On Linux this function is not a cancellation point. */
mi_decl_export int mi_profile_dump(const char* path) mi_attr_noexcept;

/* The same through a function, which is called with one part of the profile after the other. It returns 0, or an errno value that
   ends the writing and becomes the result. It may allocate, but must not write a profile itself (EBUSY). EINVAL: `write` is NULL. */
typedef int(mi_cdecl mi_profile_write_fun)(const void* data, size_t size, void* arg);
mi_decl_export int mi_profile_dump_to(mi_profile_write_fun* write, void* arg) mi_attr_noexcept;

/* Prints the stacks with the most bytes in use: n_max of them, but never more than 64. `out` as in mi_stats_print_out. */
mi_decl_export void mi_profile_print_leaks(size_t n_max, mi_output_fun* out, void* arg) mi_attr_noexcept;

typedef struct mi_profile_info_s {
  size_t rate;          /* the present rate, in bytes; 0: no samples are taken */
  size_t samples;       /* samples that were taken */
  size_t live;          /* sampled blocks in use that the profile has: at most 65536. If there are more, the rate is doubled, and
                           each second one is left out */
  size_t stacks;        /* distinct stacks: at most 16384 */
  size_t dropped;       /* samples that are missing from the memory in use, because there was no room for them */
  size_t other;         /* samples for whose stacks there was no room: they are counted together */
} mi_profile_info_t;

mi_decl_export void mi_profile_get_info(mi_profile_info_t* info) mi_attr_noexcept;

#if defined(__cplusplus)
}
#endif

#endif
