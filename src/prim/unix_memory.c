// Memory by mmap, as macOS, the BSDs and Haiku have it.  Layer: prim.
//
// UM1  Memory is given back by a new mapping in its place: madvise may leave the contents there on all of these systems, and
//      purged memory must read as zero.
// UM2  None of them moves mappings without copying, in a way that all versions have.  So moves are refused, and callers copy.
// UM3  errno is saved around every call of libc: malloc's callers see it.
#include "unix_memory.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../base/bits.h"
#include "inject.h"

#if !defined(MAP_NORESERVE)
  #define MAP_NORESERVE 0 // memory is charged when it is touched
#endif

// What reserved memory may become.  NetBSD wants that said where it enforces limits on protections (PaX).
#if defined(PROT_MPROTECT)
  #define UNIX_RESERVED (PROT_NONE | PROT_MPROTECT(PROT_READ | PROT_WRITE))
#else
  #define UNIX_RESERVED PROT_NONE
#endif

// How mmap is asked for an address that must be free.  Without such a flag it takes that address, if it is free, as a hint.
#if defined(MAP_EXCL)
  #define UNIX_EXACTLY (MAP_FIXED | MAP_EXCL)
#elif defined(MAP_TRYFIXED)
  #define UNIX_EXACTLY MAP_TRYFIXED
#else
  #define UNIX_EXACTLY 0
#endif

mi_prim_calls_t _mi_prim_calls;

// errno as it was before a call of libc; returns what the call has set it to, 0 if it succeeded.
static int unix_result(bool ok, int saved) {
  int err = (ok ? 0 : errno);
  errno = saved;
  return err;
}

static mi_atomic(size_t) unix_page_size;

size_t _mi_prim_os_page_size(void) {
  size_t size = mi_load_relaxed(&unix_page_size);
  if (mi_unlikely(size == 0)) {
    int saved = errno;
    size = (size_t)sysconf(_SC_PAGESIZE);
    errno = saved;
    mi_store_relaxed(&unix_page_size, size);
  }
  return size;
}

// ---- to map and to unmap --------------------------------------------------------------------------------------------

static int unix_mmap(void* hint, size_t size, int protection, int flags, void** start) {
  int saved = errno;
  mi_fetch_add_relaxed(&_mi_prim_calls.map, 1);
  void* p = mmap(hint, size, protection, MAP_PRIVATE | MAP_ANON | flags, -1, 0);
  if (p != MAP_FAILED) *start = p;
  return unix_result(p != MAP_FAILED, saved);
}

int _mi_unix_memory_map(void* hint, size_t size, int protection, int flags, void** start) {
  return _mi_prim_must_fail() ? ENOMEM : unix_mmap(hint, size, protection, flags, start);
}

static int unix_unmap(void* start, size_t size) {
  int saved = errno;
  return unix_result(munmap(start, size) == 0, saved);
}

static int unix_map_at(void* start, size_t size, int protection) {
  void* p;
  if (_mi_prim_must_fail()) return ENOMEM;
  int err = unix_mmap(start, size, protection, MAP_NORESERVE | UNIX_EXACTLY, &p);
  if (err == EINVAL) return EEXIST; // as MAP_EXCL has it
  if (err != 0 || p == start) return err;
  unix_unmap(p, size);
  return EEXIST;
}

int _mi_prim_map_at(void* start, size_t size, bool grows) {
  (void)grows;
  return unix_map_at(start, size, PROT_READ | PROT_WRITE);
}

int _mi_prim_reserve_at(void* start, size_t size) {
  return unix_map_at(start, size, UNIX_RESERVED);
}

// Systems put programs and mappings at the beginning and at the end of the address space.  The second range suits 42 bits, the
// third 39 and 38.
bool _mi_unix_memory_find_empty(size_t i, uintptr_t* start, size_t* size) {
  static const struct {
    uint64_t start, size; // in GiB
  } ranges[] = {{0x8400, 0x2000}, {320, 384}, {36, 44}};
  if (sizeof(void*) < 8 || i >= sizeof(ranges) / sizeof(ranges[0])) return false;
  *start = (uintptr_t)(ranges[i].start * MI_GiB);
  *size = (size_t)(ranges[i].size * MI_GiB);
  return true;
}

