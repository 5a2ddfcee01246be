// What only NetBSD has.  Layer: prim.
#include <errno.h>
#include <lwp.h>
#include <sys/param.h>
#include <sys/futex.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/sysctl.h>
#include <unistd.h>

#include "../base/bits.h"
#include "bsd.h"
#include "unix_process.h"

uint64_t _mi_prim_random(void) {
  uint64_t x = 0;
  int      saved = errno;
  if (getrandom(&x, sizeof(x), GRND_NONBLOCK) != (ssize_t)sizeof(x)) x = _mi_posix_process_guess();
  errno = saved;
  return x;
}

void _mi_prim_process_info(mi_process_info_t* info) {
  struct kinfo_proc2 process;
  size_t             size = sizeof(process);
  int                saved = errno;
  int                name[] = {CTL_KERN, KERN_PROC2, KERN_PROC_PID, getpid(), (int)sizeof(process), 1};
  _mi_bsd_usage(info);
  if (sysctl(name, 6, &process, &size, NULL, 0) == 0 && size == sizeof(process)) {
    struct timeval start = {(time_t)process.p_ustart_sec, (suseconds_t)process.p_ustart_usec};
    info->rss_current = (size_t)process.p_vm_rssize * _mi_prim_os_page_size();
    info->rss_peak = mi_max(info->rss_peak, info->rss_current); // which the system notes now and then
    info->elapsed_ms = _mi_unix_process_since_ms(&start);
  }
  errno = saved;
}

uintptr_t _mi_prim_thread_id(void) {
  return (uintptr_t)_lwp_self();
}

bool _mi_prim_thread_is_main(void) {
  return _lwp_self() == 1;
}

// Versions before 10 have no such call.
void _mi_prim_wait(mi_atomic(uint32_t)* word, uint32_t expected, int64_t timeout_ms) {
  struct timespec timeout;
  int             saved = errno;
  int             op = FUTEX_WAIT | FUTEX_PRIVATE_FLAG;
  if (syscall(SYS___futex, (void*)word, op, (int)expected, _mi_posix_process_timeout(timeout_ms, &timeout), NULL, 0,
              0) != 0 &&
      errno == ENOSYS)
    _mi_unix_process_nap(timeout_ms);
  errno = saved;
}

void _mi_prim_wake(mi_atomic(uint32_t)* word, bool all) {
  int saved = errno;
  syscall(SYS___futex, (void*)word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, all ? 0x7fffffff : 1, NULL, NULL, 0, 0);
  errno = saved;
}
