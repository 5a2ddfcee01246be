#pragma once

#include <windows.h>

typedef struct _PROCESS_MEMORY_COUNTERS {
  DWORD  cb, PageFaultCount;
  SIZE_T PeakWorkingSetSize, WorkingSetSize, PagefileUsage, PeakPagefileUsage;
} PROCESS_MEMORY_COUNTERS;

WINBASEAPI BOOL WINAPI  K32GetProcessMemoryInfo(HANDLE process, PROCESS_MEMORY_COUNTERS* counters, DWORD size);
WINBASEAPI DWORD WINAPI K32GetMappedFileNameW(HANDLE process, LPVOID at, LPWSTR name, DWORD size);
WINBASEAPI BOOL WINAPI  K32EnumProcessModules(HANDLE process, HMODULE* modules, DWORD size, LPDWORD needed);
