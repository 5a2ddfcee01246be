// The one interface to the operating system.  Layer: prim.  Each system has files of its own that implement it
// (src/static.c lists them); no other layer but `override` has an `#if` on the system.
//
// Sizes are in bytes and addresses are multiples of the OS page size unless said otherwise.  Calls that can fail return
// 0 or an errno value; none of them changes errno, allocates, or takes a lock of the library.
#pragma once

#include "../base/atomic.h"
#include "../base/mode.h"
#include "local.h"
#include "system.h"

// ---- memory ---------------------------------------------------------------------------------------------------------

// How often the system was asked for memory or to take it, whether it agreed or not.
typedef struct mi_prim_calls_s {
  mi_atomic(int64_t) map;                   // mmap
  mi_atomic(int64_t) commit;                // mprotect, to make memory usable
  mi_atomic(int64_t) purge;                 // madvise, to give contents back
  mi_atomic(int64_t) discard;               // ... or only where the system needs them
  mi_atomic(int64_t) n_purged, n_discarded; // bytes of those calls that the system agreed to
} mi_prim_calls_t;
extern mi_prim_calls_t _mi_prim_calls;

size_t _mi_prim_os_page_size(void);

// Where memory only grows (!MI_PRIM_VIRTUAL): gives at least `size` bytes more, which read as zero and are aligned to 16,
// behind what it gave before if it can.  Returns how many; 0: there are none.
size_t _mi_prim_memory(size_t size, void** start);

// Reserves address space, inaccessible and uncharged, at an address that is a multiple of `align` (a power of two).
int          _mi_prim_reserve(size_t size, size_t align, void** start);
// The same at an address.  EEXIST if something is mapped there, by whomever.
int          _mi_prim_reserve_at(void* start, size_t size);
// Maps a range in which nothing is reserved; it is usable and reads as zero.  EEXIST if something is mapped there, by
// whomever; then nothing has changed.  `grows`: what ends at `start` is ours, mapped by this call.
int          _mi_prim_map_at(void* start, size_t size, bool grows);
// The i-th of the ranges of addresses where the system and other tools put nothing, as a rule; the first suits most
// machines, the later ones those with few bits of addresses.  False if there are no more.
bool         _mi_prim_find_empty(size_t i, uintptr_t* start, size_t* size);
// Gives what is reserved or mapped back altogether; also a part of it where MI_PRIM_HAS_PARTS (system.h).  ENOMEM when that
// would split a mapping and there are too many, EINVAL where it is a part that cannot be had: nothing has changed.
int          _mi_prim_release(void* start, size_t size);
// A mapping that is usable at once; it reads as zero.
int          _mi_prim_map(size_t size, void** start);
// Makes a mapping larger or smaller, where it is or at another place (*start); contents are kept, what is added reads as
// zero.  On failure nothing happened.
int          _mi_prim_resize(void** start, size_t size, size_t new_size);
// Moves the contents of a part of a mapping to a mapping of their own, of new_size, without copying; the old place stays usable
// and reads as zero.  On failure nothing happened; where it is several mappings, or the system cannot do it at all, it
// fails always.
int          _mi_prim_move_out(void* from, size_t size, size_t new_size, void** start);
// Makes reserved memory usable; it reads as zero.  ENOMEM when the system's commit limit is reached.
int          _mi_prim_commit(void* start, size_t size);
// Gives the contents back but keeps the range usable; it reads as zero afterwards.  ENOTSUP where the system cannot clear what
// stays usable: then it reads as anything.
int          _mi_prim_purge(void* start, size_t size);
// Memory that is not in use, and that was not purged because it is locked: its locks end, so that it can be.  False if there are none, if
// the process locks all of its memory, and where the system cannot be asked.
mi_cold bool _mi_prim_unlock(void* start, size_t size);
// The memory of what could not be released, whatever state it is in, goes back; it is not going to be used any more.
void         _mi_prim_give_up(void* start, size_t size);
// The system may take the contents when it is short of memory; until then, and until it is written to again, the range
// reads as it was or as zero.
mi_cold int  _mi_prim_discard(void* start, size_t size);
// Takes the memory and the use of the range away: it is reserved again.  On failure the memory is gone all the same, and
// another mapping of the process may lie there now.
mi_cold int  _mi_prim_decommit(void* start, size_t size);
// Backs the range with memory now, in one call.  EINVAL where the system cannot; EFAULT where touching it would be fatal.
int          _mi_prim_populate(void* start, size_t size);
// Makes sure that the range can be read: it is backed, or reads as zero.  EINVAL where the system cannot; EFAULT, ENOMEM where
// reading it would be fatal.
int          _mi_prim_populate_read(void* start, size_t size);
// Does a word of 32 bits hold anything but 0?  False, too, if it cannot be read, and where the system cannot be asked.  The program may
// have it, and may take its access or its memory away at the same time.
bool         _mi_prim_is_written(const void* word);
// Asks for (or forbids) huge OS pages in the range.  Advice: failure may be ignored.
int          _mi_prim_advise_huge(void* start, size_t size, bool enable);
// Makes reserved memory readable only (it reads as zero) at no charge; a later commit makes it writable.  ENOTSUP where the
// system charges for it.
int          _mi_prim_make_readable(void* start, size_t size);
// Makes a committed range inaccessible; a later commit makes it usable again, with the contents that it had.
int          _mi_prim_protect(void* start, size_t size);

