// The events of the library for Event Tracing for Windows: it stands in for the functions of ntdll that take them, and checks what
// arrives there.  (Under wine nothing would arrive anywhere else.)
//
//   events FILE       FILE: mimalloc.dll of a build with MI_TRACK_ETW
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <windows.h>
#include <evntprov.h>

#define N_MAX 400000

typedef struct event_s {
  uint16_t id;
  uint64_t address, size;
} event_t;

static event_t          events[N_MAX];
static volatile LONG    n_events, n_ended, n_wrong;
static PENABLECALLBACK  changed;
static GUID             provider;
static const REGHANDLE  given_handle = 0x123456789;
static CRITICAL_SECTION lock;
static unsigned         n_checks;

#define CHECK(what) \
  do { \
    n_checks++; \
    if (!(what)) { \
      printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #what); \
      fflush(stdout); \
      ExitProcess(1); \
    } \
  } while (0)

// ---- in place of the functions of ntdll -----------------------------------------------------------------------------

static ULONG NTAPI stand_in_register(LPCGUID id, PENABLECALLBACK callback, PVOID context, PREGHANDLE handle) {
  (void)context;
  provider = *id;
  changed = callback;
  *handle = given_handle;
  return ERROR_SUCCESS;
}

static ULONG NTAPI stand_in_unregister(REGHANDLE handle) {
  if (handle == given_handle) n_ended++;
  return ERROR_SUCCESS;
}

static ULONG NTAPI stand_in_write(REGHANDLE handle, PCEVENT_DESCRIPTOR event, ULONG n, PEVENT_DATA_DESCRIPTOR data) {
  const bool is_right = handle == given_handle && n == 2 && data[0].Size == 8 && data[1].Size == 8 &&
                        event->Level == 4 && event->Keyword == 1 && event->Version == 0 && event->Channel == 0 &&
                        event->Opcode == 0 && event->Task == 0 && data[0].Reserved == 0 && data[1].Reserved == 0;
  EnterCriticalSection(&lock);
  if (!is_right || n_events == N_MAX) n_wrong++;
  else {
    event_t* const to = &events[n_events++];
    to->id = event->Id;
    memcpy(&to->address, (const void*)(uintptr_t)data[0].Ptr, 8);
    memcpy(&to->size, (const void*)(uintptr_t)data[1].Ptr, 8);
  }
  LeaveCriticalSection(&lock);
  SetLastError(ERROR_MORE_DATA); // which the program must not see
  return ERROR_SUCCESS;
}

// The function begins with a jump to ours from now on.
static void replace(const char* name, const void* by) {
  uint8_t        code[12] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0}; // mov rax, by; jmp rax
  const FARPROC  function = GetProcAddress(GetModuleHandleA("ntdll.dll"), name);
  uint8_t* const at = (uint8_t*)(void*)(uintptr_t)function;
  DWORD          before;
  CHECK(function != NULL);
  memcpy(code + 2, &by, sizeof(by));
  CHECK(VirtualProtect(at, sizeof(code), PAGE_EXECUTE_READWRITE, &before));
  memcpy(at, code, sizeof(code));
  VirtualProtect(at, sizeof(code), before, &before);
  FlushInstructionCache(GetCurrentProcess(), at, sizeof(code));
}

// ---- the library ----------------------------------------------------------------------------------------------------

static void* (*mi_malloc)(size_t size);
static void* (*mi_zalloc)(size_t size);
static void* (*mi_realloc)(void* p, size_t size);
static void* (*mi_malloc_aligned)(size_t size, size_t alignment);
static void (*mi_free)(void* p);
static void* (*mi_heap_new)(void);
static void* (*mi_heap_malloc)(void* heap, size_t size);
static void (*mi_heap_destroy)(void* heap);

static void find(HMODULE library, const char* name, void* to) {
  const FARPROC function = GetProcAddress(library, name);
  CHECK(function != NULL);
  memcpy(to, (const void*)&function, sizeof(function));
}

static void load(const char* file) {
  const HMODULE library = LoadLibraryA(file);
  CHECK(library != NULL);
  find(library, "mi_malloc", &mi_malloc);
  find(library, "mi_zalloc", &mi_zalloc);
  find(library, "mi_realloc", &mi_realloc);
  find(library, "mi_malloc_aligned", &mi_malloc_aligned);
  find(library, "mi_free", &mi_free);
  find(library, "mi_heap_new", &mi_heap_new);
  find(library, "mi_heap_malloc", &mi_heap_malloc);
  find(library, "mi_heap_destroy", &mi_heap_destroy);
}

static void attend(ULONG what, UCHAR level, ULONGLONG any, ULONGLONG all) {
  const GUID session = {0};
  changed(&session, what, level, any, all, NULL, NULL);
}

// ---- tests ----------------------------------------------------------------------------------------------------------

static bool is_event(LONG i, uint16_t id, const void* p, size_t size) {
  return i < n_events && events[i].id == id && events[i].address == (uintptr_t)p && events[i].size == size;
}

static void test_provider(void) {
  const GUID ours = {0x53e6c9f1, 0x0b8d, 0x4a57, {0x9c, 0x3e, 0x7d, 0x2a, 0x41, 0xb8, 0x6f, 0x05}};
  CHECK(changed != NULL && memcmp(&provider, &ours, sizeof(ours)) == 0);
}

static bool is_heard(void) {
  const LONG n = n_events;
  mi_free(mi_malloc(10));
  CHECK(n_events == n || n_events == n + 2);
  return n_events > n;
}

