// Memory by mmap, as Linux, macOS, the BSDs and Haiku have it.  Layer: prim.
//
// These are calls of libc, not of the kernel: tools that replace its functions see them (decision 59).  errno is saved around each:
// malloc's callers see it.
#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE
#endif
#include "posix_memory.h"

#include <errno.h>
#include <unistd.h>

#include "../base/bits.h"
#include "../base/probe.h"
#include "../base/track.h"
#include "inject.h"

// How mmap is asked for an address that must be free.  Without such a flag it takes that address, if it is free, as a hint; so does
// a kernel that does not know the flag.
#if defined(MAP_FIXED_NOREPLACE)
  #define POSIX_EXACTLY MAP_FIXED_NOREPLACE
#elif defined(MAP_EXCL)
  #define POSIX_EXACTLY (MAP_FIXED | MAP_EXCL)
#elif defined(MAP_TRYFIXED)
  #define POSIX_EXACTLY MAP_TRYFIXED
#else
  #define POSIX_EXACTLY 0
#endif

#if MI_SYSTEM_LINUX && !defined(MADV_FREE)
  #define MADV_FREE 8 // newer than the headers we may be built with
#endif

mi_prim_calls_t _mi_prim_calls;

int _mi_posix_memory_result(bool ok, int saved) {
  int err = (ok ? 0 : errno);
  errno = saved;
  return err;
}

static mi_atomic(size_t) posix_page_size;

size_t _mi_prim_os_page_size(void) {
#if defined(__x86_64__) || defined(__i386__)
  return 4096; // there is no other; asking would cost each process a page fault
#endif
  size_t size = mi_load_relaxed(&posix_page_size);
  if (mi_unlikely(size == 0)) {
    int saved = errno;
    size = (size_t)sysconf(_SC_PAGESIZE);
    errno = saved;
    mi_store_relaxed(&posix_page_size, size);
  }
  return size;
}

// ---- to map and to unmap --------------------------------------------------------------------------------------------

static int posix_mmap(void* hint, size_t size, int protection, int flags, void** start) {
  int saved = errno;
  mi_fetch_add_relaxed(&_mi_prim_calls.map, 1);
  void* p = mmap(hint, size, protection, MAP_PRIVATE | MAP_ANON | flags, -1, 0);
  if (p != MAP_FAILED) *start = p;
  return _mi_posix_memory_result(p != MAP_FAILED, saved);
}

int _mi_posix_memory_map(void* hint, size_t size, int protection, int flags, void** start) {
  return _mi_prim_must_fail() ? ENOMEM : posix_mmap(hint, size, protection, flags, start);
}

int _mi_posix_memory_unmap(void* start, size_t size) {
  int saved = errno;
  return _mi_posix_memory_result(munmap(start, size) == 0, saved);
}

int _mi_posix_memory_map_at(void* start, size_t size, int protection) {
  void* p = NULL;
  int   err = posix_mmap(start, size, protection, MAP_NORESERVE | POSIX_EXACTLY, &p);
#if defined(MAP_EXCL)
  if (err == EINVAL) return EEXIST; // so says FreeBSD
#endif
  if (err != 0 || p == start) return err;
  _mi_posix_memory_unmap(p, size);
  return EEXIST;
}

int _mi_prim_reserve_at(void* start, size_t size) {
  return _mi_prim_must_fail() ? ENOMEM : _mi_posix_memory_map_at(start, size, MI_POSIX_RESERVED);
}

// Systems put programs and mappings at the beginning and at the end of the address space.  With 47 bits or more Linux puts programs
// from 2/3 of it on, mappings below its end or, in a process whose stack has no limit, from 1/3 on (0x2AAA... with 47 bits).  The
// address sanitizer has its shadow below 0x1001... (x86-64) or 0x2010... (AArch64), runtimes with coloured pointers use single bits
// up to 0x2000...  The second range suits 42 bits, the third 39 and 38.
bool _mi_posix_memory_find_empty(size_t i, uintptr_t* start, size_t* size) {
  static const struct {
    uint64_t start, size; // in GiB
  } ranges[] = {{0x8400, 0x2000}, {320, 384}, {36, 44}};
  if (sizeof(void*) < 8 || i >= sizeof(ranges) / sizeof(ranges[0])) return false;
  *start = (uintptr_t)(ranges[i].start * MI_GiB);
  *size = (size_t)(ranges[i].size * MI_GiB);
  return true;
}

