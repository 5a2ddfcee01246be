// What FreeBSD, NetBSD, OpenBSD and DragonFly have in common.  Layer: prim.
#include "bsd.h"

#include <errno.h>
#include <unistd.h>

#include "posix_memory.h"
#include "unix_process.h"

bool _mi_prim_find_empty(size_t i, uintptr_t* start, size_t* size) {
  return _mi_posix_memory_find_empty(i, start, size);
}

bool _mi_prim_overcommits(void) {
  return true;
}

#if defined(__cplusplus)
extern "C" {
#endif
// The program's, not libc's: weak, so that a library may be linked alone.
extern char** environ __attribute__((weak));
// In a library of its own, which a program may lack.
extern size_t backtrace(void** frames, size_t max) __attribute__((weak));
#if defined(__cplusplus)
}
#endif

const char* _mi_prim_environment_entry(size_t i) {
  return &environ == NULL || environ == NULL ? NULL : environ[i];
}

bool _mi_prim_is_privileged(void) {
  return issetugid() != 0;
}

size_t _mi_prim_stack(void** frames, size_t max) {
  if (backtrace == NULL) return 0;
  int    saved = errno;
  size_t n = backtrace(frames, max);
  errno = saved;
  return n <= max ? n : 0;
}

bool _mi_prim_stack_init(void) {
  void* frames[2];
  return _mi_prim_stack(frames, 2) > 0;
}

void _mi_bsd_usage(mi_process_info_t* info) {
  struct rusage used;
  _mi_posix_process_usage(&used, info);
  info->rss_peak = (size_t)used.ru_maxrss * 1024;
  info->major_faults = (size_t)used.ru_majflt;
  info->minor_faults = (size_t)used.ru_minflt;
}
