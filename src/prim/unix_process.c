// The process and its threads, as macOS, the BSDs and Haiku have them.  Layer: prim.
#include "unix_process.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>


#define UNIX_NAP_NS 200000 // about what the wake-up of a thread that sleeps takes, a few times over

// ---- output ---------------------------------------------------------------------------------------------------------

static bool unix_may_print(size_t size) {
  return !_mi_posix_process_stderr_is_limited() || _mi_posix_process_may_write(STDERR_FILENO, size);
}

void _mi_prim_write_stderr(const char* text, size_t length) {
  int saved = errno, state = _mi_posix_process_shield();
  while (length > 0 && unix_may_print(length)) {
    ssize_t n = write(STDERR_FILENO, text, length);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text += n;
    length -= (size_t)n;
  }
  _mi_posix_process_unshield(state);
  errno = saved;
}

size_t _mi_prim_numa_node_count(void) {
  return 1;
}

size_t _mi_prim_numa_node(void) {
  return 0;
}

bool _mi_prim_has_thread_storage(void) {
  return true;
}

// Nothing says whether the code that contains it is the program's.
bool _mi_prim_is_unloadable(void) {
#if defined(MI_SHARED_LIB)
  return false;
#else
  return true;
#endif
}

// ---- guarded blocks -------------------------------------------------------------------------------------------------

// The loader knows.  It takes a lock of its own for it on some systems, which the interrupted thread may hold while it loads
// a library: only there a report may hang that tells of a fault.
bool _mi_prim_find_module(uintptr_t address, char* name, size_t size, uintptr_t* offset) {
  Dl_info info;
  int     saved = errno;
  bool    found = (size > 0 && dladdr((const void*)address, &info) != 0 && info.dli_fname != NULL);
  errno = saved;
  if (!found) return false;
  size_t n = 0;
  for (; n + 1 < size && info.dli_fname[n] != 0; n++) name[n] = info.dli_fname[n];
  name[n] = 0;
  *offset = address - (uintptr_t)info.dli_fbase;
  return true;
}

// ---- for the files of each system -----------------------------------------------------------------------------------

int64_t _mi_unix_process_since_ms(const struct timeval* start) {
  struct timeval now = *start;
  int            saved = errno;
  gettimeofday(&now, NULL);
  errno = saved;
  int64_t ms = (int64_t)(now.tv_sec - start->tv_sec) * 1000 + (now.tv_usec - start->tv_usec) / 1000;
  return ms < 0 ? 0 : ms;
}

void _mi_unix_process_nap(int64_t timeout_ms) {
  struct timespec t = {0, UNIX_NAP_NS};
  int             saved = errno, state = _mi_posix_process_shield();
  if (timeout_ms != 0) nanosleep(&t, NULL);
  _mi_posix_process_unshield(state);
  errno = saved;
}

// ---- modules: of other systems than Linux a profile has addresses only ------------------------------------------------

void _mi_prim_modules(bool (*visit)(const mi_module_t* module, void* arg), void* arg) {
  (void)visit;
  (void)arg;
}

size_t _mi_prim_machine_memory(void) {
#if defined(_SC_PHYS_PAGES)
  int  saved = errno;
  long n = sysconf(_SC_PHYS_PAGES);
  errno = saved;
  return n <= 0 ? 0 : (size_t)n * _mi_prim_os_page_size();
#else
  return 0;
#endif
}