// Valgrind begins with low addresses: each number of 32 bits somewhere in memory could be a pointer for its leak checker.
static void* posix_hint(void) {
  bool wanted = (MI_TRACK_VALGRIND && sizeof(void*) > 4 && mi_track_is_on());
  return wanted ? (void*)(uintptr_t)(4 * (uint64_t)MI_GiB) : NULL;
}

int _mi_prim_reserve(size_t size, size_t align, void** start) {
  size_t extra = (align > _mi_prim_os_page_size() ? align : 0);
  if (size + extra < size) return ENOMEM;
  void* p = NULL;
  int   err = _mi_posix_memory_map(posix_hint(), size + extra, MI_POSIX_RESERVED, MAP_NORESERVE, &p);
  if (err != 0) return err;
  uintptr_t aligned = ((uintptr_t)p + align - 1) & ~(uintptr_t)(align - 1);
  size_t    before = aligned - (uintptr_t)p;
  if (before > 0) _mi_posix_memory_unmap(p, before);
  if (extra > before) _mi_posix_memory_unmap((char*)aligned + size, extra - before);
  *start = (void*)aligned;
  return 0;
}

int _mi_prim_release(void* start, size_t size) {
  return _mi_prim_must_fail() ? ENOMEM : _mi_posix_memory_unmap(start, size);
}

int _mi_prim_map(size_t size, void** start) {
  return _mi_posix_memory_map(posix_hint(), size, MI_POSIX_USABLE, MAP_NORESERVE, start);
}

int _mi_prim_map_large_apart(size_t size, size_t os_page_size, void** start) {
  (void)size, (void)os_page_size, (void)start;
  return ENOTSUP;
}

// ---- to use and to give back ----------------------------------------------------------------------------------------

static int posix_protect(void* start, size_t size, int protection) {
  if (_mi_prim_must_fail()) return ENOMEM;
  int saved = errno;
  return _mi_posix_memory_result(mprotect(start, size, protection) == 0, saved);
}

int _mi_prim_commit(void* start, size_t size) {
  MI_PROBE2(commit, start, size);
  mi_fetch_add_relaxed(&_mi_prim_calls.commit, 1);
  return posix_protect(start, size, MI_POSIX_USABLE);
}

int _mi_prim_protect(void* start, size_t size) {
  return posix_protect(start, size, PROT_NONE);
}

int _mi_prim_make_readable(void* start, size_t size) {
  return posix_protect(start, size, PROT_READ);
}

// EAGAIN is not tried again: Linux says so each time when there are too many mappings already to split one.
int _mi_posix_memory_advise(void* start, size_t size, int advice) {
  if (_mi_prim_must_fail()) return ENOMEM;
  int saved = errno;
  return _mi_posix_memory_result(madvise(start, size, advice) == 0, saved);
}

void _mi_prim_give_up(void* start, size_t size) {
  _mi_prim_purge(start, size);
}

int _mi_prim_discard(void* start, size_t size) {
  mi_fetch_add_relaxed(&_mi_prim_calls.discard, 1);
  int err = _mi_posix_memory_advise(start, size, MADV_FREE);
  if (err == 0) mi_fetch_add_relaxed(&_mi_prim_calls.n_discarded, (int64_t)size);
  return err;
}

int _mi_prim_decommit(void* start, size_t size) {
  void* p;
  if (_mi_posix_memory_map(start, size, MI_POSIX_RESERVED, MAP_NORESERVE | MAP_FIXED, &p) == 0) return 0;
  // The memory goes back in any case.  Where there are too many mappings to split one the range is still ours.
  if (_mi_posix_memory_unmap(start, size) == 0) return _mi_prim_reserve_at(start, size);
  _mi_prim_give_up(start, size);
  return ENOMEM;
}
