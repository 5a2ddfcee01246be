// <windows.h> for the files of this system, and what is looked up when the library is loaded.  Layer: prim.
//
// Windows 7 is the oldest version for which everything else is there.
#pragma once

#include "prim.h"

#if !defined(WIN32_LEAN_AND_MEAN)
  #define WIN32_LEAN_AND_MEAN
#endif
#if !defined(NOMINMAX)
  #define NOMINMAX
#endif
#include <windows.h>
// clang-format off
#include <psapi.h> // needs the other
// clang-format on
#undef near // of 16-bit pointers; they are names of ours
#undef far

// NULL: this Windows does not have it.
typedef struct mi_windows_calls_s {
  PVOID(WINAPI* alloc)
  (HANDLE process, PVOID at, SIZE_T size, ULONG type, ULONG protection, MEM_EXTENDED_PARAMETER* parameters,
   ULONG n);                                                                                 // VirtualAlloc2
  BOOL(WINAPI* wait)(volatile VOID* address, PVOID compared, SIZE_T size, DWORD timeout_ms); // WaitOnAddress
  VOID(WINAPI* wake_one)(PVOID address);                                                     // WakeByAddressSingle
  VOID(WINAPI* wake_all)(PVOID address);                                                     // WakeByAddressAll
  BOOLEAN(NTAPI* random)(PVOID to, ULONG size);                                              // SystemFunction036
  BOOLEAN(NTAPI* is_ending)(void);                                                           // RtlDllShutdownInProgress
} mi_windows_calls_t;

extern mi_windows_calls_t _mi_windows_calls;

// When the library is loaded: a look-up takes the lock of the loader, which malloc must not wait for.  GetLastError may change.
void _mi_windows_calls_find(void);
