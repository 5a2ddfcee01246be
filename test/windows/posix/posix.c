// What tests use of POSIX, by means of Windows.
#include "posix.h"

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <windows.h>
#include <psapi.h> // needs the other
// clang-format on

static VOID CALLBACK alarm_rings(PVOID arg, BOOLEAN is_timer) {
  static const char text[] = "watchdog: the test hangs\n";
  DWORD             n;
  (void)arg, (void)is_timer;
  WriteFile(GetStdHandle(STD_ERROR_HANDLE), text, sizeof(text) - 1, &n, NULL);
  TerminateProcess(GetCurrentProcess(), 124);
}

unsigned alarm(unsigned seconds) {
  static HANDLE timer;
  if (timer != NULL) DeleteTimerQueueTimer(NULL, timer, NULL);
  timer = NULL;
  if (seconds > 0) CreateTimerQueueTimer(&timer, NULL, &alarm_rings, NULL, seconds * 1000, 0, WT_EXECUTEONLYONCE);
  return 0;
}

long sysconf(int name) {
  SYSTEM_INFO info;
  GetSystemInfo(&info);
  if (name == _SC_PAGESIZE) return (long)info.dwPageSize;
  if (name == _SC_NPROCESSORS_ONLN) return (long)info.dwNumberOfProcessors;
  errno = EINVAL;
  return -1;
}

int setenv(const char* name, const char* value, int overwrite) {
  if (!overwrite && getenv(name) != NULL) return 0;
  return _putenv_s(name, value) == 0 ? 0 : -1;
}

int unsetenv(const char* name) {
  return _putenv_s(name, "") == 0 ? 0 : -1;
}

char* strndup(const char* s, size_t n) {
  size_t length = strnlen(s, n);
  char*  copy = (char*)malloc(length + 1);
  if (copy == NULL) return NULL;
  memcpy(copy, s, length);
  copy[length] = 0;
  return copy;
}

int pipe(int files[2]) {
  return _pipe(files, 65536, _O_BINARY);
}

size_t test_working_set(bool is_peak) {
  PROCESS_MEMORY_COUNTERS memory;
  if (!K32GetProcessMemoryInfo(GetCurrentProcess(), &memory, sizeof(memory))) return 0;
  return is_peak ? memory.PeakWorkingSetSize : memory.WorkingSetSize;
}
