// A process ends while its other threads allocate and free: the system ends those wherever they are, also with locks of the
// library held.  Nevertheless what runs at the end may allocate and free, and nothing waits for them.
//
// With an argument it is such a process.
#include <windows.h>

#if defined(MI_FAULT_INJECTION) // the library of the tests of internals
  #include "arena/region.h"
  #define HAS_INTERNALS 1
#else
  #define HAS_INTERNALS 0
#endif
#include <mimalloc.h>

#include "../check.h"
#include "../modes/support.h"

enum { n_processes = 12, n_threads = 4 };

static void* volatile blocks[n_threads];

static DWORD WINAPI churn(void* arg) {
  size_t i = (size_t)arg;
  for (size_t n = 0;; n++) {
    mi_free(blocks[i]);
    blocks[i] = mi_malloc(n % 7 == 0 ? 3 * MiB : n % 5 == 0 ? 200 * KiB : n % 3000); // also those that take locks
  }
  return 0;
}

// Ends with a lock.
static DWORD WINAPI hold(void* arg) {
#if HAS_INTERNALS
  _mi_lock_acquire(&_mi_region_lock);
#endif
  SetEvent((HANDLE)arg);
  Sleep(INFINITE);
  return 0;
}

static void at_exit(void) {
  void* late[500];
  for (size_t i = 0; i < COUNT_OF(late); i++) late[i] = mi_malloc(i * i * 16);
  for (size_t i = 0; i < COUNT_OF(late); i++) mi_free(late[i]);
}

// What is called when the other threads are gone.
static VOID WINAPI on_end(PVOID arg) {
  (void)arg;
  at_exit();
  TerminateProcess(GetCurrentProcess(), 43); // says that we were here
}

static void be_such_a_process(bool holds) {
  FlsSetValue(FlsAlloc(&on_end), (PVOID)1);
  HANDLE held = CreateEventA(NULL, TRUE, FALSE, NULL);
  if (holds) {
    CloseHandle(CreateThread(NULL, 0, &hold, held, 0, NULL));
    WaitForSingleObject(held, INFINITE);
    ExitProcess(42);
  }
  for (size_t i = 0; i < n_threads; i++) CloseHandle(CreateThread(NULL, 0, &churn, (void*)i, 0, NULL));
  Sleep(30);
  ExitProcess(42);
}

static void check_process(const char* program, const char* what) {
  STARTUPINFOA        startup;
  PROCESS_INFORMATION process;
  char                command[1024];
  DWORD               code = 0;
  memset(&startup, 0, sizeof(startup));
  startup.cb = sizeof(startup);
  snprintf(command, sizeof(command), "\"%s\" %s", program, what);
  bool ok = CreateProcessA(NULL, command, NULL, NULL, FALSE, 0, NULL, NULL, &startup, &process);
  CHECK(ok);
  if (!ok) return;
  bool has_ended = (WaitForSingleObject(process.hProcess, 20000) == WAIT_OBJECT_0);
  CHECK(has_ended);
  if (!has_ended) TerminateProcess(process.hProcess, 1);
  GetExitCodeProcess(process.hProcess, &code);
  CHECK_EQ(code, 43);
  CloseHandle(process.hProcess);
  CloseHandle(process.hThread);
}

int main(int argc, char** argv) {
  char program[MAX_PATH];
  if (argc > 1) be_such_a_process(strcmp(argv[1], "hold") == 0);
  GetModuleFileNameA(NULL, program, sizeof(program));
  for (int i = 0; i < n_processes; i++) check_process(program, "churn");
  if (HAS_INTERNALS) check_process(program, "hold");
  return check_result();
}
