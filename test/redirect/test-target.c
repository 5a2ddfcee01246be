// A program that knows nothing of the library: it calls the C runtime that it was built for.  wiring.cmake has the ways in which it is run.
//
//   target MODE [MODULE]     MODE: "none", "iat" or "inline", how mimalloc.dll is expected to have redirected it
//
// mimalloc.dll is asked through GetProcAddress which blocks are its own.  Each check prints a line; exit status 1 if one fails.
#include <errno.h>
#include <malloc.h>
#include <mbstring.h>
#include <new.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <direct.h>
#include <process.h>
#include <windows.h>

// As C++ has them: size_t is another type with 32 bits.
#if defined(_WIN64)
  #define NAME_SET_HANDLER "?_set_new_handler@@YAP6AH_K@ZP6AH0@Z@Z"
  #define NAME_NEW         "??2@YAPEAX_K@Z"
  #define NAME_DELETE      "??_V@YAXPEAX@Z"
#else
  #define NAME_SET_HANDLER "?_set_new_handler@@YAP6AHI@ZP6AHI@Z@Z"
  #define NAME_NEW         "??2@YAPAXI@Z"
  #define NAME_DELETE      "??_V@YAXPAX@Z"
#endif

#if defined(_UCRT) // the header lacks it
_CRTIMP size_t _aligned_msize(void* p, size_t align, size_t offset);
#endif

// The compiler must not think that it knows these functions, nor leave calls out.
static void* (*volatile p_malloc)(size_t) = malloc;
static void* (*volatile p_calloc)(size_t, size_t) = calloc;
static void* (*volatile p_realloc)(void*, size_t) = realloc;
static void (*volatile p_free)(void*) = free;

static bool (*is_ours_fun)(const void* p);
static bool (*is_redirected_fun)(void);
static const char* mode;
static int         n_failed;
static bool        wants_ours, wants_inline;

static void check(bool ok, const char* what) {
  printf("%s %s\n", ok ? "ok" : "FAILED", what);
  fflush(stdout);
  n_failed += !ok;
}

static bool is_ours(const void* p) {
  return is_ours_fun != NULL && is_ours_fun(p);
}

static bool is_expected(const void* p) {
  return p != NULL && is_ours(p) == wants_ours;
}

// ---- each function ------------------------------------------------------------------------------------------------------

static void test_plain(void) {
  char* p = (char*)p_malloc(100);
  check(is_expected(p), "malloc");
  memset(p, 7, 100);
  p = (char*)p_realloc(p, 100000);
  check(is_expected(p) && p[99] == 7, "realloc");
  check(_msize(p) >= 100000, "_msize");
  check(_expand(p, 99000) == p || wants_ours, "_expand");
  check(p_realloc(p, 0) == NULL, "realloc to nothing");
  p = (char*)p_calloc(1000, 3);
  check(is_expected(p) && p[2999] == 0, "calloc");
  p_free(p);
  p_free(NULL);
  p = (char*)p_malloc(40 << 20);
  check(is_expected(p), "large malloc");
  p_free(p);
}

static void test_strings(void) {
  char*    s = _strdup("a string");
  wchar_t* w = _wcsdup(L"wide");
  check(is_expected(s) && strcmp(s, "a string") == 0, "_strdup");
  check(is_expected(w) && wcscmp(w, L"wide") == 0, "_wcsdup");
  p_free(s);
  p_free(w);
}

