// Memory by mmap, as Linux, macOS, the BSDs and Haiku have it: for the files of these systems.  Layer: prim.
#pragma once

#include <sys/mman.h>

#include "prim.h"
#include "tag.h"

#if MI_SYSTEM_LINUX && !defined(MAP_FIXED_NOREPLACE)
  #define MAP_FIXED_NOREPLACE 0x100000 // newer than the headers we may be built with
#endif
#if !defined(MAP_NORESERVE)
  #define MAP_NORESERVE 0 // memory is charged when it is touched
#endif

// The protection of memory that is in use.
#define MI_POSIX_USABLE (PROT_READ | PROT_WRITE | (MI_TAGS ? _mi_prim_tag_protection() : 0))

// And of reserved memory.  NetBSD wants to know what it may become, where it enforces limits on protections (PaX).
#if defined(PROT_MPROTECT)
  #define MI_POSIX_RESERVED (PROT_NONE | PROT_MPROTECT(PROT_READ | PROT_WRITE))
#else
  #define MI_POSIX_RESERVED PROT_NONE
#endif

// errno as it was before a call of libc; returns what the call has set it to, 0 if it succeeded.
int  _mi_posix_memory_result(bool ok, int saved);
// mmap with these flags beside those of all private memory.  A call that can be made to fail (inject.h).
int  _mi_posix_memory_map(void* hint, size_t size, int protection, int flags, void** start);
// The same at an address that must be free, or EEXIST.  It cannot be made to fail.
int  _mi_posix_memory_map_at(void* start, size_t size, int protection);
int  _mi_posix_memory_unmap(void* start, size_t size);
int  _mi_posix_memory_advise(void* start, size_t size, int advice);
// What _mi_prim_find_empty has, on systems whose programs have 47 bits of addresses, or at least 38.
bool _mi_posix_memory_find_empty(size_t i, uintptr_t* start, size_t* size);
