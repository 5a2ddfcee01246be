// The DLL is loaded at run time and given up again while threads run that have blocks: they go on to use it, and end.  Ten
// times, with memory that stays bounded.
#include <windows.h>

#include "../check.h"
#include "../modes/support.h"

enum { n_loads = 10, n_threads = 4 };

typedef void* (*malloc_t)(size_t size);
typedef void (*free_t)(void* p);

static malloc_t      dll_malloc;
static free_t        dll_free;
static HANDLE        unloaded;
static volatile LONG n_ready, n_wrong;

static DWORD WINAPI run(void* arg) {
  char* blocks[100];
  (void)arg;
  for (size_t i = 0; i < COUNT_OF(blocks); i++) {
    blocks[i] = (char*)dll_malloc(1000);
    memset(blocks[i], (int)i, 1000);
  }
  InterlockedIncrement(&n_ready);
  WaitForSingleObject(unloaded, INFINITE);
  for (size_t i = 0; i < COUNT_OF(blocks); i++) {
    if (blocks[i][999] != (char)i) InterlockedIncrement(&n_wrong);
    dll_free(blocks[i]);
    char* p = (char*)dll_malloc(64);
    if (p == NULL) InterlockedIncrement(&n_wrong);
    dll_free(p);
  }
  return 0;
}

static void load_once(void) {
  HANDLE  threads[n_threads];
  HMODULE dll = LoadLibraryA("mimalloc.dll");
  CHECK(dll != NULL);
  if (dll == NULL) return;
  FARPROC find_malloc = GetProcAddress(dll, "mi_malloc"), find_free = GetProcAddress(dll, "mi_free");
  CHECK(find_malloc != NULL && find_free != NULL);
  memcpy(&dll_malloc, &find_malloc, sizeof(find_malloc));
  memcpy(&dll_free, &find_free, sizeof(find_free));
  n_ready = 0;
  unloaded = CreateEventA(NULL, TRUE, FALSE, NULL);
  for (size_t i = 0; i < n_threads; i++) threads[i] = CreateThread(NULL, 0, &run, NULL, 0, NULL);
  while (n_ready < n_threads) Sleep(1);
  CHECK(FreeLibrary(dll));
  SetEvent(unloaded);
  CHECK_EQ(WaitForMultipleObjects(n_threads, threads, TRUE, 60000), WAIT_OBJECT_0);
  for (size_t i = 0; i < n_threads; i++) CloseHandle(threads[i]);
  CloseHandle(unloaded);
}

int main(void) {
  watchdog(120);
  load_once();
  size_t before = rss_now();
  for (int i = 1; i < n_loads; i++) load_once();
  CHECK_EQ(n_wrong, 0);
  CHECK(rss_within("resident after loading again and again", rss_now(), before + 4 * MiB));
  return check_result();
}
