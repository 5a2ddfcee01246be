// A DLL that contains the static library goes while threads run that have allocated with it, in guarded mode: the process goes
// on, threads end, and a fault of the program reaches the program's handler.
#include <windows.h>

#include "../check.h"
#include "../modes/support.h"

enum { n_loads = 5, n_threads = 4 };

typedef void* (*malloc_t)(size_t size);
typedef void (*free_t)(void* p);

static malloc_t      contained_malloc;
static free_t        contained_free;
static HANDLE        unloaded;
static char*         page; // of no access, until the handler has seen a fault there
static volatile LONG n_ready, n_faults;

static DWORD WINAPI run(void* arg) {
  (void)arg;
  for (size_t i = 0; i < 100; i++) {
    char* p = (char*)contained_malloc(100 + i);
    memset(p, 1, 100 + i);
    if (i % 2 == 0) contained_free(p);
  }
  InterlockedIncrement(&n_ready);
  WaitForSingleObject(unloaded, INFINITE);
  return 0;
}

static LONG WINAPI on_fault(EXCEPTION_POINTERS* pointers) {
  DWORD old;
  if (pointers->ExceptionRecord->ExceptionInformation[1] != (ULONG_PTR)page) return EXCEPTION_CONTINUE_SEARCH;
  InterlockedIncrement(&n_faults);
  return VirtualProtect(page, 4096, PAGE_READWRITE, &old) ? EXCEPTION_CONTINUE_EXECUTION : EXCEPTION_CONTINUE_SEARCH;
}

static bool load(HMODULE* dll) {
  *dll = LoadLibraryA("contained.dll");
  CHECK(*dll != NULL);
  if (*dll == NULL) return false;
  FARPROC find_malloc = GetProcAddress(*dll, "contained_malloc"), find_free = GetProcAddress(*dll, "contained_free");
  CHECK(find_malloc != NULL && find_free != NULL);
  memcpy(&contained_malloc, &find_malloc, sizeof(find_malloc));
  memcpy(&contained_free, &find_free, sizeof(find_free));
  return find_malloc != NULL && find_free != NULL;
}

static void load_once(void) {
  HANDLE  threads[n_threads];
  HMODULE dll;
  DWORD   old;
  if (!load(&dll)) return;
  n_ready = 0;
  unloaded = CreateEventA(NULL, TRUE, FALSE, NULL);
  for (size_t i = 0; i < n_threads; i++) threads[i] = CreateThread(NULL, 0, &run, NULL, 0, NULL);
  while (n_ready < n_threads) Sleep(1);
  CHECK(FreeLibrary(dll));
  CHECK(GetModuleHandleA("contained.dll") == NULL);
  SetEvent(unloaded);
  CHECK_EQ(WaitForMultipleObjects(n_threads, threads, TRUE, 60000), WAIT_OBJECT_0);
  for (size_t i = 0; i < n_threads; i++) CloseHandle(threads[i]);
  CloseHandle(unloaded);
  CHECK(VirtualProtect(page, 4096, PAGE_NOACCESS, &old));
  *(volatile char*)page = 1;
}

int main(void) {
  watchdog(120);
  SetEnvironmentVariableA("MIMALLOC_GUARDED_SAMPLE_RATE", "1"); // the mode that has a handler of faults
  page = (char*)VirtualAlloc(NULL, 4096, MEM_RESERVE | MEM_COMMIT, PAGE_NOACCESS);
  CHECK(page != NULL && AddVectoredExceptionHandler(0, &on_fault) != NULL);
  for (int i = 0; i < n_loads; i++) load_once();
  CHECK_EQ(n_faults, n_loads);
  return check_result();
}
