// The operating system interface on Windows: memory.  Layer: prim.
//
// WM1  What is reserved is released as a whole: the system cannot split it.
// WM2  Committed memory is charged at once, and others may take what is decommitted.  So a purge, after which memory must be
//      usable, leaves it committed; what the arena layer can do without until a commit succeeds, it decommits (commit.h).
// WM3  GetLastError stays as it was, because the callers of malloc see it.  errno is the C runtime's, which is not called here.
#include "prim.h"

#include <errno.h>
#include <string.h>

#include "../base/bits.h"
#include "inject.h"
#include "windows_calls.h"

#define PRIM_GRANULARITY (64 * MI_KiB) // where reservations begin
#define PRIM_PAGE_SIZE   4096          // of all processors that Windows runs on
#define PRIM_ALIGN_TRIES 16            // how often an address that was just free is tried

// ---- calls of the system ----------------------------------------------------------------------------------------------

mi_prim_calls_t _mi_prim_calls;

// The last error as it was before a call; returns what the call has set it to as an errno value, 0 if it succeeded.
static int prim_result(bool ok, DWORD saved) {
  DWORD error = (ok ? 0 : GetLastError());
  SetLastError(saved);
  switch (error) {
    case 0: return ok ? 0 : EINVAL;
    case ERROR_INVALID_ADDRESS: return EEXIST;
    case ERROR_INVALID_PARAMETER: return EINVAL;
    default: return ENOMEM;
  }
}

static int prim_alloc(void* at, size_t size, DWORD type, DWORD protection, void** start) {
  DWORD saved = GetLastError();
  if ((type & MEM_RESERVE) != 0) mi_fetch_add_relaxed(&_mi_prim_calls.map, 1);
  void* p = VirtualAlloc(at, size, type, protection);
  if (p != NULL) *start = p;
  return prim_result(p != NULL, saved);
}

static int prim_free(void* start, size_t size, DWORD type) {
  DWORD saved = GetLastError();
  return prim_result(VirtualFree(start, size, type) != 0, saved);
}

size_t _mi_prim_os_page_size(void) {
  return PRIM_PAGE_SIZE;
}

// ---- address space ------------------------------------------------------------------------------------------------------

// VirtualAlloc rounds addresses down, and would reserve what was not asked for.
static int prim_alloc_at(void* start, size_t size, DWORD type, DWORD protection) {
  void* p;
  if ((uintptr_t)start % PRIM_GRANULARITY != 0) return EINVAL;
  return prim_alloc(start, size, type, protection, &p);
}

// Where there is more than enough space now there is an aligned part of it a moment later, as a rule.
static int prim_reserve_aligned_old(size_t size, size_t align, void** start) {
  int err = ENOMEM;
  for (int i = 0; i < PRIM_ALIGN_TRIES; i++) {
    void* p;
    err = prim_alloc(NULL, size + align, MEM_RESERVE, PAGE_NOACCESS, &p);
    if (err != 0) return err;
    prim_free(p, 0, MEM_RELEASE);
    *start = (void*)mi_align_up((uintptr_t)p, align);
    err = prim_alloc_at(*start, size, MEM_RESERVE, PAGE_NOACCESS);
    if (err != EEXIST) return err;
  }
  return ENOMEM;
}

// Windows 10 finds an aligned place itself.
static int prim_reserve_aligned(size_t size, size_t align, void** start) {
  MEM_ADDRESS_REQUIREMENTS place = {NULL, NULL, align};
  MEM_EXTENDED_PARAMETER   parameter;
  DWORD                    saved = GetLastError();
  if (_mi_windows_calls.alloc == NULL) return prim_reserve_aligned_old(size, align, start);
  memset(&parameter, 0, sizeof(parameter));
  parameter.Type = MemExtendedParameterAddressRequirements;
  parameter.Pointer = &place;
  mi_fetch_add_relaxed(&_mi_prim_calls.map, 1);
  *start = _mi_windows_calls.alloc(GetCurrentProcess(), NULL, size, MEM_RESERVE, PAGE_NOACCESS, &parameter, 1);
  return prim_result(*start != NULL, saved);
}

int _mi_prim_reserve(size_t size, size_t align, void** start) {
  if (_mi_prim_must_fail() || size + align < size) return ENOMEM;
  if (align <= PRIM_GRANULARITY) return prim_alloc(NULL, size, MEM_RESERVE, PAGE_NOACCESS, start);
  return prim_reserve_aligned(size, align, start);
}

int _mi_prim_reserve_at(void* start, size_t size) {
  return _mi_prim_must_fail() ? ENOMEM : prim_alloc_at(start, size, MEM_RESERVE, PAGE_NOACCESS);
}

