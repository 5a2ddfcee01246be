// Threads of Emscripten, beyond what systems with POSIX threads share.  Layer: prim.
#include <emscripten/threading.h>
#include <limits.h>
#include <pthread.h>

#include "thread_exit.h"

#if MI_PRIM_THREADS

bool _mi_prim_has_thread_storage(void) {
  return true;
}

uintptr_t _mi_prim_thread_id(void) {
  return (uintptr_t)pthread_self();
}

bool _mi_prim_thread_is_main(void) {
  return emscripten_is_main_runtime_thread() != 0;
}

// The first allocation is Emscripten's own, while it sets up its main thread.  A key that is made then leaves the lock of all keys
// held for ever (seen in 3.1.6).  The main thread ends with the program, and needs none.
__attribute__((constructor(101))) static void prim_make_key(void) {
  _mi_thread_exit_make_key();
}

// ---- waiting ----------------------------------------------------------------------------------------------------------
// By the machine's own instructions: emscripten_futex_wait runs what other threads have sent to the main thread, and that may
// allocate, while the caller is in the midst of an allocation.

  #if defined(__cplusplus)
extern "C"
  #endif
    __attribute__((weak)) int
    _emscripten_thread_supports_atomics_wait(void); // a browser's main thread must not sleep

void _mi_prim_wait(mi_atomic(uint32_t)* word, uint32_t expected, int64_t timeout_ms) {
  int64_t timeout_ns = (timeout_ms < 0 ? -1 : timeout_ms * 1000000);
  if (&_emscripten_thread_supports_atomics_wait == NULL || !_emscripten_thread_supports_atomics_wait()) return;
  __builtin_wasm_memory_atomic_wait32((int*)(void*)word, (int)expected, timeout_ns);
}

void _mi_prim_wake(mi_atomic(uint32_t)* word, bool all) {
  __builtin_wasm_memory_atomic_notify((int*)(void*)word, all ? UINT_MAX : 1);
}

#endif