int _mi_prim_reserve(size_t size, size_t align, void** start) {
  size_t extra = (align > _mi_prim_os_page_size() ? align : 0);
  if (size + extra < size) return ENOMEM;
  void* p;
  int   err = _mi_unix_memory_map(NULL, size + extra, UNIX_RESERVED, MAP_NORESERVE, &p);
  if (err != 0) return err;
  uintptr_t aligned = ((uintptr_t)p + align - 1) & ~(uintptr_t)(align - 1);
  size_t    before = aligned - (uintptr_t)p;
  if (before > 0) unix_unmap(p, before);
  if (extra > before) unix_unmap((char*)aligned + size, extra - before);
  *start = (void*)aligned;
  return 0;
}

int _mi_prim_release(void* start, size_t size) {
  return _mi_prim_must_fail() ? ENOMEM : unix_unmap(start, size);
}

int _mi_prim_map(size_t size, void** start) {
  return _mi_unix_memory_map(NULL, size, PROT_READ | PROT_WRITE, MAP_NORESERVE, start);
}

// Where it is, or not at all (UM2).
int _mi_prim_resize(void** start, size_t size, size_t new_size) {
  char* p = (char*)*start;
  if (new_size <= size) return new_size < size ? _mi_prim_release(p + new_size, size - new_size) : 0;
  int err = unix_map_at(p + size, new_size - size, PROT_READ | PROT_WRITE);
  return err == EEXIST ? ENOMEM : err;
}

int _mi_prim_move_out(void* from, size_t size, size_t new_size, void** start) {
  (void)size, (void)new_size;
  *start = from;
  return ENOTSUP;
}

mi_remap_t _mi_prim_remap(void* from, void* to, size_t size) {
  (void)from, (void)to, (void)size;
  return MI_REMAP_REFUSED;
}

mi_remap_t _mi_prim_unremap(void* start, size_t size) {
  return _mi_prim_purge(start, size) == 0 ? MI_REMAP_DONE : MI_REMAP_REFUSED;
}

// ---- to use and to give back ------------------------------------------------------------------------------------------

static int unix_protect(void* start, size_t size, int protection) {
  if (_mi_prim_must_fail()) return ENOMEM;
  int saved = errno;
  return unix_result(mprotect(start, size, protection) == 0, saved);
}

int _mi_prim_commit(void* start, size_t size) {
  mi_fetch_add_relaxed(&_mi_prim_calls.commit, 1);
  return unix_protect(start, size, PROT_READ | PROT_WRITE);
}

int _mi_prim_protect(void* start, size_t size) {
  return unix_protect(start, size, PROT_NONE);
}

int _mi_prim_make_readable(void* start, size_t size) {
  return unix_protect(start, size, PROT_READ);
}

int _mi_prim_purge(void* start, size_t size) {
  void* p;
  mi_fetch_add_relaxed(&_mi_prim_calls.purge, 1);
  int err = _mi_unix_memory_map(start, size, PROT_READ | PROT_WRITE, MAP_NORESERVE | MAP_FIXED, &p);
  if (err == 0) mi_fetch_add_relaxed(&_mi_prim_calls.n_purged, (int64_t)size);
  return err;
}

void _mi_prim_give_up(void* start, size_t size) {
  _mi_prim_purge(start, size);
}

int _mi_prim_discard(void* start, size_t size) {
  mi_fetch_add_relaxed(&_mi_prim_calls.discard, 1);
  if (_mi_prim_must_fail()) return ENOMEM;
  int saved = errno;
  int err = unix_result(madvise(start, size, MADV_FREE) == 0, saved);
  if (err == 0) mi_fetch_add_relaxed(&_mi_prim_calls.n_discarded, (int64_t)size);
  return err;
}

int _mi_prim_decommit(void* start, size_t size) {
  void* p;
  if (_mi_unix_memory_map(start, size, UNIX_RESERVED, MAP_NORESERVE | MAP_FIXED, &p) == 0) return 0;
  unix_unmap(start, size); // the memory goes back in any case
  return _mi_prim_reserve_at(start, size);
}

int _mi_prim_map_large_apart(size_t size, size_t os_page_size, void** start) {
  (void)size, (void)os_page_size;
  *start = NULL;
  return ENOTSUP;
}