static void test_aligned(void) {
  char* p = (char*)_aligned_malloc(1000, 256);
  check(is_expected(p) == true && (uintptr_t)p % 256 == 0, "_aligned_malloc");
  memset(p, 9, 1000);
  p = (char*)_aligned_realloc(p, 50000, 256);
  check((uintptr_t)p % 256 == 0 && p[999] == 9, "_aligned_realloc");
  _aligned_free(p);
  p = (char*)_aligned_offset_malloc(1000, 128, 24);
  check(((uintptr_t)p + 24) % 128 == 0, "_aligned_offset_malloc");
  p = (char*)_aligned_offset_realloc(p, 3000, 128, 24);
  check(((uintptr_t)p + 24) % 128 == 0, "_aligned_offset_realloc");
  _aligned_free(p);
#if defined(_UCRT)
  p = (char*)_recalloc(NULL, 10, 10);
  memset(p, 5, 100);
  p = (char*)_recalloc(p, 100, 100);
  check(is_expected(p) && p[99] == 5 && p[100] == 0 && p[9999] == 0, "_recalloc");
  p_free(p);
  if (!wants_ours) return; // wine has the following in name only
  p = (char*)_aligned_recalloc(NULL, 10, 10, 64);
  check(_aligned_msize(p, 64, 0) >= 100 && p[99] == 0, "_aligned_recalloc");
  _aligned_free(p);
#endif
}

// ---- blocks that the C runtime allocates --------------------------------------------------------------------------------

static void test_foreign(void) {
  char*  p = _getcwd(NULL, 0);
  char*  q = _fullpath(NULL, "x", 0);
  char*  r = _getcwd(NULL, 0);
  HANDLE heap = (HANDLE)_get_heap_handle();
  check(p != NULL && is_ours(p) == wants_inline, "what _getcwd returns");
  check((HeapValidate(heap, 0, q) && HeapValidate(heap, 0, r)) == !wants_inline, "whose it is");
  check(_msize(p) >= strlen(p) + 1, "_msize of it");
  p = (char*)p_realloc(p, 100000);
  check(is_expected(p) && strncmp(p, r, strlen(r) + 1) == 0, "realloc of it");
  check(q != NULL && is_ours(q) == wants_inline, "what _fullpath returns");
  SetLastError(1234);
  errno = 77;
  p_free(p);
  p_free(q);
  p_free(r);
  check(GetLastError() == 1234 && errno == 77, "GetLastError and errno after free");
  if (!wants_inline) check(!HeapValidate(heap, 0, q) && !HeapValidate(heap, 0, r), "the runtime has them back");
  for (int i = 0; i < 2000; i++) p_free(_getcwd(NULL, 0));
#if defined(_UCRT)
  size_t n;
  check(_dupenv_s(&p, &n, "PATH") == 0 && p != NULL && strlen(p) + 1 == n, "_dupenv_s");
  p_free(p);
#endif
}

static void test_failure(void) {
  SetLastError(1234);
  errno = 0;
  void* p = p_malloc(((size_t)-1) / 2 - 4096);
  check(p == NULL && errno == ENOMEM, "errno after a malloc that fails");
  errno = 0;
  p = p_calloc((size_t)-1 / 4, 8);
  check(p == NULL && errno == ENOMEM, "errno after a calloc that overflows");
  if (!wants_ours) return; // the runtime itself may end the program, as its documentation says
  void* a = _aligned_malloc(100, 64);
  errno = 0;
  check(_aligned_malloc(100, 3) == NULL && errno == EINVAL, "errno after an alignment that is no power of two");
  errno = 0;
  check(_aligned_realloc(a, 100, 3) == NULL && errno == EINVAL, "... and of a block that there is");
  _aligned_free(a);
  a = _aligned_malloc(100, 0);
  check(is_expected(a) && (uintptr_t)a % sizeof(void*) == 0, "an alignment of 0");
  _aligned_free(a);
}

#if !defined(_UCRT)
static int n_handled;

static int handle_new(size_t size) {
  (void)size;
  return ++n_handled < 3;
}

static void test_new_handler(HMODULE runtime) {
  typedef int (*mode_fun_t)(int);
  typedef void* (*handler_fun_t)(int (*)(size_t));
  mode_fun_t    set_mode = (mode_fun_t)(void*)GetProcAddress(runtime, "_set_new_mode");
  handler_fun_t set_handler = (handler_fun_t)(void*)GetProcAddress(runtime, "_set_new_handler");
  if (set_mode == NULL) set_mode = (mode_fun_t)(void*)GetProcAddress(runtime, "?_set_new_mode@@YAHH@Z");
  if (set_handler == NULL) set_handler = (handler_fun_t)(void*)GetProcAddress(runtime, NAME_SET_HANDLER);
  if (set_mode == NULL || set_handler == NULL) return;
  set_handler(handle_new);
  set_mode(1);
  check(p_malloc(((size_t)-1) / 2 - 4096) == NULL && n_handled == 3, "the handler of a malloc that fails");
  n_handled = 0;
  if (wants_ours)
    check(_aligned_malloc(100, 3) == NULL && p_calloc((size_t)-1 / 4, 8) == NULL && n_handled == 0,
          "no handler is asked for what there cannot be");
  set_mode(0);
}
#endif