typedef enum mi_remap_e {
  MI_REMAP_DONE,
  MI_REMAP_REFUSED,  // the target is as it was, or reads as zero
  MI_REMAP_RESERVED, // the target cannot be used before it is committed again
  MI_REMAP_LOST      // another mapping of the process may lie at the target
} mi_remap_t;

// Moves the contents of [from, from+size) to [to, to+size), its target.  Both ranges stay usable and the old one may be
// anything. On failure the contents are where they were.  Where `from` is several mappings, or the system cannot do it
// at all, that is REFUSED.
mi_remap_t     _mi_prim_remap(void* from, void* to, size_t size);
// Makes [start, start+size), which has been the target of a remap or a part of one, one ordinary mapping with its neighbours again;
// contents are lost, it reads as zero.
mi_remap_t     _mi_prim_unremap(void* start, size_t size);
// Makes a reserved range usable with large OS pages of that size, which the system keeps apart for those who ask.  They are
// the range's from then on, without being backed yet, and read as zero.  On failure the range is reserved as it was,
// unless *is_lost: another mapping of the process may lie there now.
mi_cold int    _mi_prim_map_large(void* start, size_t size, size_t os_page_size, bool* is_lost);
// The same as a mapping of its own, at a place that the system chooses, where large OS pages cannot be had otherwise.
mi_cold int    _mi_prim_map_large_apart(size_t size, size_t os_page_size, void** start);
// The process's limit on address space in bytes, SIZE_MAX when there is none.
size_t         _mi_prim_address_space_limit(void);
// The bytes of memory that the container of the process allows it: the least limit of its control groups and those above them.
// 0: none, or none that is known.  Opens files.
mi_cold size_t _mi_prim_container_limit(void);
// The bytes of memory that the machine has; 0: unknown.
mi_cold size_t _mi_prim_machine_memory(void);
// Does the system promise more memory than it has?
mi_cold bool   _mi_prim_overcommits(void);

// ---- memory of several nodes ----------------------------------------------------------------------------------------

mi_cold size_t _mi_prim_numa_node_count(void); // at least 1
size_t         _mi_prim_numa_node(void);       // where the calling thread runs now
// What will back the range comes from that node: only from there, or else preferably.
mi_cold int    _mi_prim_numa_bind(void* start, size_t size, size_t node, bool only);

// ---- time, identity, environment ------------------------------------------------------------------------------------

int64_t        _mi_prim_clock_ms(void);    // monotonic
int64_t        _mi_prim_cpu_time_ms(void); // of the process, on all processors
uint64_t       _mi_prim_random(void);      // for placement and keys of checks, not for secrets; never blocks
// The value of environment entry i as "NAME=value", NULL at the end or while the environment is not set up yet.
const char*    _mi_prim_environment_entry(size_t i);
// Has the program rights that whoever started it has not, so that its environment is not to be trusted?  May be called
// once there is an environment.
bool           _mi_prim_is_privileged(void);
void           _mi_prim_write_stderr(const char* text, size_t length);
// At the start of a process with an option in its environment.  If the size of files is limited (RLIMIT_FSIZE) and standard error is a
// regular file, each later write checks first that the file stays within the limit: a write beyond it would end the process.
mi_cold void   _mi_prim_prepare_stderr(void);
void           _mi_prim_abort(void);
// Does the process end, and were its other threads ended wherever they were, with locks held?
bool           _mi_prim_is_ending(void);
// The two that the interface has to have: they are of the C library, and the first may allocate there.  The result is `path`,
// or a block for free() if that is NULL; NULL with errno on failure.
char*          _mi_prim_real_path(const char* name, char* path);
// A variable of the environment in wide characters; NULL where there is none, or no such environment.
const wchar_t* _mi_prim_wide_variable(const wchar_t* name);

