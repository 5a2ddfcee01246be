// What only Haiku has.  Layer: prim.  Only compiled, against declarations of our own (test/stubs).
#include <OS.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "posix_memory.h"
#include "unix_process.h"

bool _mi_prim_find_empty(size_t i, uintptr_t* start, size_t* size) {
  return _mi_posix_memory_find_empty(i, start, size);
}

bool _mi_prim_overcommits(void) {
  return false;
}

uint64_t _mi_prim_random(void) {
  uint64_t x = 0;
  int      saved = errno, state = _mi_posix_process_shield();
  int      fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  if (fd < 0 || read(fd, &x, sizeof(x)) != (ssize_t)sizeof(x)) x = _mi_posix_process_guess();
  if (fd >= 0) close(fd);
  _mi_posix_process_unshield(state);
  errno = saved;
  return x;
}

#if defined(__cplusplus)
extern "C" {
#endif
extern char** environ;
#if defined(__cplusplus)
}
#endif

const char* _mi_prim_environment_entry(size_t i) {
  return environ == NULL ? NULL : environ[i];
}

bool _mi_prim_is_privileged(void) {
  return geteuid() != getuid() || getegid() != getgid();
}

void _mi_prim_process_info(mi_process_info_t* info) {
  struct rusage used;
  _mi_posix_process_usage(&used, info);
}

uintptr_t _mi_prim_thread_id(void) {
  return (uintptr_t)find_thread(NULL);
}

// A team has the number of its first thread.
bool _mi_prim_thread_is_main(void) {
  return find_thread(NULL) == getpid();
}

void _mi_prim_wait(mi_atomic(uint32_t)* word, uint32_t expected, int64_t timeout_ms) {
  if (mi_load_relaxed(word) == expected) _mi_unix_process_nap(timeout_ms);
}

void _mi_prim_wake(mi_atomic(uint32_t)* word, bool all) {
  (void)word, (void)all;
}

size_t _mi_prim_stack(void** frames, size_t max) {
  (void)frames, (void)max;
  return 0;
}

bool _mi_prim_stack_init(void) {
  return false;
}