// ---- looked up, loaded later --------------------------------------------------------------------------------------------

static void test_looked_up(HMODULE runtime) {
  typedef void* (*malloc_t)(size_t);
  typedef void (*free_t)(void*);
  malloc_t m = (malloc_t)(void*)GetProcAddress(runtime, "malloc");
  free_t   f = (free_t)(void*)GetProcAddress(runtime, "free");
  void*    p = m(100);
  check(is_expected(p), "malloc by GetProcAddress");
  f(p);
  p_free(m(100));
  f(p_malloc(100));
}

// A runtime that no module of the program is linked with.
static void test_other_runtime(void) {
  typedef void* (*malloc_t)(size_t);
  typedef void (*free_t)(void*);
  HMODULE other = LoadLibraryA("msvcr120.dll");
  if (other == NULL) return;
  malloc_t m = (malloc_t)(void*)GetProcAddress(other, "malloc");
  free_t   f = (free_t)(void*)GetProcAddress(other, "free");
  malloc_t make = (malloc_t)(void*)GetProcAddress(other, NAME_NEW);
  free_t   drop = (free_t)(void*)GetProcAddress(other, NAME_DELETE);
  void* (*working_directory)(void*, int) = (void* (*)(void*, int))(void*)GetProcAddress(other, "_getcwd");
  void* p = m(100);
  void* q = make(100);
  check(is_expected(p) && is_expected(q), "malloc and operator new of another C runtime");
  f(p);
  drop(q);
  p = working_directory(NULL, 0);
  check(p != NULL && is_ours(p) == wants_inline, "what its _getcwd returns");
  f(p);
  FreeLibrary(other);
}

#if !defined(_UCRT)
typedef int (*onexit_fun_t)(void);

static int n_at_exit;

static int at_exit(void) {
  return ++n_at_exit;
}

// As start-up code of older compilers does: the runtime makes the program's block larger.
__declspec(dllimport) onexit_fun_t __dllonexit(onexit_fun_t fun, onexit_fun_t** start, onexit_fun_t** end);

static void test_onexit(void) {
  onexit_fun_t* start = (onexit_fun_t*)p_malloc(4 * sizeof(*start));
  onexit_fun_t* end = start;
  bool          ok = true;
  for (int i = 0; i < 1000; i++) ok = ok && __dllonexit(at_exit, &start, &end) == at_exit;
  check(ok && end - start == 1000 && start[0] == at_exit && start[999] == at_exit, "__dllonexit");
  p_free(start);
}
#endif

static void test_late(const char* name) {
  typedef void* (*make_t)(size_t);
  typedef void (*drop_t)(void*);
  typedef HMODULE(WINAPI * load_t)(LPCSTR);
  HMODULE late = LoadLibraryA(name);
  check(late != NULL, "LoadLibrary");
  if (late == NULL) return;
  make_t make = (make_t)(void*)GetProcAddress(late, "late_make");
  drop_t drop = (drop_t)(void*)GetProcAddress(late, "late_drop");
  make_t make_array = (make_t)(void*)GetProcAddress(late, "late_new");
  drop_t drop_array = (drop_t)(void*)GetProcAddress(late, "late_delete");
  void*  p = make(0);
  check(is_expected(p), "a block from before main of a module that is loaded later");
  p = make(1000);
  check(is_expected(p), "malloc of a module that is loaded later");
  p_free(p);
  drop(p_malloc(1000));
  drop(_getcwd(NULL, 0));
  p = make_array(1000);
  check(is_expected(p), "operator new of a module that is loaded later");
  drop_array(p);
  check(FreeLibrary(late), "FreeLibrary of it");
  load_t load = (load_t)(void*)GetProcAddress(GetModuleHandleA("kernel32.dll"), "LoadLibraryA");
  check(GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS, (LPCSTR)(void*)load, &late) &&
            late != GetModuleHandleA("mimalloc.dll"),
        "LoadLibrary by GetProcAddress is one that other processes have");
  late = load(name);
  make = (make_t)(void*)GetProcAddress(late, "late_make");
  p = make(1000);
  check(is_expected(p), "malloc of a module that is loaded by it");
  p_free(p);
  FreeLibrary(late);
  late = LoadLibraryW(L"redirect-late.dll"); // the same place, as a rule, and new imports
  p = ((make_t)(void*)GetProcAddress(late, "late_make"))(1000);
  check(is_expected(p), "... and again");
  p_free(p);
}

