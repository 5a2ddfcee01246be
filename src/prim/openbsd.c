// What only OpenBSD has.  Layer: prim.
//
// A program may pledge to make few system calls.  All of those here are allowed to one that pledges "stdio".
#include <errno.h>
#include <pthread.h>
#include <pthread_np.h>
#include <sys/futex.h>
#include <sys/types.h>
#include <unistd.h>

#include "bsd.h"
#include "unix_process.h"

uint64_t _mi_prim_random(void) {
  uint64_t x = 0;
  int      saved = errno;
  if (getentropy(&x, sizeof(x)) != 0) x = _mi_posix_process_guess();
  errno = saved;
  return x;
}

// When the process was started, and what it has in memory now, is known to those only who may ask about any process.
void _mi_prim_process_info(mi_process_info_t* info) {
  _mi_bsd_usage(info);
}

uintptr_t _mi_prim_thread_id(void) {
  return (uintptr_t)getthrid();
}

bool _mi_prim_thread_is_main(void) {
  return pthread_main_np() == 1;
}

void _mi_prim_wait(mi_atomic(uint32_t)* word, uint32_t expected, int64_t timeout_ms) {
  struct timespec timeout;
  int             saved = errno;
  futex((volatile uint32_t*)(void*)word, FUTEX_WAIT_PRIVATE, (int)expected,
        _mi_posix_process_timeout(timeout_ms, &timeout), NULL);
  errno = saved;
}

void _mi_prim_wake(mi_atomic(uint32_t)* word, bool all) {
  int saved = errno;
  futex((volatile uint32_t*)(void*)word, FUTEX_WAKE_PRIVATE, all ? 0x7fffffff : 1, NULL, NULL);
  errno = saved;
}
