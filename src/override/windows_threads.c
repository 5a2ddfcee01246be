// Stopping threads.  Layer: override.
//
// The system lists threads in the order of their creation, so one that was created meanwhile is found too: by a thread that had
// not been stopped yet, and behind it.
#include "windows_threads.h"

#include <string.h>
#include <windows.h>

#define THREADS_MAX   1024
#define THREADS_TRIES 100

typedef LONG(NTAPI* threads_next_t)(HANDLE process, HANDLE thread, ACCESS_MASK access, ULONG attributes, ULONG flags,
                                    HANDLE* next);

static threads_next_t threads_next; // NULL: this Windows does not have it

static HANDLE threads_all[THREADS_MAX]; // the caller's among them, which is not stopped
static size_t threads_n;

void _mi_windows_threads_find(void) {
  FARPROC found = GetProcAddress(GetModuleHandleA("ntdll.dll"), "NtGetNextThread");
  memcpy(&threads_next, &found, sizeof(threads_next));
}

void _mi_windows_threads_resume(void) {
  for (; threads_n > 0; threads_n--) {
    ResumeThread(threads_all[threads_n - 1]);
    CloseHandle(threads_all[threads_n - 1]);
  }
}

static bool threads_is_clear(HANDLE thread, bool (*is_clear)(uintptr_t at, const void* arg), const void* arg) {
#if defined(__x86_64__) || defined(_M_X64)
  CONTEXT context; // asking for it also waits until the thread has really stopped
  context.ContextFlags = CONTEXT_CONTROL;
  return !GetThreadContext(thread, &context) || is_clear == NULL || is_clear((uintptr_t)context.Rip, arg);
#else
  CONTEXT context;
  context.ContextFlags = CONTEXT_CONTROL;
  GetThreadContext(thread, &context);
  (void)arg;
  return is_clear == NULL;
#endif
}

// False: there are too many, or one is in the way.
static bool threads_try(bool (*is_clear)(uintptr_t at, const void* arg), const void* arg) {
  const ACCESS_MASK access = THREAD_SUSPEND_RESUME | THREAD_GET_CONTEXT | THREAD_QUERY_LIMITED_INFORMATION;
  HANDLE            thread = NULL;
  while (threads_next(GetCurrentProcess(), thread, access, 0, 0, &thread) >= 0) {
    threads_all[threads_n++] = thread;
    if (GetThreadId(thread) == GetCurrentThreadId()) continue;
    SuspendThread(thread);
    if (!threads_is_clear(thread, is_clear, arg) || threads_n == THREADS_MAX) return false;
  }
  return true;
}

bool _mi_windows_threads_stop(bool (*is_clear)(uintptr_t at, const void* arg), const void* arg) {
  for (size_t n = 0; threads_next != NULL && n < THREADS_TRIES; n++) {
    if (threads_try(is_clear, arg)) return true;
    _mi_windows_threads_resume();
    Sleep(1);
  }
  return false;
}