// ---- threads ------------------------------------------------------------------------------------------------------------

#define THREADS 8
#define BLOCKS  2000

static void* volatile blocks[THREADS][BLOCKS];
static volatile LONG n_strange;

static unsigned __stdcall thread_run(void* arg) {
  size_t self = (size_t)arg;
  for (int round = 0; round < 10; round++) {
    for (size_t i = 0; i < BLOCKS; i++) {
      void* p = (i % 50 == 0 ? _getcwd(NULL, 0) : p_malloc(i % 700 + 1));
      if (i % 50 != 0 && is_ours(p) != wants_ours) InterlockedIncrement(&n_strange);
      // What another thread has left here goes.
      p_free(InterlockedExchangePointer((PVOID volatile*)&blocks[(self + i) % THREADS][i], p));
    }
  }
  return 0;
}

static void test_threads(void) {
  HANDLE threads[THREADS];
  for (size_t i = 0; i < THREADS; i++) threads[i] = (HANDLE)_beginthreadex(NULL, 0, thread_run, (void*)i, 0, NULL);
  WaitForMultipleObjects(THREADS, threads, TRUE, INFINITE);
  for (size_t i = 0; i < THREADS; i++) CloseHandle(threads[i]);
  for (size_t i = 0; i < THREADS * BLOCKS; i++) p_free(blocks[i / BLOCKS][i % BLOCKS]);
  check(n_strange == 0, "threads");
}

// ---- main ---------------------------------------------------------------------------------------------------------------

static void test_unload(HMODULE library) {
  for (int i = 0; i < 10; i++) FreeLibrary(library);
  check(GetModuleHandleA("mimalloc.dll") == library, "mimalloc.dll stays");
  p_free(p_malloc(100));
}

int main(int argc, char** argv) {
  HMODULE library = GetModuleHandleA("mimalloc.dll");
  HMODULE runtime = NULL;
  mode = argc > 1 ? argv[1] : "";
  wants_inline = (strcmp(mode, "inline") == 0);
  wants_ours = (wants_inline || strcmp(mode, "iat") == 0);
  if (library != NULL) {
    is_ours_fun = (bool (*)(const void*))(void*)GetProcAddress(library, "mi_is_in_heap_region");
    is_redirected_fun = (bool (*)(void))(void*)GetProcAddress(library, "mi_is_redirected");
    check(is_ours_fun != NULL && is_redirected_fun != NULL && is_redirected_fun() == wants_ours, "mi_is_redirected");
  }
#if defined(_UCRT)
  runtime = GetModuleHandleA("ucrtbase.dll");
#else
  runtime = GetModuleHandleA("msvcrt.dll");
  test_onexit();
  test_new_handler(runtime); // wine's other runtime never calls it
#endif
  test_plain();
  test_strings();
  test_aligned();
  test_foreign();
  test_failure();
  test_looked_up(runtime);
  test_other_runtime();
  test_threads();
  if (argc > 2) test_late(argv[2]);
  if (library != NULL && wants_ours) test_unload(library);
  printf("%d failed\n", n_failed);
  return n_failed > 0;
}
