// What only FreeBSD has.  Layer: prim.
#include <errno.h>
#include <pthread_np.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/param.h>
#include <sys/random.h>
#include <sys/sysctl.h>
#include <sys/umtx.h>
#include <sys/user.h>
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
  struct kinfo_proc process;
  size_t            size = sizeof(process);
  int               saved = errno;
  int               name[] = {CTL_KERN, KERN_PROC, KERN_PROC_PID, getpid()};
  _mi_bsd_usage(info);
  if (sysctl(name, 4, &process, &size, NULL, 0) == 0 && size == sizeof(process)) {
    info->rss_current = (size_t)process.ki_rssize * _mi_prim_os_page_size();
    info->rss_peak = mi_max(info->rss_peak, info->rss_current); // which the system notes now and then
    info->elapsed_ms = _mi_unix_process_since_ms(&process.ki_start);
  }
  errno = saved;
}

uintptr_t _mi_prim_thread_id(void) {
  return (uintptr_t)pthread_getthreadid_np();
}

bool _mi_prim_thread_is_main(void) {
  return pthread_main_np() == 1;
}

void _mi_prim_wait(mi_atomic(uint32_t)* word, uint32_t expected, int64_t timeout_ms) {
  struct timespec timeout;
  int             saved = errno;
  _umtx_op((void*)word, UMTX_OP_WAIT_UINT_PRIVATE, expected, NULL, _mi_posix_process_timeout(timeout_ms, &timeout));
  errno = saved;
}

void _mi_prim_wake(mi_atomic(uint32_t)* word, bool all) {
  int saved = errno;
  _umtx_op((void*)word, UMTX_OP_WAKE_PRIVATE, all ? 0x7fffffff : 1, NULL, NULL);
  errno = saved;
}
