// A program that loads mimalloc.dll while its threads allocate.
//
//   running MODE [deaf]      MODE as for test-target.c; deaf: the system refuses to tell of modules that are loaded
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <direct.h>
#include <process.h>
#include <windows.h>

static int n_failed;
static bool (*is_ours)(const void* p);

static void check(bool ok, const char* what) {
  printf("%s %s\n", ok ? "ok" : "FAILED", what);
  fflush(stdout);
  n_failed += !ok;
}

// The compiler leaves calls of malloc out where it sees what becomes of the block.
static void* volatile sink;

static void* make(size_t size) {
  void* p = malloc(size);
  sink = p;
  return p;
}

#define THREADS 4
#define BLOCKS  500

static volatile LONG n_rounds, is_over, n_wrong;

static unsigned __stdcall run(void* arg) {
  unsigned char* blocks[BLOCKS] = {NULL};
  unsigned char  mark = (unsigned char)(uintptr_t)arg;
  while (!is_over) {
    for (size_t i = 0; i < BLOCKS; i++) {
      if (blocks[i] != NULL && (blocks[i][0] != mark || blocks[i][i] != mark)) InterlockedIncrement(&n_wrong);
      if (i % 3 == 0 && blocks[i] != NULL) blocks[i] = realloc(blocks[i], 2 * i + 1);
      else {
        free(blocks[i]);
        blocks[i] = make(i + 1);
      }
      memset(blocks[i], mark, i + 1);
    }
    InterlockedIncrement(&n_rounds);
  }
  for (size_t i = 0; i < BLOCKS; i++) free(blocks[i]);
  return 0;
}

static void wait_for(LONG n) {
  for (LONG from = n_rounds; n_rounds - from < n;) Sleep(1);
}

// mov eax, STATUS_NOT_IMPLEMENTED; ret
static bool make_deaf(void) {
  static const unsigned char code[] = {0xb8, 0x02, 0x00, 0x00, 0xc0, 0xc3};
  void*                      fun = (void*)GetProcAddress(GetModuleHandleA("ntdll.dll"), "LdrRegisterDllNotification");
  DWORD                      old;
  if (fun == NULL || !VirtualProtect(fun, sizeof(code), PAGE_EXECUTE_READWRITE, &old)) return false;
  memcpy(fun, code, sizeof(code));
  return FlushInstructionCache(GetCurrentProcess(), fun, sizeof(code)) != 0;
}

static void test_late(bool wants_ours) {
  HMODULE late = LoadLibraryA("redirect-late.dll");
  void* (*late_make)(size_t) = (void* (*)(size_t))(void*)GetProcAddress(late, "late_make");
  void (*late_delete)(void*) = (void (*)(void*))(void*)GetProcAddress(late, "late_delete");
  void* p = late_make(100);
  check(is_ours(p) == wants_ours, "malloc of a module that is loaded later");
  late_delete(p);
}

int main(int argc, char** argv) {
  bool   wants_inline = (argc > 1 && strcmp(argv[1], "inline") == 0);
  bool   wants_ours = (wants_inline || (argc > 1 && strcmp(argv[1], "iat") == 0));
  HANDLE threads[THREADS];
  if (argc > 2) check(make_deaf(), "no notifications");
  for (size_t i = 0; i < THREADS; i++) threads[i] = (HANDLE)_beginthreadex(NULL, 0, run, (void*)(i + 1), 0, NULL);
  char* p = make(100);
  char* q = make(100);
  strcpy(p, "from before");
  wait_for(20);
  HMODULE library = LoadLibraryA("mimalloc.dll");
  check(library != NULL, "LoadLibrary");
  if (library == NULL) return 1;
  is_ours = (bool (*)(const void*))(void*)GetProcAddress(library, "mi_is_in_heap_region");
  check(!is_ours(p), "a block from before");
  p = realloc(p, 50000);
  check(is_ours(p) == wants_ours && strcmp(p, "from before") == 0, "realloc of it");
  free(p);
  free(q);
  p = make(100);
  check(is_ours(p) == wants_ours, "malloc");
  free(p);
  test_late(wants_ours);
  wait_for(20);
  is_over = 1;
  WaitForMultipleObjects(THREADS, threads, TRUE, INFINITE);
  check(n_wrong == 0, "the contents of all blocks");
  for (int i = 0; i < 10; i++) FreeLibrary(library);
  p = make(100);
  free(p);
  printf("%d failed\n", n_failed);
  return n_failed > 0;
}