typedef struct mi_process_info_s {
  int64_t elapsed_ms, user_ms, system_ms;
  size_t  rss_current, rss_peak; // bytes
  size_t  major_faults;          // of OS pages: those that needed input
  size_t  minor_faults;          // ... and all others
} mi_process_info_t;
void _mi_prim_process_info(mi_process_info_t* info);

// By what other processes know this one: one process only has all three numbers.
typedef struct mi_prim_self_s {
  uint64_t pid;
  uint64_t pid_space; // the numbering that pid belongs to; 0: unknown
  uint64_t started;   // as the system counts it; 0: unknown
  char     name[32];
} mi_prim_self_t;
int    _mi_prim_self(mi_prim_self_t* self);   // reads files; ENOTSUP where that is not known
bool   _mi_prim_process_exists(uint64_t pid); // in our numbering
size_t _mi_prim_process_id(void);             // 0: unknown

// Can the library's code be unloaded while the process goes on, because it is a part of a library that can?
bool _mi_prim_is_unloadable(void);

// Is there thread-local storage yet?  Callable while the program is still being relocated.
bool _mi_prim_has_thread_storage(void);

// ---- files: heap profiles, and the published page -------------------------------------------------------------------
//
// ENOTSUP where the library makes no files.

// Makes a file that did not exist (EEXIST), which this user alone can read and write; `file` is a handle of the system.
int  _mi_prim_file_create(const char* path, intptr_t* file);
// Appends all of it.  EFBIG if the file may not be so long, ENOSPC if there is no room: a part may have been written.
int  _mi_prim_file_write(intptr_t file, const void* data, size_t size);
// Maps so much of what was written; other processes that map the file see what is written there.
int  _mi_prim_file_map(intptr_t file, size_t size, void** start);
// Does this process have a file of this name mapped, in any directory?  No, where that is not known.
bool _mi_prim_file_is_mapped(const char* name);
int  _mi_prim_file_close(intptr_t file);                     // a mapping stays
int  _mi_prim_file_rename(const char* from, const char* to); // in place of the file `to`
int  _mi_prim_file_remove(const char* path);
// The names in a directory, no more than `max`.
void _mi_prim_file_list(const char* directory, size_t max, void (*visit)(const char* name, void* arg), void* arg);
// The i-th directory for files that are mapped, to be tried in turn; NULL: there are no more.
const char* _mi_prim_file_directory(size_t i);

// ---- threads ------------------------------------------------------------------------------------------------------------

// Calls `done` at the exit of every thread that called _mi_prim_thread_exit_arm, after the destructors of the program's
// thread-specific data, as far as the system lets us.  To be called once, before the first thread is armed.
void _mi_prim_thread_exit_init(void (*done)(void));
// The code of the library is about to go, with a library that contains it: from now on `done` is not called.
void _mi_prim_thread_exit_stop(void);
// ENOTSUP: `done` will not be called.
int  _mi_prim_thread_exit_arm(void);
bool _mi_prim_thread_exit_is_armed(void);
// Is `done` certain to be called?  Not where a thread is armed in the last passes of its destructors.
bool _mi_prim_thread_exit_is_sure(void);

// For threads that `done` is not called for: a word that says whether its thread has ended.
typedef union mi_prim_pulse_u {
  char   bytes[64];
  size_t align;
} mi_prim_pulse_t;
// Of the calling thread; zero at first, or of one that has ended.
int  _mi_prim_thread_pulse_begin(mi_prim_pulse_t* pulse);
bool _mi_prim_thread_has_ended(mi_prim_pulse_t* pulse); // true once only: the word can be used again then
void _mi_prim_thread_pulse_end(mi_prim_pulse_t* pulse); // by its thread: the word can be used again

