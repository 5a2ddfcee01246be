/* The heap profile: what is in use, and what was allocated, by call stack.

   A part of the allocations is sampled: a block of n bytes with the probability 1 - exp(-n / rate), independently of all others.
   Each sample stands for as many blocks as that part is small, so that sums are expected to be right whatever the rate is. With
   the default rate, 512 KiB, a program pays about ten microseconds for each 512 KiB that it allocates, an OS page for each 512 KiB
   in use, and about 5 ns for each block (docs/design/profile.md). While it is off, it costs nothing.

   It can be switched on in every build, but for those for Valgrind and sanitizers:

     by the environment   MIMALLOC_PROFILE=PREFIX       from the start; a profile is written at the end of the process
                          MIMALLOC_PROFILE_RATE=BYTES   the rate, for this and all that follows
                          MIMALLOC_PROFILE_LEAKS=N      prints the N stacks with the most bytes in use at the end, too
     by the program       mi_profile_start and so on
     from outside         MIMALLOC_PROFILE_SIGNAL=N at the start of the program, and then the signal N. Sent with a value (sigqueue):
                          1 starts, 2 stops, 3 writes a profile. Without one (kill): it starts, or writes if it is on.
                          Whatever is asked for is done by the next allocation that finds no block ready, or within 100 ms
                          where the program has several threads. MIMALLOC_PROFILE says where to write, or else it is ./mimalloc;
                          with MIMALLOC_PROFILE_SIGNAL it does not start the profile. The signal is left alone if the program has a
                          handler for it when the library starts.

   Profiles are files PREFIX.PID.NUMBER.pb in the format of pprof (profile.proto, not compressed). A file is empty until it is
   complete; meanwhile there is FILE.part. If it cannot be written, both are removed, the program goes on, and what was asked for by
   the environment or from outside ends with a warning (MIMALLOC_SHOW_ERRORS=1). The child of a fork goes on with the profile of its
   parent, and writes files of its own.

   There are files on Linux, Android, macOS, the BSDs and Haiku. Windows, WebAssembly and ports of your own have neither files nor
   the signal: there a profile is what mi_profile_dump_to gives, with addresses but without names of files.

   All functions may be called by any thread at any time, but not by a handler of a signal. Errors are errno values; errno itself
   is left alone. */
#pragma once
#ifndef MIMALLOC_PROFILE_H
#define MIMALLOC_PROFILE_H

#include "mimalloc.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* Starts the profile, or changes its rate: the mean distance of samples in bytes, at most 1 GiB. 0: that of the environment, or
   512 KiB. Blocks that were allocated before are not in it. ENOMEM: there is no memory for its tables (about 8 MiB of address
   space, backed as they fill). ENOTSUP: in a build for a tool that watches every block. */
mi_decl_export int mi_profile_start(size_t rate) mi_attr_noexcept;

/* Takes no samples any more. Blocks that are freed still leave the profile, so that one can be written later. If it is started
   again it goes on with the numbers that it has. */
mi_decl_export void mi_profile_stop(void) mi_attr_noexcept;

/* Writes a profile to a new file. NULL: to the next PREFIX.PID.NUMBER.pb. EEXIST: there is such a file, or one of that name with
   .part behind it. EBUSY: another thread is just writing one. EINVAL: it was never started. ENOTSUP: there are no files. ENAMETOOLONG:
   more than 847 characters. EFBIG: the limit on the size of files (RLIMIT_FSIZE) forbids it; the process does not end. Otherwise what
   the system says: ENOENT, EACCES, ENOSPC, EMFILE and so on. After an error there is no new file. It is no point of cancellation on
   Linux. */
mi_decl_export int mi_profile_dump(const char* path) mi_attr_noexcept;

/* The same by a function, which is called with one part after the other and returns 0, or an errno value to end it, which is the
   result then. It must not write a profile itself (EBUSY); it may allocate. EINVAL: `write` is NULL. */
typedef int(mi_cdecl mi_profile_write_fun)(const void* data, size_t size, void* arg);
mi_decl_export int mi_profile_dump_to(mi_profile_write_fun* write, void* arg) mi_attr_noexcept;

/* Prints the stacks with the most bytes in use, at most n_max (64). `out` as in mi_stats_print_out. */
mi_decl_export void mi_profile_print_leaks(size_t n_max, mi_output_fun* out, void* arg) mi_attr_noexcept;

typedef struct mi_profile_info_s {
  size_t rate;          /* as it is now; 0: it takes no samples */
  size_t samples;       /* that were taken */
  size_t live;          /* of them, blocks in use that the profile has: at most 65536. With more the rate is doubled, and each
                           second one is left out */
  size_t stacks;        /* distinct ones: at most 16384 */
  size_t dropped;       /* samples that are missing from what is in use, because there was no room */
  size_t other;         /* samples whose stack there was no room for: they are counted together */
} mi_profile_info_t;

mi_decl_export void mi_profile_get_info(mi_profile_info_t* info) mi_attr_noexcept;

#if defined(__cplusplus)
}
#endif

#endif
