// A program whose threads load modules at the same time: each waits for the loader, and for the redirection of what the others have
// loaded.  The program is told of modules, too, and takes its time then, while the loader holds its lock.
//
//   loading MODULE      MODULE is copied for each time
#include <stdbool.h>
#include <stdio.h>
#include <process.h>
#include <windows.h>

#define THREADS 4
#define ROUNDS  20

typedef void(CALLBACK* notify_t)(ULONG reason, const void* news, void* arg);
typedef LONG(NTAPI* register_t)(ULONG flags, notify_t notify, void* arg, void** cookie);

static const char*   module;
static volatile LONG n_loaded;

static void CALLBACK dawdle(ULONG reason, const void* news, void* arg) {
  (void)reason, (void)news, (void)arg;
  Sleep(1);
}

static bool register_dawdle(void) {
  static void* cookie;
  register_t   fun = (register_t)(void*)GetProcAddress(GetModuleHandleA("ntdll.dll"), "LdrRegisterDllNotification");
  return fun != NULL && fun(0, dawdle, NULL, &cookie) >= 0;
}

static void name_copy(char name[64], size_t thread, int round) {
  snprintf(name, 64, "loading-%lu-%u-%d.dll", GetCurrentProcessId(), (unsigned)thread, round);
}

static unsigned __stdcall run(void* arg) {
  for (int i = 0; i < ROUNDS; i++) {
    char copy[64];
    name_copy(copy, (size_t)arg, i);
    HMODULE loaded = (CopyFileA(module, copy, FALSE) ? LoadLibraryA(copy) : NULL);
    if (loaded == NULL) break;
    InterlockedIncrement(&n_loaded);
    FreeLibrary(loaded);
  }
  return 0;
}

int main(int argc, char** argv) {
  HANDLE threads[THREADS];
  if (argc < 2 || !register_dawdle() || LoadLibraryA("mimalloc.dll") == NULL) return 2;
  module = argv[1];
  for (size_t i = 0; i < THREADS; i++) threads[i] = (HANDLE)_beginthreadex(NULL, 0, run, (void*)i, 0, NULL);
  bool is_over = (WaitForMultipleObjects(THREADS, threads, TRUE, 30000) != WAIT_TIMEOUT);
  printf("%s: %ld modules were loaded\n", is_over ? "ok" : "FAILED, threads wait for each other", n_loaded);
  fflush(stdout);
  for (int i = 0; i < THREADS * ROUNDS; i++) {
    char copy[64];
    name_copy(copy, (size_t)(i / ROUNDS), i % ROUNDS);
    DeleteFileA(copy);
  }
  // The end of the process would wait for the loader, too.
  if (!is_over || n_loaded != THREADS * ROUNDS) TerminateProcess(GetCurrentProcess(), 1);
  return 0;
}
