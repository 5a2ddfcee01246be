// Proves: aligned address space where the system cannot be asked for it (before Windows 10), also while other threads take what
// was just free.  The source is compiled once more without the functions that are looked up; the library's own copy of it is
// not linked then.
#include "prim/windows_calls.h"

static mi_windows_calls_t no_calls;
#define _mi_windows_calls no_calls

#include "../../src/prim/windows.c"

#include "../check.h"
#include "../modes/support.h"

enum { n_threads = 4, n_rounds = 300 };

static mi_atomic(uint32_t) n_done;

static DWORD WINAPI reserve_all(void* arg) {
  size_t align = (size_t)1 << (20 + 2 * (uintptr_t)arg);
  for (int i = 0; i < n_rounds; i++) {
    void* p[4];
    for (size_t k = 0; k < COUNT_OF(p); k++) {
      CHECK_EQ(_mi_prim_reserve(3 * MiB, align, &p[k]), 0);
      CHECK(is_aligned(p[k], align));
    }
    for (size_t k = 0; k < COUNT_OF(p); k++) CHECK_EQ(_mi_prim_release(p[k], 3 * MiB), 0);
  }
  mi_fetch_add_relaxed(&n_done, 1);
  return 0;
}

int main(void) {
  HANDLE threads[n_threads];
  void*  p;
  watchdog(120);
  for (uintptr_t i = 0; i < n_threads; i++) threads[i] = CreateThread(NULL, 0, &reserve_all, (void*)i, 0, NULL);
  CHECK_EQ(WaitForMultipleObjects(n_threads, threads, TRUE, 100000), WAIT_OBJECT_0);
  CHECK_EQ(mi_load_relaxed(&n_done), n_threads);
  SetLastError(99);
  CHECK(_mi_prim_reserve(MiB, POWER_OF_TWO(60), &p) != 0); // no system has that
  CHECK_EQ(GetLastError(), 99);
  return check_result();
}
