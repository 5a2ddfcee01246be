// What only macOS and iOS have.  Layer: prim.
#include <TargetConditionals.h>
#include <errno.h>
#include <execinfo.h>
#include <mach/mach.h>
#include <mach/vm_statistics.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/sysctl.h>
#include <unistd.h>

#include "../base/bits.h"
#include "posix_memory.h"
#include "unix_process.h"

// ---- memory ---------------------------------------------------------------------------------------------------------

// Devices have few bits of addresses, and say nothing about where they put what.
bool _mi_prim_find_empty(size_t i, uintptr_t* start, size_t* size) {
  return TARGET_OS_OSX && _mi_posix_memory_find_empty(i, start, size);
}

#if defined(__x86_64__) && defined(VM_FLAGS_SUPERPAGE_SIZE_2MB)

static void* darwin_map_large(void* start, size_t size, int flags) {
  return mmap(start, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON | flags, VM_FLAGS_SUPERPAGE_SIZE_2MB, 0);
}

// Tried elsewhere first: a mapping that fails may have taken away what was there before.
int _mi_prim_map_large(void* start, size_t size, size_t os_page_size, bool* is_lost) {
  int saved = errno;
  *is_lost = false;
  if (os_page_size != 2 * MI_MiB) return ENOTSUP;
  void* p = darwin_map_large(NULL, size, 0);
  if (p == MAP_FAILED) {
    errno = saved;
    return ENOMEM;
  }
  munmap(p, size);
  p = darwin_map_large(start, size, MAP_FIXED);
  errno = saved;
  if (p != MAP_FAILED) return 0;
  *is_lost = (_mi_prim_decommit(start, size) != 0);
  return ENOMEM;
}

#else

int _mi_prim_map_large(void* start, size_t size, size_t os_page_size, bool* is_lost) {
  (void)start, (void)size, (void)os_page_size;
  *is_lost = false;
  return ENOTSUP;
}

#endif

bool _mi_prim_overcommits(void) {
  return true;
}

// ---- the process ----------------------------------------------------------------------------------------------------

uint64_t _mi_prim_random(void) {
  uint64_t x = 0;
  int      saved = errno;
  if (getentropy(&x, sizeof(x)) != 0) x = _mi_posix_process_guess();
  errno = saved;
  return x;
}

#if defined(__cplusplus)
extern "C" {
#endif
extern char*** _NSGetEnviron(void); // libraries cannot refer to `environ`, and iOS has no header for this
#if defined(__cplusplus)
}
#endif

const char* _mi_prim_environment_entry(size_t i) {
  char*** environment = _NSGetEnviron();
  return environment == NULL || *environment == NULL ? NULL : (*environment)[i];
}

bool _mi_prim_is_privileged(void) {
  return issetugid() != 0;
}

static int64_t darwin_elapsed_ms(void) {
  struct kinfo_proc process;
  size_t            size = sizeof(process);
  int               name[] = {CTL_KERN, KERN_PROC, KERN_PROC_PID, getpid()};
  if (sysctl(name, 4, &process, &size, NULL, 0) != 0 || size != sizeof(process)) return 0;
  return _mi_unix_process_since_ms(&process.kp_proc.p_starttime);
}

void _mi_prim_process_info(mi_process_info_t* info) {
  struct mach_task_basic_info task;
  mach_msg_type_number_t      n = MACH_TASK_BASIC_INFO_COUNT;
  struct rusage               used;
  int                         saved = errno;
  _mi_posix_process_usage(&used, info);
  info->elapsed_ms = darwin_elapsed_ms();
  info->rss_peak = (size_t)used.ru_maxrss; // bytes, unlike elsewhere
  info->major_faults = (size_t)used.ru_majflt;
  info->minor_faults = (size_t)used.ru_minflt;
  if (task_info(mach_task_self(), MACH_TASK_BASIC_INFO, (task_info_t)&task, &n) == KERN_SUCCESS) {
    info->rss_current = (size_t)task.resident_size;
    info->rss_peak = mi_max(info->rss_peak, info->rss_current); // which the system notes now and then
  }
  errno = saved;
}

// ---- threads --------------------------------------------------------------------------------------------------------

uintptr_t _mi_prim_thread_id(void) {
  uint64_t id = 0;
  pthread_threadid_np(NULL, &id);
  return (uintptr_t)id;
}

bool _mi_prim_thread_is_main(void) {
  return pthread_main_np() == 1;
}

// From macOS 14.4 and iOS 17.4 on; NULL before.
#if defined(__cplusplus)
extern "C" {
#endif
extern int os_sync_wait_on_address(void* address, uint64_t value, size_t size, uint32_t flags)
    __attribute__((weak_import));
extern int os_sync_wait_on_address_with_timeout(void* address, uint64_t value, size_t size, uint32_t flags,
                                                uint32_t clock, uint64_t timeout_ns) __attribute__((weak_import));
extern int os_sync_wake_by_address_any(void* address, size_t size, uint32_t flags) __attribute__((weak_import));
extern int os_sync_wake_by_address_all(void* address, size_t size, uint32_t flags) __attribute__((weak_import));
#if defined(__cplusplus)
}
#endif

#define DARWIN_CLOCK 32 // OS_CLOCK_MACH_ABSOLUTE_TIME

void _mi_prim_wait(mi_atomic(uint32_t)* word, uint32_t expected, int64_t timeout_ms) {
  int saved = errno;
  if (os_sync_wait_on_address == NULL || os_sync_wait_on_address_with_timeout == NULL ||
      os_sync_wake_by_address_any == NULL) {
    if (mi_load_relaxed(word) == expected) _mi_unix_process_nap(timeout_ms);
  }
  else if (timeout_ms < 0) {
    os_sync_wait_on_address((void*)word, expected, sizeof(*word), 0);
  }
  else if (timeout_ms > 0) {
    os_sync_wait_on_address_with_timeout((void*)word, expected, sizeof(*word), 0, DARWIN_CLOCK,
                                         (uint64_t)timeout_ms * 1000000);
  }
  errno = saved;
}

void _mi_prim_wake(mi_atomic(uint32_t)* word, bool all) {
  int saved = errno;
  if (all && os_sync_wake_by_address_all != NULL) os_sync_wake_by_address_all((void*)word, sizeof(*word), 0);
  else if (!all && os_sync_wake_by_address_any != NULL) os_sync_wake_by_address_any((void*)word, sizeof(*word), 0);
  errno = saved;
}

// ---- guarded blocks: stacks -------------------------------------------------------------------------------------------

size_t _mi_prim_stack(void** frames, size_t max) {
  int saved = errno;
  int n = backtrace(frames, (int)max);
  errno = saved;
  return n < 0 ? 0 : (size_t)n;
}

bool _mi_prim_stack_init(void) {
  void* frames[2];
  return _mi_prim_stack(frames, 2) > 0;
}
