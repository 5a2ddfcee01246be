// Two DLLs that contain the static library and want the same place in memory: the system moves one of them, and both serve all
// threads.
#include <windows.h>

#include "../check.h"
#include "../modes/support.h"

enum { n_dlls = 2, n_threads = 4 };

typedef void* (*malloc_t)(size_t size);
typedef void (*free_t)(void* p);

static malloc_t contained_malloc[n_dlls];
static free_t   contained_free[n_dlls];

static DWORD WINAPI run(void* arg) {
  static volatile LONG seed;
  size_t               key = (size_t)InterlockedIncrement(&seed);
  (void)arg;
  for (size_t i = 0; i < 1000; i++) {
    size_t   k = i % n_dlls, size = 1 + i * key % 5000;
    uint8_t* p = (uint8_t*)contained_malloc[k](size);
    CHECK(p != NULL);
    pattern_fill(p, 0, size, key);
    CHECK_EQ(pattern_check(p, size, key), size);
    contained_free[k](p);
  }
  return 0;
}

static HMODULE load(const char* path, size_t k) {
  HMODULE dll = LoadLibraryA(path);
  CHECK(dll != NULL);
  if (dll == NULL) exit(check_result());
  FARPROC find_malloc = GetProcAddress(dll, "contained_malloc"), find_free = GetProcAddress(dll, "contained_free");
  CHECK(find_malloc != NULL && find_free != NULL);
  memcpy(&contained_malloc[k], &find_malloc, sizeof(find_malloc));
  memcpy(&contained_free[k], &find_free, sizeof(find_free));
  return dll;
}

int main(void) {
  static char path[MAX_PATH], copy[MAX_PATH + 8];
  HANDLE      threads[n_threads];
  watchdog(120);
  HMODULE dll = load("contained.dll", 0);
  DWORD   length = GetModuleFileNameA(dll, path, MAX_PATH);
  CHECK(length > 0 && length < MAX_PATH);
  snprintf(copy, sizeof(copy), "%s2", path);
  CHECK(CopyFileA(path, copy, FALSE));
  CHECK(load(copy, 1) != dll);
  run(NULL);
  for (size_t i = 0; i < n_threads; i++) threads[i] = CreateThread(NULL, 0, &run, NULL, 0, NULL);
  CHECK_EQ(WaitForMultipleObjects(n_threads, threads, TRUE, 60000), WAIT_OBJECT_0);
  return check_result();
}
