// Waiting and waking where the system lacks WaitOnAddress (Windows 7).  The source is compiled once more without the functions
// that are looked up; the library's own copy of it is not linked then.
#include "prim/windows_calls.h"

static mi_windows_calls_t no_calls;
#define _mi_windows_calls no_calls

#include "../../src/prim/windows_thread.c"

#include "../check.h"
#include "../modes/support.h"

enum { n_threads = 4, n_steps = 400 };

static mi_atomic(uint32_t) turn;

// The threads take turns: each waits for the one before it.
static DWORD WINAPI take_turns(void* arg) {
  uint32_t me = (uint32_t)(uintptr_t)arg, seen;
  for (int i = 0; i < n_steps / n_threads; i++) {
    while ((seen = mi_load_acquire(&turn)) % n_threads != me) _mi_prim_wait(&turn, seen, -1);
    mi_store_release(&turn, seen + 1);
    _mi_prim_wake(&turn, true);
  }
  return 0;
}

int main(void) {
  HANDLE threads[n_threads];
  watchdog(60);
  for (uintptr_t i = 0; i < n_threads; i++) threads[i] = CreateThread(NULL, 0, &take_turns, (void*)i, 0, NULL);
  CHECK_EQ(WaitForMultipleObjects(n_threads, threads, TRUE, 50000), WAIT_OBJECT_0);
  CHECK_EQ(mi_load_relaxed(&turn), n_steps);
  SetLastError(99);
  _mi_prim_wait(&turn, n_steps, -1); // nobody wakes us: it looks again by itself
  CHECK_EQ(GetLastError(), 99);
  _mi_prim_wait(&turn, n_steps + 1, -1); // it is another value already
  return check_result();
}
