// The one interface to the operating system.  Layer: prim.  One file per system implements it; no other file of the
// library has an `#if` on the system.
//
// Sizes are in bytes and addresses are multiples of the OS page size unless said otherwise.  Calls that can fail return
// 0 or an errno value; none of them changes errno, allocates, or takes a lock of ours.
#pragma once

#include "../base/atomic.h"

// ---- memory ---------------------------------------------------------------------------------------------------------

size_t _mi_prim_os_page_size(void);

// Reserves address space, inaccessible and uncharged, at an address that is a multiple of `align` (a power of two).
int    _mi_prim_reserve(size_t size, size_t align, void** start);
// Gives a reservation (or a part of it) back altogether.
int    _mi_prim_release(void* start, size_t size);
// Makes reserved memory usable; it reads as zero.  ENOMEM when the system's commit limit is reached.
int    _mi_prim_commit(void* start, size_t size);
// Gives the contents back but keeps the range usable; it reads as zero afterwards.
int    _mi_prim_purge(void* start, size_t size);
// Backs the range with memory now, in one call.  Advice: failure may be ignored.
int    _mi_prim_populate(void* start, size_t size);
// Asks for (or forbids) huge OS pages in the range.  Advice: failure may be ignored.
int    _mi_prim_advise_huge(void* start, size_t size, bool enable);
// Makes reserved memory readable only (it reads as zero) at no charge; a later commit makes it writable.
int    _mi_prim_make_readable(void* start, size_t size);
// Makes a committed range inaccessible; a later commit makes it usable again, with the contents that it had.
int    _mi_prim_protect(void* start, size_t size);
// Moves the contents of [from, from+size) to [to, to+size) without copying.  Both ranges stay usable and the old one
// reads as zero.  ENOTSUP where the system cannot.
int    _mi_prim_remap(void* from, void* to, size_t size);
// Makes [start, start+size), which has been the target of a remap, one ordinary mapping with its neighbours again;
// contents are lost, it reads as zero.
int    _mi_prim_unremap(void* start, size_t size);
// The process's limit on address space in bytes, SIZE_MAX when there is none.
size_t _mi_prim_address_space_limit(void);

// ---- time, identity, environment ------------------------------------------------------------------------------------

int64_t     _mi_prim_clock_ms(void);        // monotonic
uint64_t    _mi_prim_random(void);          // for placement, not for secrets; never blocks
size_t      _mi_prim_numa_node_count(void); // at least 1
// The value of environment entry i as "NAME=value", NULL at the end or while the environment is not set up yet.
const char* _mi_prim_environment_entry(size_t i);
void        _mi_prim_write_stderr(const char* text, size_t length);
void        _mi_prim_abort(void);

typedef struct mi_process_info_s {
  int64_t elapsed_ms, user_ms, system_ms;
  size_t  rss_current, rss_peak; // bytes
  size_t  page_faults;           // major faults
} mi_process_info_t;
void _mi_prim_process_info(mi_process_info_t* info);

// Is there thread-local storage yet?  Callable while the program is still being relocated.
bool _mi_prim_has_thread_storage(void);

// ---- threads --------------------------------------------------------------------------------------------------------

// Calls `done` at the exit of every thread that called _mi_prim_thread_exit_arm.
void _mi_prim_thread_exit_init(void (*done)(void));
int  _mi_prim_thread_exit_arm(void);
// Handlers around fork.
void _mi_prim_fork_init(void (*prepare)(void), void (*parent)(void), void (*child)(void));
// A detached thread with all signals blocked, invisible to the program as far as the system allows.
int  _mi_prim_thread_start(void (*run)(void));
void _mi_prim_yield(void);
// Sleeps while *word == expected, until woken or for timeout_ms (< 0: for ever).  May return early.
void _mi_prim_wait(mi_atomic(uint32_t)* word, uint32_t expected, int64_t timeout_ms);
void _mi_prim_wake(mi_atomic(uint32_t)* word, bool all);
// All running threads of the process pass a full memory barrier.  ENOTSUP where the system cannot.
int  _mi_prim_barrier_all_init(void);
int  _mi_prim_barrier_all(void);

// ---- tools ----------------------------------------------------------------------------------------------------------

// For leak checkers (base/track.h): what lies here is ours, and no pointer of the program's.  It stays usable.  OS pages
// that are in the range in part are left as they are.
void _mi_prim_hide(void* start, size_t size);

// ---- fault injection ------------------------------------------------------------------------------------------------

// In test builds (MI_FAULT_INJECTION) the n-th memory call from now on fails with ENOMEM; 0 switches it off.
// `repeat`: so do all later ones.  Returns how many calls were made since the last arming.
#if !defined(MI_FAULT_INJECTION)
  #define MI_FAULT_INJECTION 0
#endif
size_t _mi_prim_fail_nth(size_t n, bool repeat);
