// Systems without control groups: the memory of the machine.  Layer: prim.
#include "prim.h"

#include "../base/bits.h"

#if MI_SYSTEM_WINDOWS
  #include "windows_calls.h"
#else
  #include <errno.h>
  #include <unistd.h>
#endif

size_t _mi_prim_container_limit(void) {
  return 0;
}

size_t _mi_prim_machine_memory(void) {
#if MI_SYSTEM_WINDOWS
  MEMORYSTATUSEX status;
  DWORD          saved = GetLastError();
  status.dwLength = sizeof(status);
  uint64_t size = (GlobalMemoryStatusEx(&status) ? status.ullTotalPhys : 0);
  SetLastError(saved);
  return (size_t)mi_min(size, (uint64_t)SIZE_MAX);
#elif defined(_SC_PHYS_PAGES)
  int  saved = errno;
  long n = sysconf(_SC_PHYS_PAGES);
  errno = saved;
  return n <= 0 ? 0 : (size_t)n * _mi_prim_os_page_size();
#else
  return 0;
#endif
}
