// What only DragonFly BSD has.  Layer: prim.  Only compiled, against declarations of our own (test/stubs).
#include <errno.h>
#include <pthread_np.h>
#include <sys/lwp.h>
#include <sys/random.h>
#include <sys/types.h>
#include <unistd.h>

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
  _mi_bsd_usage(info);
}

uintptr_t _mi_prim_thread_id(void) {
  return (uintptr_t)lwp_gettid();
}

bool _mi_prim_thread_is_main(void) {
  return pthread_main_np() == 1;
}

// The timeout is in microseconds, 0 for ever; the kernel limits it.
void _mi_prim_wait(mi_atomic(uint32_t)* word, uint32_t expected, int64_t timeout_ms) {
  int saved = errno;
  int us = (timeout_ms < 0 ? 0 : timeout_ms == 0 ? 1 : timeout_ms > 1000 ? 1000000 : (int)timeout_ms * 1000);
  umtx_sleep((volatile const int*)(void*)word, (int)expected, us);
  errno = saved;
}

void _mi_prim_wake(mi_atomic(uint32_t)* word, bool all) {
  int saved = errno;
  umtx_wakeup((volatile const int*)(void*)word, all ? 0 : 1);
  errno = saved;
}