// Only those who want it get events.
static void test_listening(void) {
  CHECK(!is_heard());
  attend(1, 4, 1, 0);
  CHECK(is_heard());
  attend(2, 0, 0, 0); // asks for state: nothing changes
  CHECK(is_heard());
  attend(1, 3, 1, 0); // errors and warnings only
  CHECK(!is_heard());
  attend(1, 5, 0, 0);
  CHECK(is_heard());
  attend(1, 4, 2, 0); // other keywords
  CHECK(!is_heard());
  attend(1, 4, 3, 1);
  CHECK(is_heard());
  attend(1, 4, 3, 2);
  CHECK(!is_heard());
  attend(1, 0, 0, 0); // all levels, all keywords
  CHECK(is_heard());
  attend(0, 0, 0, 0);
  CHECK(!is_heard());
}

static void test_payloads(void) {
  attend(1, 4, 1, 0);
  static const size_t sizes[] = {0, 1, 8, 13, 100, 1024, 5000, 100000, 3 << 20, 40 << 20};
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
    n_events = 0;
    SetLastError(77);
    void* const p = i % 2 == 0 ? mi_malloc(sizes[i]) : mi_zalloc(sizes[i]);
    CHECK(p != NULL && n_events == 1 && is_event(0, 100, p, sizes[i]));
    mi_free(p);
    CHECK(n_events == 2 && is_event(1, 101, p, sizes[i]));
    CHECK(GetLastError() == 77);
  }
  n_events = 0;
  mi_free(NULL);
  CHECK(n_events == 0);
  void* const aligned = mi_malloc_aligned(300, 4096);
  CHECK(n_events == 1 && is_event(0, 100, aligned, 300));
  mi_free(aligned);
  CHECK(n_events == 2 && is_event(1, 101, aligned, 300));
}

// A block that stays where it is, and one that moves.
static void test_realloc(void) {
  n_events = 0;
  void* const p = mi_malloc(100);
  void* const q = mi_realloc(p, 101);
  CHECK(q == p && n_events == 3 && is_event(1, 101, p, 100) && is_event(2, 100, p, 101));
  void* const r = mi_realloc(q, 5000);
  CHECK(r != q && n_events == 5);
  CHECK(is_event(3, 100, r, 5000) && is_event(4, 101, q, 101));
  mi_free(r);
  CHECK(n_events == 6 && is_event(5, 101, r, 5000));
}

// All blocks of a heap that is destroyed are freed.
static void test_heap(void) {
  void* const heap = mi_heap_new();
  n_events = 0;
  enum { N = 1000 };
  uint64_t sum = 0, freed = 0;
  for (size_t i = 0; i < N; i++) {
    CHECK(mi_heap_malloc(heap, i * (i % 100 == 0 ? 5000 : 1)) != NULL);
    sum += events[i].address + events[i].size;
  }
  CHECK(n_events == N);
  mi_heap_destroy(heap);
  CHECK(n_events == 2 * N);
  for (LONG i = N; i < 2 * N; i++) {
    CHECK(events[i].id == 101);
    freed += events[i].address + events[i].size;
  }
  CHECK(freed == sum);
}

enum { N_THREADS = 4, N_BLOCKS = 64, N_STEPS = 20000 };
static void* volatile shared[N_BLOCKS];

// Blocks go from thread to thread.
static DWORD WINAPI exchange(LPVOID seed) {
  uint32_t state = (uint32_t)(uintptr_t)seed * 2654435761u + 1;
  for (int i = 0; i < N_STEPS; i++) {
    state = state * 1664525u + 1013904223u;
    void* const p = mi_malloc((state >> 8) % 2000);
    mi_free(InterlockedExchangePointer((PVOID volatile*)&shared[(state >> 20) % N_BLOCKS], p));
  }
  return 0;
}

// By address: an address is allocated and freed in turn, whatever thread does it, and with the same size.
static int compare_events(const void* a, const void* b) {
  const event_t *x = *(const event_t* const*)a, *y = *(const event_t* const*)b;
  if (x->address != y->address) return x->address < y->address ? -1 : 1;
  return x < y ? -1 : 1;
}

static void test_threads(void) {
  n_events = 0;
  HANDLE threads[N_THREADS];
  for (uintptr_t i = 0; i < N_THREADS; i++) threads[i] = CreateThread(NULL, 0, exchange, (LPVOID)(i + 1), 0, NULL);
  for (int i = 0; i < N_THREADS; i++) WaitForSingleObject(threads[i], INFINITE);
  for (int i = 0; i < N_BLOCKS; i++) mi_free(shared[i]);
  attend(0, 0, 0, 0);
  CHECK(n_events == 2 * N_THREADS * N_STEPS);
  static const event_t* sorted[N_MAX];
  for (LONG i = 0; i < n_events; i++) sorted[i] = &events[i];
  qsort((void*)sorted, (size_t)n_events, sizeof(sorted[0]), compare_events);
  for (LONG i = 0; i < n_events; i += 2) {
    CHECK(sorted[i]->id == 100 && sorted[i + 1]->id == 101);
    CHECK(sorted[i]->address == sorted[i + 1]->address && sorted[i]->size == sorted[i + 1]->size);
  }
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  InitializeCriticalSection(&lock);
  replace("EtwEventRegister", (const void*)(uintptr_t)stand_in_register);
  replace("EtwEventUnregister", (const void*)(uintptr_t)stand_in_unregister);
  replace("EtwEventWrite", (const void*)(uintptr_t)stand_in_write);
  load(argv[1]);
  test_provider();
  test_listening();
  test_payloads();
  test_realloc();
  test_heap();
  test_threads();
  CHECK(n_wrong == 0);
  printf("events: %u checks\n", n_checks);
  return 0;
}
