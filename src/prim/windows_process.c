// The operating system interface on Windows: time, identity and environment of the process, processors.  Layer: prim.
#include "prim.h"

#include <io.h>
#include <stdlib.h>
#include <string.h>

#include "../base/bits.h"
#include "windows_calls.h"

// ---- time ---------------------------------------------------------------------------------------------------------------

// Neither of the two calls can fail.
int64_t _mi_prim_clock_ns(void) {
  LARGE_INTEGER frequency, now;
  QueryPerformanceFrequency(&frequency);
  QueryPerformanceCounter(&now);
  int64_t seconds = now.QuadPart / frequency.QuadPart;
  return seconds * 1000000000 + now.QuadPart % frequency.QuadPart * 1000000000 / frequency.QuadPart;
}

int64_t _mi_prim_clock_ms(void) {
  return _mi_prim_clock_ns() / 1000000;
}

// Windows counts in 100 ns.
static int64_t prim_time_ms(FILETIME time) {
  return (int64_t)(((uint64_t)time.dwHighDateTime << 32 | time.dwLowDateTime) / 10000);
}

typedef struct prim_times_s {
  FILETIME started, ended, system, user;
} prim_times_t;

static void prim_get_times(prim_times_t* times) {
  DWORD saved = GetLastError();
  if (!GetProcessTimes(GetCurrentProcess(), &times->started, &times->ended, &times->system, &times->user))
    memset(times, 0, sizeof(*times));
  SetLastError(saved);
}

int64_t _mi_prim_cpu_time_ms(void) {
  prim_times_t times;
  prim_get_times(&times);
  return prim_time_ms(times.system) + prim_time_ms(times.user);
}

// ---- identity -------------------------------------------------------------------------------------------------------------

// The system keeps its state in the process: this neither blocks nor allocates.
uint64_t _mi_prim_random(void) {
  uint64_t x = 0;
  DWORD    saved = GetLastError();
  if (_mi_windows_calls.random == NULL || !_mi_windows_calls.random(&x, sizeof(x)))
    x = (uint64_t)_mi_prim_clock_ns() ^ ((uint64_t)(uintptr_t)&x << 16) ^ ((uint64_t)GetCurrentProcessId() << 40);
  SetLastError(saved);
  return x;
}

// Nothing is left to destructors: the table that the loader calls when threads end goes with the module (windows_thread.c, WT1),
// and the handler of faults is taken away when it is told that the module goes.
bool _mi_prim_is_unloadable(void) {
  return false;
}

bool _mi_prim_is_privileged(void) {
  return false; // a program never has more rights here than what starts it gives it
}

void _mi_prim_write_stderr(const char* text, size_t length) {
  DWORD  saved = GetLastError(), n = 0;
  HANDLE out = GetStdHandle(STD_ERROR_HANDLE);
  while (length > 0 && WriteFile(out, text, (DWORD)length, &n, NULL) && n > 0) {
    text += n;
    length -= n;
  }
  SetLastError(saved);
}

void _mi_prim_abort(void) {
  abort();
}

void _mi_prim_process_info(mi_process_info_t* info) {
  PROCESS_MEMORY_COUNTERS memory;
  prim_times_t            times;
  FILETIME                now;
  DWORD                   saved = GetLastError();
  memset(&memory, 0, sizeof(memory));
  K32GetProcessMemoryInfo(GetCurrentProcess(), &memory, sizeof(memory)); // on failure all is 0
  GetSystemTimeAsFileTime(&now);
  SetLastError(saved);
  prim_get_times(&times);
  info->elapsed_ms = prim_time_ms(now) - prim_time_ms(times.started);
  info->user_ms = prim_time_ms(times.user);
  info->system_ms = prim_time_ms(times.system);
  info->rss_current = memory.WorkingSetSize;
  info->rss_peak = memory.PeakWorkingSetSize;
  info->major_faults = 0; // they are not told apart
  info->minor_faults = memory.PageFaultCount;
}

// ---- limits, processors, paths ---------------------------------------------------------------------------------------

size_t _mi_prim_address_space_limit(void) {
  SYSTEM_INFO info;
  GetSystemInfo(&info);
  return (size_t)((uintptr_t)info.lpMaximumApplicationAddress - (uintptr_t)info.lpMinimumApplicationAddress);
}

size_t _mi_prim_machine_memory(void) {
  MEMORYSTATUSEX status;
  status.dwLength = sizeof(status);
  return (size_t)(GlobalMemoryStatusEx(&status) ? mi_min_signed((int64_t)status.ullTotalPhys, PTRDIFF_MAX) : 0);
}

size_t _mi_prim_numa_node_count(void) {
  ULONG highest = 0;
  DWORD saved = GetLastError();
  if (!GetNumaHighestNodeNumber(&highest)) highest = 0;
  SetLastError(saved);
  return (size_t)highest + 1;
}

size_t _mi_prim_numa_node(void) {
  PROCESSOR_NUMBER processor;
  USHORT           node = 0;
  DWORD            saved = GetLastError();
  GetCurrentProcessorNumberEx(&processor);
  if (!GetNumaProcessorNodeEx(&processor, &node) || node == 0xFFFF) node = 0;
  SetLastError(saved);
  return node;
}

char* _mi_prim_real_path(const char* name, char* path) {
  if (_access(name, 0) != 0) return NULL;
  return _fullpath(path, name, path == NULL ? 0 : MAX_PATH);
}

const wchar_t* _mi_prim_wide_variable(const wchar_t* name) {
  return _wgetenv(name);
}