int _mi_prim_map_at(void* start, size_t size, bool grows) {
  (void)grows;
  return _mi_prim_must_fail() ? ENOMEM : prim_alloc_at(start, size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

// Bands of a planned span grow by mappings that are later given back in parts, which WM1 does not allow.
bool _mi_prim_find_empty(size_t i, uintptr_t* start, size_t* size) {
  (void)i, (void)start, (void)size;
  return false;
}

// Does what lies behind it belong to the same reservation?  (Of the range itself the system would count all pages.)
static bool prim_is_part(const void* start, size_t size) {
  MEMORY_BASIC_INFORMATION info;
  const char*              end = (const char*)start + mi_align_up(size, PRIM_PAGE_SIZE);
  DWORD                    saved = GetLastError();
  bool                     is_part = (VirtualQuery(end, &info, sizeof(info)) != 0 && info.State != MEM_FREE);
  SetLastError(saved);
  return is_part && info.AllocationBase == start;
}

// The system refuses what is not the beginning of one itself.
int _mi_prim_release(void* start, size_t size) {
  if (_mi_prim_must_fail()) return ENOMEM;
  return prim_is_part(start, size) ? EINVAL : prim_free(start, 0, MEM_RELEASE);
}

int _mi_prim_map(size_t size, void** start) {
  if (_mi_prim_must_fail()) return ENOMEM;
  return prim_alloc(NULL, size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE, start);
}

// ---- what the system cannot do -------------------------------------------------------------------------------------------

// Memory that can be read is charged like any other.
int _mi_prim_make_readable(void* start, size_t size) {
  (void)start, (void)size;
  return _mi_prim_must_fail() ? ENOMEM : ENOTSUP;
}

// ---- use --------------------------------------------------------------------------------------------------------------

// Also of what is committed: then it changes the protection.
int _mi_prim_commit(void* start, size_t size) {
  void* p;
  if (_mi_prim_must_fail()) return ENOMEM;
  mi_fetch_add_relaxed(&_mi_prim_calls.commit, 1);
  return prim_alloc(start, size, MEM_COMMIT, PAGE_READWRITE, &p);
}

int _mi_prim_protect(void* start, size_t size) {
  DWORD before, saved = GetLastError();
  if (_mi_prim_must_fail()) return ENOMEM;
  return prim_result(VirtualProtect(start, size, PAGE_NOACCESS, &before) != 0, saved);
}

void _mi_prim_give_up(void* start, size_t size) {
  prim_free(start, size, MEM_DECOMMIT);
}

// The second call takes the pages from the process right away; it fails where none was locked, which is what we want.
static int prim_reset(void* start, size_t size) {
  void* p;
  int   err = (_mi_prim_must_fail() ? ENOMEM : prim_alloc(start, size, MEM_RESET, PAGE_READWRITE, &p));
  if (err != 0) return err;
  DWORD saved = GetLastError();
  VirtualUnlock(start, size);
  SetLastError(saved);
  mi_fetch_add_relaxed(&_mi_prim_calls.n_discarded, (int64_t)size);
  return 0;
}

int _mi_prim_discard(void* start, size_t size) {
  mi_fetch_add_relaxed(&_mi_prim_calls.discard, 1);
  return prim_reset(start, size);
}

// WM2: memory that stays committed is not cleared.
int _mi_prim_purge(void* start, size_t size) {
  mi_fetch_add_relaxed(&_mi_prim_calls.purge, 1);
  int err = prim_reset(start, size);
  return err == 0 ? ENOTSUP : err;
}

int _mi_prim_decommit(void* start, size_t size) {
  mi_fetch_add_relaxed(&_mi_prim_calls.purge, 1);
  int err = (_mi_prim_must_fail() ? ENOMEM : prim_free(start, size, MEM_DECOMMIT));
  if (err == 0) mi_fetch_add_relaxed(&_mi_prim_calls.n_purged, (int64_t)size);
  return err;
}

// ---- large OS pages -----------------------------------------------------------------------------------------------------

// The right to lock memory, which the account must have, and which is off until somebody asks.
static bool prim_may_lock(void) {
  TOKEN_PRIVILEGES wanted = {1, {{{4, 0}, SE_PRIVILEGE_ENABLED}}}; // 4: SE_LOCK_MEMORY_PRIVILEGE, on every system
  HANDLE           token;
  if (!OpenProcessToken(GetCurrentProcess(), TOKEN_ADJUST_PRIVILEGES, &token)) return false;
  bool ok = AdjustTokenPrivileges(token, FALSE, &wanted, 0, NULL, NULL) && GetLastError() == ERROR_SUCCESS;
  CloseHandle(token);
  return ok;
}

int _mi_prim_map_large_apart(size_t size, size_t os_page_size, void** start) {
  DWORD saved = GetLastError();
  if (_mi_prim_must_fail()) return ENOMEM;
  bool ok = (GetLargePageMinimum() == os_page_size && size % os_page_size == 0 && prim_may_lock());
  SetLastError(saved);
  return ok ? prim_alloc(NULL, size, MEM_RESERVE | MEM_COMMIT | MEM_LARGE_PAGES, PAGE_READWRITE, start) : ENOTSUP;
}

bool _mi_prim_overcommits(void) {
  return false;
}