// Handlers around fork.
int    _mi_prim_fork_init(void (*prepare)(void), void (*parent)(void), void (*child)(void));
// `started` is called after the program has started a thread, by the thread that has; `ended` by each such thread at its
// exit, and by the main thread if it ends before the process does.  is_last: it is the last of them all.  ENOTSUP where that
// cannot be seen: the library does not stand in for pthread_create.
int    _mi_prim_thread_watch(void (*started)(void), void (*ended)(bool is_last));
// How many of those threads there are.
size_t _mi_prim_thread_watched(void);
// In the child of a fork there is one thread.
void   _mi_prim_thread_after_fork(void);
// Is the caller the main thread, and certain to be the only one?  False where that is not known.
bool   _mi_prim_thread_is_alone(void);
// A thread with all signals blocked, a name, and the scheduling of a new process, whatever that of the caller is.
// Takes locks of libc: only from where these are known not to be held.
int    _mi_prim_thread_start(void (*run)(void));
// Until the thread that was started last, and is about to end, is gone.
void   _mi_prim_thread_join(void);
// Sleeps while *word == expected, until woken or for timeout_ms (< 0: for ever).  May return early.
void   _mi_prim_wait(mi_atomic(uint32_t)* word, uint32_t expected, int64_t timeout_ms);
void   _mi_prim_wake(mi_atomic(uint32_t)* word, bool all);

// ---- guarded blocks: protection, faults, stacks ---------------------------------------------------------------------

// An access to memory that is not there, or not accessible.
typedef struct mi_fault_s {
  uintptr_t address;
  uintptr_t instruction; // 0: unknown
  char      access;      // 'r', 'w', or '?': unknown
} mi_fault_t;

// What the handler of faults may take of a stack, `on_fault` included, below what the kernel puts there.
#define MI_FAULT_STACK 2048

// Once: from now on `on_fault` is called for each such access, by a signal handler: it may call nothing of libc, and
// take little stack.  What the process did about it before follows, whatever on_fault did: the handler that was there, or its
// end.
int  _mi_prim_fault_init(void (*on_fault)(const mi_fault_t* fault));
// The code of the library is about to go: what the process did before is done again, unless another handler has come since.
void _mi_prim_fault_stop(void);

// Return addresses of the calling thread, from the innermost on; returns how many.  It may take locks of the system's loader,
// and allocate unless _mi_prim_stack_init was called once.
size_t    _mi_prim_stack(void** frames, size_t max);
// Prepares for it; false where there is no such thing.  May allocate.
bool      _mi_prim_stack_init(void);
// The file that the code at an address comes from, and the address as that file has it.  False if there is none.  For signal
// handlers.
bool      _mi_prim_find_module(uintptr_t address, char* name, size_t size, uintptr_t* offset);
// What the system calls the calling thread.
uintptr_t _mi_prim_thread_id(void);
// Is it the one with which the process began?
bool      _mi_prim_thread_is_main(void);
int64_t   _mi_prim_clock_ns(void); // monotonic

// ---- the heap profile: modules, a signal -----------------------------------------------------------------------------

// Code that is mapped: of the program, or of a library.
typedef struct mi_module_s {
  uintptr_t      start, end;
  uint64_t       offset; // in the file
  const char*    name;   // of the file
  const uint8_t* build_id;
  size_t         n_build_id; // bytes; 0: it has none
  bool           is_program;
} mi_module_t;

// Calls visit for each until it returns false.  It takes locks of the system's loader, and allocates nothing.  Nothing is known
// on some systems.
void _mi_prim_modules(bool (*visit)(const mi_module_t* module, void* arg), void* arg);

// From now on on_signal is called when the signal comes, by its handler, with the number that was sent with it (0: none).  EBUSY
// if the program has a handler for it; EINVAL if there is no such signal; ENOTSUP where there are none.
int  _mi_prim_signal_init(int sig, void (*on_signal)(int value));
// The code of the library is about to go: the signal does again what it did before, unless the program has chosen a handler since.
void _mi_prim_signal_stop(void);

// ---- tools ----------------------------------------------------------------------------------------------------------

// For leak checkers (base/track.h): what lies here is ours, and no pointer of the program's.  It stays usable.  OS pages
// that are in the range in part are left as they are.
void _mi_prim_hide(void* start, size_t size);
#if MI_TRACK_ETW
  #include "windows_etw.h"
#endif

// ---- fault injection ------------------------------------------------------------------------------------------------

// In test builds (MI_FAULT_INJECTION, inject.c) the n-th memory call from now on fails with ENOMEM; 0 switches it off.
// `repeat`: so do all later ones.  Returns how many calls were made since the last arming.
#if !defined(MI_FAULT_INJECTION)
  #define MI_FAULT_INJECTION 0
#endif
size_t _mi_prim_fail_nth(size_t n, bool repeat);
